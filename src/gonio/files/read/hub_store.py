"""What was fetched from the hub, kept: the next command reads it from the disk.

One file an answer, in the user's cache folder: a page of JSON that says what it is (the server, the model, the commit,
the file, which bytes of it, a SHA-256), then the bytes. An entry is believed only if it says all that was asked for
and its bytes, with the length and etag of the whole file, have that SHA-256; what else is found is fetched
anew. The files of a commit never change.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.atomic_write import make_folder, whole
from gonio.core.errors import GonioError

PAGE = 4096  # bytes of JSON before the bytes themselves
VERSION = "gonio hub 1"
PIECE = 1 << 22


@dataclass(frozen=True)
class Wanted:
    """Bytes start..stop of a file of a model at a commit; stop 0 is the whole file."""

    endpoint: str
    repository: str
    commit: str
    file: str
    start: int = 0
    stop: int = 0


@dataclass(frozen=True)
class Kept:
    """The bytes, the length of the whole file, and its etag; no bytes where the repository has no such file."""

    body: np.ndarray | None
    size: int
    etag: str


def cache_folder() -> Path:
    """gonio's folder in the user's cache: $XDG_CACHE_HOME/gonio/hub, or ~/.cache/gonio/hub."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "gonio" / "hub"


def place_of(wanted: Wanted) -> Path:
    """Where an entry lies."""
    key = hashlib.sha256(json.dumps(asdict(wanted), sort_keys=True).encode()).hexdigest()
    return cache_folder() / f"models--{wanted.repository.replace('/', '--')}" / wanted.commit / key


def kept(wanted: Wanted) -> Kept | None:
    """What was kept of it; None where there is nothing, or nothing that can be believed."""
    path = place_of(wanted)
    try:
        length = path.stat().st_size - PAGE
        with path.open("rb") as f:
            about = json.loads(f.read(PAGE))
            if {k: about[k] for k in ("gonio", *asdict(wanted))} != {"gonio": VERSION, **asdict(wanted)}:
                return None
            if about["absent"] is True:
                return Kept(None, 0, "") if length == 0 else None
            size, etag = about["size"], about["etag"]
            digest = _digest(size, etag)
            while piece := f.read(PIECE):
                digest.update(piece)
        expected = (min(wanted.stop, size) if wanted.stop else size) - wanted.start
        if digest.hexdigest() != about["sha256"] or length != expected or not isinstance(etag, str):
            return None
        body = np.memmap(path, np.uint8, "r", PAGE, (length,)).view(np.ndarray) if length else np.empty(0, np.uint8)
        return Kept(body, size, etag)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def keep(wanted: Wanted, body: bytes | None, size: int, etag: str) -> str:
    """Keep what was fetched; why it could not be kept, or nothing."""
    digest = _digest(size, etag)
    digest.update(body or b"")
    about = {
        "gonio": VERSION,
        **asdict(wanted),
        "absent": body is None,
        "size": size,
        "etag": etag,
        "sha256": digest.hexdigest(),
    }
    page = json.dumps(about).encode()
    if len(page) > PAGE:
        return "its name is too long"
    path = place_of(wanted)
    try:
        make_folder(path.parent, "load")
        with whole(path, "load") as temporary, temporary.open("wb") as f:
            f.write(page.ljust(PAGE))
            f.write(body or b"")
    except (GonioError, OSError, RuntimeError) as e:
        return str(e)
    return ""


def _digest(size: int, etag: str) -> Any:
    """The hash of what an entry tells of its file, to which its bytes are added."""
    return hashlib.sha256(f"{size} {etag}\n".encode())


def note_commit(endpoint: str, repository: str, revision: str, commit: str) -> None:
    """Remember at which commit a revision was last seen."""
    keep(Wanted(endpoint, repository, "refs", revision), commit.encode(), len(commit), "")


def noted_commit(endpoint: str, repository: str, revision: str) -> str | None:
    """The commit at which a revision was last seen, for where no server can be asked."""
    found = kept(Wanted(endpoint, repository, "refs", revision))
    return None if found is None or found.body is None else found.body.tobytes().decode("ascii", "replace")
