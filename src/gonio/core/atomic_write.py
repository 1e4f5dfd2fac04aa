"""The one way in which gonio writes files: whole or not at all, whatever happens in the middle.

A file is written beside its place under another name, brought to the disk, and then takes the place of what stood
there in one step. A pipe or a device, which has no place to take, gets the bytes once all of them are there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gonio.core.errors import GonioError
from gonio.core.leftovers import new_file, remove_leftovers


@contextmanager
def whole(path: str | Path, who: str) -> Iterator[Path]:
    """A file beside `path` to write into; it takes the place of `path` once all went well, and is gone otherwise."""
    path = Path(path)
    if is_stream(path):
        with _sent(path, who) as temporary:
            yield temporary
        return
    target = _place(path, who)
    remove_leftovers(target.parent)
    try:
        temporary, lock = new_file(target.parent, target.suffix)
    except OSError as e:
        raise GonioError(
            f"{who}: {path} could not be written ({reason(e)}); choose a folder that you may write in."
        ) from None
    stood = target.exists()
    try:
        try:
            yield temporary
            _as_it_stood(temporary, target)
            to_disk(temporary)
            temporary.replace(target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as e:
        raise GonioError(f"{who}: {path} could not be written ({reason(e)}); {left(temporary, stood)}") from None
    finally:
        os.close(lock)
    with contextlib.suppress(OSError):  # some file systems do not know it
        to_disk(target.parent)


def whole_text(path: str | Path, text: str, who: str, *, lone: str = "replace") -> Path:
    """Write a text as one file. Half a surrogate pair, which no encoding has, becomes '?', or with
    lone="backslashreplace" the escape that JSON has for it."""
    with whole(path, who) as temporary:
        temporary.write_bytes(text.encode("utf-8", errors=lone))
    return Path(path)


def make_folder(path: str | Path, who: str) -> Path:
    """The folder `path`, made with all above it where it is not there."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise GonioError(f"{who}: the folder {path} could not be made ({reason(e)}).") from None
    return path


def is_stream(path: Path) -> bool:
    """Whether a path names a device, a pipe or an open handle: what can be written to but not replaced."""
    named = os.path.abspath(path)
    if named.startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def reason(e: OSError) -> str:
    """Why the system refused, in its words."""
    return e.strerror or str(e) or type(e).__name__


def left(temporary: Path, stood: bool) -> str:
    """What there is after a write that failed; looked up, not hoped."""
    if os.path.lexists(temporary):
        return f"an unfinished part is left in {temporary}, and can be removed."
    return "what stood there is as it was." if stood else "nothing was left behind."


def to_disk(path: Path) -> None:
    """Wait until what was written to a file, or the names in a folder, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _place(path: Path, who: str) -> Path:
    """Where the file really lies, behind all links; its folder must be there."""
    try:
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise GonioError(f"{who}: the folder {path.parent} does not exist; make it, or choose another place.")
        if target.is_dir():
            raise GonioError(f"{who}: {path} is a folder; give the name of a file.")
    except (OSError, ValueError) as e:
        if isinstance(e, GonioError):
            raise
        raise GonioError(f"{who}: {str(path)[:80]!r} could not be written ({e}).") from None
    return target


def _as_it_stood(temporary: Path, target: Path) -> None:
    """The rights, and where we may the owner, of what is replaced."""
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    temporary.chmod(stat.S_IMODE(old.st_mode) & 0o777)
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)


@contextmanager
def _sent(path: Path, who: str) -> Iterator[Path]:
    """A file elsewhere to write into, whose bytes are sent to a device or a pipe once all went well."""
    try:
        with tempfile.TemporaryDirectory(prefix="gonio-") as folder:
            temporary = Path(folder) / f"whole{path.suffix}"
            yield temporary
            with temporary.open("rb") as f, path.open("wb") as to:
                shutil.copyfileobj(f, to)
    except OSError as e:
        raise GonioError(f"{who}: {path} could not be written ({reason(e)}).") from None
