"""`read`: a model file, folder or hub name as a Head, with what the caller says put in place of what was guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gonio.core import inputs as _inputs
from gonio.core.errors import GonioError, LoadError
from gonio.core.head import Head, Link
from gonio.files.read.head_draft import Draft


def read(
    path: str | Path,
    *,
    link: Link | None = None,
    tensor: str | None = None,
    labels: Any = None,
    inputs: _inputs.Inputs | str | None = None,
) -> Head:
    """The head of a model file, a checkpoint folder or a model of the hub; see `gonio.load`."""
    from gonio.files.read.choose import draft_of_path

    return head_from(lambda: draft_of_path(path, tensor), str(path), link, labels, inputs)


def head_from(
    draft_of: Callable[[], Draft],
    place: str,
    link: Link | None,
    labels: Any,
    inputs: _inputs.Inputs | str | None,
) -> Head:
    """The head of a draft, what the caller says in place of what the reader thought; errors name the place."""
    try:
        draft = draft_of()
        if link is not None:
            draft.override("link", link)
        if labels is not None:
            from gonio.files.read.labels import given

            names, draft.padded = given(labels, draft.rows.shape[0])
            draft.override("labels", names)
            draft.decide("padded", f"{len(draft.padded)} rows have no name there" if draft.padded else "")
        if inputs is not None:
            draft.override("inputs", _inputs.of(inputs))
        return draft.finish()
    except LoadError:
        raise
    except GonioError as e:
        if str(e).startswith("load:"):
            raise
        raise type(e)(f"load: {place}: {e}") from None
