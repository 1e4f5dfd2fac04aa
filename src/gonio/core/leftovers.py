"""Temporaries that gonio makes beside its outputs: their names, their locks, and the removal of abandoned ones.

A process that is killed cannot tidy up. So every temporary has a name that only gonio gives, with the process in it,
and is locked while its process lives; the next write into the same folder removes those that nobody locks.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system: the process in the name decides alone
    fcntl = None

NAME = re.compile(r"\.gonio-(\d+)-[0-9a-f]{16}\.(part|folder|old)(\..{0,31})?", re.DOTALL)


def new_file(folder: Path, suffix: str) -> tuple[Path, int]:
    """A new, locked, empty file in a folder, with the rights of any new file there; its path and handle."""
    suffix = suffix if len(os.fsencode(suffix)) <= 32 else ""
    while True:
        path = folder / _name("part", suffix)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if _locked(path, handle):
            return path, handle


def new_folder(parent: Path, kind: str = "folder") -> tuple[Path, int]:
    """A new, locked, empty folder in another; its path and handle."""
    while True:
        path = parent / _name(kind)
        path.mkdir()
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # taken for abandoned before it was locked
        if _locked(path, handle):
            return path, handle


def _name(kind: str, suffix: str = "") -> str:
    return f".gonio-{os.getpid()}-{secrets.token_hex(8)}.{kind}{suffix}"


def _locked(path: Path, handle: int) -> bool:
    """Lock what was just made; False, and the handle closed, where a tidying process was quicker and removed it."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
    if path.exists():
        return True
    os.close(handle)
    return False


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that no longer live left unfinished in a folder; whatever goes wrong is left for later."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = [e.name for e in entries if NAME.fullmatch(e.name)]
        for name in names:
            with contextlib.suppress(OSError):
                _remove_if_abandoned(folder / name)


def _remove_if_abandoned(path: Path) -> None:
    found = NAME.fullmatch(path.name)
    assert found is not None
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        about = os.fstat(handle)
        is_folder = stat.S_ISDIR(about.st_mode)
        expected = is_folder == (found[2] != "part") and (is_folder or stat.S_ISREG(about.st_mode))
        mine = not hasattr(os, "getuid") or about.st_uid == os.getuid()
        if not (expected and mine and _abandoned(handle, int(found[1]))):
            return
        if found[2] == "old":
            restore(path)
        if is_folder:
            remove_folder(path)
        else:
            path.unlink()
    finally:
        os.close(handle)


def _abandoned(handle: int, process: int) -> bool:
    """Whether nobody holds the lock; where there are no locks, whether the process is gone."""
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
        else:
            return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def restore(aside: Path) -> None:
    """Put what a folder keeps aside back where it stood, unless something else stands there by now."""
    for kept in list(aside.iterdir()):
        if not os.path.lexists(aside.parent / kept.name):
            os.rename(kept, aside.parent / kept.name)


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(path, ignore_errors=True)
