"""`gonio similar`: neighbours under a measure beside those by cosine."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gonio import dial
from gonio.cli.similarity import similar
from gonio.core.errors import GonioError
from tests.similarity.heads import FIGURE1


def run(*args):
    return CliRunner().invoke(similar, [str(a) for a in args])


def files(folder, W, F):
    np.save(folder / "W.npy", W)
    np.save(folder / "F.npy", F)
    return folder / "W.npy", folder / "F.npy"


def test_the_answer_stays_while_the_cosine_is_dialled(tmp_path):
    F = np.random.default_rng(0).standard_normal((300, 2))
    said = []
    for name, head in (("a", FIGURE1), ("b", dial(FIGURE1, 0, 1, cosine=-1).head)):
        (tmp_path / name).mkdir()
        W, inputs = files(tmp_path / name, head.W, F)
        r = run(W, "0", "--link", "softmax", "--embeddings", inputs, "--top", 4, "--json", "-")
        assert r.exit_code == 0, r.output
        said.append(json.loads(r.output))
    assert said[0]["similar"]["measure"] == "centred-logit correlation"
    assert said[0]["similar"]["near"] == said[1]["similar"]["near"]
    assert np.allclose(said[0]["similar"]["values"], said[1]["similar"]["values"])
    cosines = [dict(zip(x["cosine"]["near"][0], x["cosine"]["values"][0], strict=True))[1] for x in said]
    assert cosines == pytest.approx([0.8, -1])
    first = said[0]["similar"]["intervals"][0]
    assert first["low"] < first["value"] < first["high"]


def test_text_names_the_measure_its_groups_and_both_lists(tmp_path):
    W, F = files(tmp_path, FIGURE1.W, np.random.default_rng(0).standard_normal((300, 2)))
    r = run(W, "0", "3", "--link", "softmax", "--embeddings", F, "--top", 3)
    assert "stays under translation, invertible map, scaling, rotation" in r.output
    assert r.output.count("in both") == 2
    assert "[0.7" in r.output
    small = tmp_path / "small.npy"
    np.save(small, np.eye(3))
    with pytest.raises(GonioError, match="it says nothing; what tells labels apart must come from inputs"):
        similar.main([str(small), "0", "--link", "softmax", "--top", "1"], standalone_mode=False)
    with pytest.raises(GonioError, match=r"nothing says what these rows are.*--link"):
        similar.main([str(small), "0", "--top", "1"], standalone_mode=False)


def test_bad_questions_are_one_sentence(tmp_path):
    W, F = files(tmp_path, FIGURE1.W, np.ones((4, 3)))
    for args, said in (
        ((W, "0", "--measure", "cosin"), "did you mean 'cosine'"),
        ((W, "0", "--top", "5", "--measure", "cosine"), "1 to 4 can be given"),
        ((W, "0", "--embeddings", F), "width 2"),
        ((W, "zebra"), "no label is called"),
    ):
        e = run(*args, "--link", "softmax").exception
        assert isinstance(e, GonioError)
        assert said in str(e)
