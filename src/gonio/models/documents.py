"""The text that a model reads, as documents: what belongs together, and is resampled together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gonio.core.errors import GonioError

LARGEST = 1 << 30  # bytes of text that are read at once


def read_documents(path: str | Path, split: str | None, who: str) -> list[str]:
    """The documents of a text file: its lines, or what stands between two separators; blank ones are left out."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise GonioError(
                f"{who}: {path} has {path.stat().st_size:,} bytes; give at most {LARGEST:,}, a part of it."
            )
        raw = path.read_bytes()
    except (OSError, ValueError) as e:
        if isinstance(e, GonioError):
            raise
        raise GonioError(f"{who}: the text {path} cannot be read ({getattr(e, 'strerror', None) or e}).") from None
    if b"\0" in raw[: 1 << 16]:
        raise GonioError(f"{who}: {path} is no text: it holds zero bytes; give a text file in UTF-8.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise GonioError(f"{who}: {path} is not UTF-8 (byte {e.start:,}); save the text as UTF-8.") from None
    return must_say_something(text.split(split) if split else text.splitlines(), f"{who}: {path}")


def given_documents(texts: Any, who: str) -> list[str]:
    """Documents as a caller gives them: one text, or several."""
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, Iterable):
        raise GonioError(f"{who}: texts is a {type(texts).__name__}; a list of texts is needed, one a document.")
    found = list(texts)
    bad = next((x for x in found if not isinstance(x, str)), None)
    if bad is not None:
        raise GonioError(f"{who}: texts holds a {type(bad).__name__}; every document is a text.")
    return must_say_something(found, f"{who}: the text")


def must_say_something(documents: Iterable[str], what: str) -> list[str]:
    """The documents that are not blank; at least one."""
    kept = [x.strip("\r\n") for x in documents if x.strip()]
    if not kept:
        raise GonioError(f"{what} is empty; give some sentences of the kind that the model is used on, one a line.")
    return kept


def separator(typed: str | None) -> str | None:
    r"""A separator as typed, with its escapes.

    >>> separator("\\n\\n") == chr(10) * 2, separator("---")
    (True, '---')
    """
    if typed is None:
        return None
    out = typed.replace("\\n", "\n").replace("\\t", "\t")
    if not out:
        raise GonioError("--split is empty; give what stands between two documents, such as '\\n\\n'.")
    return out
