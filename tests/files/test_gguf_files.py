"""GGUF files that are wrong: lying, truncated or damaged, each refused in one sentence."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from gonio.core.errors import GonioError, LoadError
from gonio.files.read import gguf as ours
from gonio.models.loading import load
from tests.files.gguf_made import GAIN, RMS, TABLE, TOKENS, TYPES, D, N, gguf, llama, written
from tests.mutate import survives


def packed(keys: bytes = b"", tensors: bytes = b"", counts=(0, 0), version: int = 3, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, *counts) + keys + tensors + rest


def text(x: bytes) -> bytes:
    return struct.pack("<Q", len(x)) + x


def info(name: bytes, dims: list[int], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


BIG = 2**60
NESTED = text(b"k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 3000


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "empty"),
        (b"GGU", "starts with"),
        (b"GGUF", "cut off"),
        (b"PK\x03\x04" + bytes(100), "starts with"),
        (packed(version=1), "version 1"),
        (packed(version=4), "version 4"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (packed(counts=(BIG, 0)), "tensors are claimed"),
        (packed(counts=(0, BIG)), "metadata are claimed"),
        (packed(struct.pack("<Q", BIG) + bytes(20), counts=(0, 1)), "cut off"),
        (packed(text(b"k") + struct.pack("<IQ", 8, BIG), counts=(0, 1)), "'k' needs"),
        (packed(text(b"k") + struct.pack("<IIQ", 9, 4, BIG), counts=(0, 1)), "'k' needs"),
        (packed(text(b"k") + struct.pack("<IIQ", 9, 8, BIG), counts=(0, 1)), "'k' needs"),
        (packed(text(b"k") + struct.pack("<IIQ", 9, 9, BIG), counts=(0, 1)), "'k' needs"),
        (packed(text(b"k") + struct.pack("<IIQ", 9, 8, 2) + struct.pack("<QQ", 2**63, 0), counts=(0, 1)), "'k' needs"),
        (packed(NESTED, counts=(0, 1)), "nested too deeply"),
        (packed(text(b"k") + struct.pack("<IQ", 77, 0), counts=(0, 1)), "unknown kind 77"),
        (packed((text(b"k") + struct.pack("<IB", 0, 1)) * 2, counts=(0, 2)), "'k' twice"),
        (packed(text(b"general.alignment") + struct.pack("<II", 4, 3), counts=(0, 1)), "power of two"),
        (packed(b"", info(b"output.weight", [4, 4]) * 2, counts=(2, 0)), "after 1 others"),
        (packed(b"", info(b"output.weight", [1] * 5), counts=(1, 0)), "5 axes"),
        (packed(b"", text(b"output.weight") + struct.pack("<I", 2**32 - 1) + bytes(40), counts=(1, 0)), "axes"),
        (packed(b"", info(b"output.weight", [4, 0]), counts=(1, 0)), "axes"),
        (packed(b"", info(b"output.weight", [4, 4], 0, 7), counts=(1, 0), rest=bytes(200)), "offset 7"),
        (packed(b"", info(b"output.weight", [4, 4], 0, 2**63), counts=(1, 0), rest=bytes(200)), "cut off"),
        (packed(b"", info(b"output.weight", [100_000, 100_000]), counts=(1, 0), rest=bytes(99)), "40,000,000,"),
        (packed(b"", info(b"output.weight", [BIG, BIG]), counts=(1, 0), rest=bytes(99)), "cut off"),
        (packed(b"", info(b"output.weight", [BIG, BIG], 8), counts=(1, 0), rest=bytes(99)), "cut off"),
        (packed(b"", info(b"output.weight", [4, 4], 8), counts=(1, 0), rest=bytes(99)), "packed by 32"),
        (packed(b"", info(b"output.weight", [4, 4], 26), counts=(1, 0), rest=bytes(99)), "I32"),
        (packed(b"", info(b"output.weight", [4, 4], 4), counts=(1, 0), rest=bytes(99)), "ggml type 4"),
        (
            packed(b"", info(b"blk.0.ffn.weight", [4, 4]), counts=(1, 0), rest=bytes(99)),
            r"blk.0.ffn.weight \(4x4 float32\)",
        ),
        (packed(b"", info(b"output.weight", [16]), counts=(1, 0), rest=bytes(99)), "two axes"),
        (packed(b"", info(b"v.weight", [16]), counts=(1, 0), rest=bytes(99)), "no two-dimensional"),
    ],
)
def test_lying_files_are_refused_in_one_sentence(tmp_path, raw, says):
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    with pytest.raises(LoadError, match=says) as e:
        ours.draft(path, None)
    assert "\n" not in str(e.value)


def test_an_endless_header_in_a_sparse_file_is_refused(tmp_path):
    path = tmp_path / "m.gguf"
    count = (1 << 35) // 8
    path.write_bytes(packed(text(b"k") + struct.pack("<IIQ", 9, 8, count), counts=(0, 1)))
    with path.open("r+b") as f:
        f.truncate(1 << 36)
    with pytest.raises(LoadError, match="'k' needs"):
        ours.draft(path, None)


def test_a_vocabulary_without_weights_is_told_apart(tmp_path):
    path = tmp_path / "m.gguf"
    w = gguf.GGUFWriter(path, "llama")
    w.add_token_list(TOKENS)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()
    with pytest.raises(LoadError, match="a vocabulary of 12 tokens and no tensors"):
        load(path)


def test_a_norm_or_bias_of_the_wrong_length_is_refused(tmp_path):
    for i, (name, size) in enumerate([("output_norm.weight", D - 1), ("output_norm.bias", 3), ("output.bias", N + 1)]):
        tensors = {"output.weight": TABLE, "output_norm.weight": GAIN, name: np.ones(size, np.float32)}
        with pytest.raises(LoadError, match=rf"{name} has shape \({size},\)"):
            load(written(tmp_path / f"{i}.gguf", "phi2", tensors))


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_nan_is_named_with_its_place(tmp_path, kind):
    table = TABLE.copy()
    table[3, 5] = np.nan
    path = written(tmp_path / "m.gguf", "llama", {"output.weight": table}, kind=TYPES[kind])
    with pytest.raises(GonioError, match=r"W\[3, 5\] is nan"):
        load(path)


@pytest.mark.parametrize("key", ["logit_scale", "final_logit_softcapping", "vocab_size"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, [1, 2]])
def test_numbers_of_the_metadata_must_be_finite_numbers(tmp_path, key, value):
    with pytest.raises(LoadError, match="a finite number is needed"):
        load(llama(tmp_path / "m.gguf", keys={key: value}))


def test_a_truncated_model_is_refused_wherever_it_ends(tmp_path):
    whole = llama(tmp_path / "m.gguf", kind=TYPES.Q8_0).read_bytes()
    path = tmp_path / "cut.gguf"
    for size in np.linspace(0, len(whole) - 40, 60).astype(int):
        path.write_bytes(whole[:size])
        with pytest.raises(LoadError):
            load(path)


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_0"])
def test_damaged_files_give_a_head_or_one_sentence(tmp_path, kind):
    tensors = {"output_norm.weight": GAIN[:32], "output.weight": TABLE[:4, :32]}
    keys = {**RMS, "vocab_size": 4, "logit_scale": 0.5, "final_logit_softcapping": 30.0}
    good = written(tmp_path / "m.gguf", "llama", tensors, tokens=TOKENS[:4], kind=TYPES[kind], keys=keys).read_bytes()
    survives(tmp_path / "x.gguf", good, 250)
