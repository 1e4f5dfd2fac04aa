"""Labels given as a tokenizer: names come from it, rows past it are padded."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio import GonioError

W = np.random.default_rng(0).standard_normal((8, 3))


def made():
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed; make test installs it")
    vocabulary = {"a": 0, "b": 1, "Ġdog": 2, "[UNK]": 3}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["<end>"])
    return tokenizer


def test_names_come_from_a_tokenizer_of_tokenizers():
    head = gonio.load({"W": W}, labels=made())
    assert head.labels[:6] == ("a", "b", "Ġdog", "[UNK]", "<end>", "[padded 5]")
    assert head.padded.tolist() == [5, 6, 7]
    assert head.source.decided["padded"] == "3 rows have no name there"
    assert head.index(" dog") == 2


def test_names_come_from_a_tokenizer_of_transformers():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; make test installs it")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made(), unk_token="[UNK]")
    head = gonio.load({"W": W}, labels=tokenizer)
    assert head.labels == gonio.load({"W": W}, labels=made()).labels
    assert head.padded.tolist() == [5, 6, 7]


class Plain:
    """A tokenizer that knows no more than its size and its tokens; some are bytes, some are none."""

    vocab_size = 4

    def convert_ids_to_tokens(self, ids):
        return [[b" dog", "x", None, "y"][i] for i in ids]


def test_names_come_from_anything_that_answers_like_a_tokenizer():
    head = gonio.load({"W": W[:5]}, labels=Plain())
    assert head.labels == ("Ġdog", "x", "[padded 2]", "y", "[padded 4]")
    assert head.padded.tolist() == [2, 4]


class Broken(Plain):
    def convert_ids_to_tokens(self, ids):
        raise RuntimeError("no vocabulary\nhere")


class Empty(Plain):
    vocab_size = 0


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [(Broken(), r"cannot be had \(RuntimeError: no vocabulary here\)"), (Empty(), "without a single token")],
)
def test_a_tokenizer_that_gives_no_tokens_is_one_sentence(tokenizer, said):
    with pytest.raises(GonioError, match=said):
        gonio.load({"W": W}, labels=tokenizer)


def test_a_map_of_names_that_leaves_out_rows_makes_them_padded(tmp_path):
    (tmp_path / "vocab.json").write_text('{"a": 0, "b": 2}')
    head = gonio.load({"W": W[:3]}, labels=tmp_path / "vocab.json")
    assert head.labels == ("a", "[padded 1]", "b")
    assert head.padded.tolist() == [1]
