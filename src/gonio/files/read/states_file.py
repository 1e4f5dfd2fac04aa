"""States from the disk: a .npy file, with the JSON file beside it where `gonio states` wrote one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import LoadError
from gonio.core.npy_file import read_npy
from gonio.core.states import States

FORMAT = "gonio states 1"
LISTS = ("documents", "positions", "tokens")
LARGEST = 1 << 30  # bytes of the JSON file: some ten million states


def sidecar(path: str | Path) -> Path:
    """The JSON file beside a file of states.

    >>> sidecar("out/F.npy").name
    'F.states.json'
    """
    return Path(path).with_suffix(".states.json")


def read_states(path: str | Path, who: str) -> States | np.ndarray:
    """The states of a .npy file; plain numbers where nothing beside it says where they are from."""
    F = read_npy(path, who)
    beside = sidecar(path)
    try:
        if not beside.is_file():
            return F
        if beside.stat().st_size > LARGEST:
            raise LoadError(f"{who}: {beside} is larger than 1 GB; it is not what gonio states writes.")
        about = json.loads(beside.read_bytes())
    except (OSError, ValueError, RecursionError) as e:
        if isinstance(e, LoadError):
            raise
        raise LoadError(f"{who}: {beside} cannot be read ({type(e).__name__}); capture the states anew.") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise LoadError(f"{who}: {beside} is not of the form {FORMAT!r}; capture the states anew, or remove it.")
    if about.get("shape") != list(F.shape):
        raise LoadError(
            f"{who}: {path} has shape {F.shape} and {beside.name} says {about.get('shape')}; they do not fit."
        )
    if about.get("rows") != rows_of_file(F):
        raise LoadError(
            f"{who}: the numbers in {path} are not those that {beside.name} was written for; capture the states anew, "
            f"or remove {beside.name} to use them as plain embeddings."
        )
    lists = [_whole_numbers(about.get(name), len(F), f"{name} of {beside}", who) for name in LISTS]
    rest = {k: v for k, v in about.items() if k not in (*LISTS, "format", "shape", "rows", "head")}
    return States(F, *lists, head=str(about.get("head", "")), about=rest)


def rows_of_file(F: np.ndarray) -> str:
    """The fingerprint of the numbers themselves: it tells whether a file and what lies beside it belong together."""
    h = hashlib.sha256()
    for s in range(0, len(F), 4096):
        h.update(np.ascontiguousarray(F[s : s + 4096]).view(np.uint8).data)
    return h.hexdigest()


def _whole_numbers(values: Any, count: int, name: str, who: str) -> np.ndarray:
    fine = isinstance(values, list) and len(values) == count and all(type(x) is int and abs(x) < 2**62 for x in values)
    if not fine:
        raise LoadError(f"{who}: {name} is not one whole number a state; capture the states anew.")
    return np.array(values, np.int64)
