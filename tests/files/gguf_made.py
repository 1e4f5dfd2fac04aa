"""GGUF files written by the package gguf: small models of any architecture and type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gonio.core.head import Head, Source

gguf = pytest.importorskip("gguf", reason="gguf is not installed; make test installs it")
TYPES = gguf.GGMLQuantizationType
N, D = 12, 256
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((N, D)).astype(np.float32)
GAIN = RNG.uniform(0.5, 2, D).astype(np.float32)
SHIFT = RNG.standard_normal(D).astype(np.float32)
TOKENS = [f"token{i}" for i in range(N)]
RMS = {"attention.layer_norm_rms_epsilon": 1e-5}
LAYER = {"attention.layer_norm_epsilon": 1e-5}


def written(path: Path, arch: str, tensors: dict, *, tokens=TOKENS, kind=TYPES.F32, keys=None) -> Path:
    """A model file; tables are stored in `kind`, vectors in float32; `keys` go below the architecture's name."""
    w = gguf.GGUFWriter(path, arch)
    w.add_name("a model")
    if tokens is not None:
        w.add_tokenizer_model("gpt2")
        w.add_token_list(tokens)
        w.add_token_types([1] * len(tokens))
        w.add_token_scores([0.5] * len(tokens))
        w.add_token_merges(["a b", "c d"])
    w.add_chat_template("{{ messages }}" * 100)
    for key, value in (keys or {}).items():
        put = {float: w.add_float32, int: w.add_uint32, bool: w.add_bool, list: w.add_array}[type(value)]
        put(f"{arch}.{key}", value)
    for name, a in tensors.items():
        stored = kind if a.ndim == 2 and a.dtype == np.float32 else None
        if stored in (None, TYPES.F32):
            w.add_tensor(name, a)
        else:
            w.add_tensor(name, gguf.quants.quantize(a, stored), raw_dtype=stored)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path


def source(head: Head) -> Source:
    assert head.source is not None
    return head.source


def llama(path: Path, **more) -> Path:
    more = {"keys": {**RMS, "vocab_size": N}, **more}
    return written(
        path, "llama", {"token_embd.weight": -TABLE, "output_norm.weight": GAIN, "output.weight": TABLE}, **more
    )


def raw_type(path: Path, kind, seed: int = 0) -> tuple[Path, np.ndarray]:
    """A llama whose output is random blocks of a type that gguf can unpack but not pack."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    raw = np.random.default_rng(seed).integers(0, 256, (N, D // block * size), dtype=np.uint8)
    blocks = raw.reshape(-1, size)
    ends = {TYPES.Q6_K: [-2], TYPES.Q4_K: [0, 2], TYPES.Q5_K: [0, 2], TYPES.Q2_K: [-4, -2], TYPES.Q3_K: [-2]}[kind]
    for at in ends:  # the block's scales are half floats: make them small and finite
        half = np.array([0.01], np.float16).view(np.uint8)
        blocks[:, at] = half[0]
        blocks[:, at + 1] = half[1]
    w = gguf.GGUFWriter(path, "llama")
    w.add_tensor("output.weight", raw, raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path, raw
