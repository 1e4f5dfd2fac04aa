"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gonio.core.errors import GonioError


@contextmanager
def whole(path: str | Path, who: str) -> Iterator[Path]:
    """A file beside `path` to write into; it takes the place of `path` once all went well, and is gone otherwise."""
    path = Path(path)
    if not path.parent.is_dir():
        raise GonioError(f"{who}: the folder {path.parent} does not exist; make it, or choose another place.")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
        os.close(handle)
    except OSError as e:
        raise GonioError(f"{who}: {path} could not be written ({e.strerror or e}).") from None
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)  # a result is made to be shown to others; mkstemp keeps its own to the user
        temporary.replace(path)
    except OSError as e:
        raise GonioError(f"{who}: {path} could not be written ({e.strerror or e}); nothing was left behind.") from None
    finally:
        temporary.unlink(missing_ok=True)
