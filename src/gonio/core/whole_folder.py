"""Folders that appear whole or not at all, and replace only what gonio wrote itself."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gonio.core.atomic_write import left, make_folder, reason, to_disk
from gonio.core.errors import GonioError
from gonio.core.leftovers import new_folder, remove_folder, remove_leftovers, restore
from gonio.core.version import __version__

MARKER = ".gonio-folder"  # lists the files that gonio wrote: a folder with others in it holds somebody's work
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of linux/fs.h


@contextmanager
def whole_folder(out: str | Path, who: str, *, overwrite: bool) -> Iterator[Path]:
    """A folder beside `out` to fill; it takes the place of `out` once all went well, and is gone otherwise."""
    out = Path(out)
    place = Path(os.path.realpath(out))
    remove_leftovers(place.parent)
    _must_be_ours(out, place, who, overwrite)
    made = [p for p in place.parents if not p.exists()]
    make_folder(place.parent, who)
    try:
        folder, lock = new_folder(place.parent)
    except OSError as e:
        raise GonioError(f"{who}: {out} could not be written ({reason(e)}).") from None
    stood = place.exists()
    try:
        try:
            yield folder
            _finish(folder)
            _must_be_ours(out, place, who, overwrite)  # it may have changed while we worked
            _take_place(folder, place)
        finally:
            remove_folder(folder)
            _remove_empty(made)
    except OSError as e:
        raise GonioError(f"{who}: {out} could not be written ({reason(e)}); {left(folder, stood)}") from None
    finally:
        os.close(lock)
    with contextlib.suppress(OSError):
        to_disk(place.parent)


def _remove_empty(folders: list[Path]) -> None:
    """Remove the folders that were made for the output and hold nothing, the deepest first."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _must_be_ours(out: Path, place: Path, who: str, overwrite: bool) -> None:
    """Raise unless `out` is free, empty, or may be replaced and holds nothing but what gonio wrote."""
    if not os.path.lexists(place):
        return
    if not overwrite:
        raise GonioError(f"{who}: {out} exists; choose another name, or say that it may be overwritten.")
    if not place.is_dir():
        raise GonioError(f"{who}: {out} is not a folder; choose another name, or remove it yourself.")
    foreign = _foreign(place)
    if foreign is not None:
        raise GonioError(
            f"{who}: {out} holds {foreign}, which gonio did not write there; only a folder that gonio wrote, or an "
            f"empty one, is replaced. Choose another name, or remove it yourself."
        )


def _foreign(folder: Path) -> str | None:
    """The first file in a folder that its marker does not list; None where there is none."""
    try:
        known = set(json.loads((folder / MARKER).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        known = set()
    return next((name for name in _files(folder) if name != MARKER and name not in known), None)


def _files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())


def _finish(folder: Path) -> None:
    """Add the marker and wait until all is on the disk."""
    written = [name for name in _files(folder) if name != MARKER]
    about = {"written by": f"gonio {__version__}", "files": written}
    (folder / MARKER).write_text(json.dumps(about, indent=1), encoding="utf-8")
    for path in [*folder.rglob("*"), folder]:
        to_disk(path)


def _take_place(folder: Path, place: Path) -> None:
    """Let a finished folder stand at its place; what stood there is then found, if at all, where the folder was."""
    if not place.exists():
        os.rename(folder, place)
    elif not exchange(folder, place):
        _one_after_the_other(folder, place)


def exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system has no such step."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    if renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))


def _one_after_the_other(folder: Path, place: Path) -> None:
    """The old folder is kept aside until the new one stands; who is killed in between leaves it to be put back."""
    aside, lock = new_folder(place.parent, "old")
    try:
        os.rename(place, aside / place.name)
        os.rename(folder, place)
    finally:
        try:
            restore(aside)
            remove_folder(aside)
        except OSError as e:
            raise GonioError(f"{place} is kept in {aside}, and could not be put back ({reason(e)}).") from None
        finally:
            os.close(lock)
