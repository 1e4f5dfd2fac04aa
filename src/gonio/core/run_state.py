"""The state of a long run: finished blocks in a folder, so that the same question goes on where it was stopped.

    with resumable("DIR", head): gonio.can_win(head)

`state.json` says of which data, question and version the blocks are; another state is refused. A block is written
whole or not at all, and found again by the name of its work, what that depends on, and its item. Without a folder of
the user's, blocks are kept in the cache folder from the first minute on, and removed on success.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.atomic_write import reason
from gonio.core.block_file import from_bytes, to_bytes
from gonio.core.errors import GonioError
from gonio.core.leftovers import NAME, new_file, remove_leftovers
from gonio.core.shared_files import place_of
from gonio.core.version import __version__

try:
    import fcntl
except ImportError:  # no such locks on this system: two runs in one folder are not told apart
    fcntl = None

MINUTE = 60.0  # seconds of work from which blocks are kept where no folder was named
STEPS = 5e11  # multiplications that take less than a minute everywhere
_states: list[RunState] = []


class RunState:
    """A folder of finished blocks, locked by the run that uses it."""

    def __init__(self, folder: Path, about: dict[str, Any], *, named: bool) -> None:
        self.folder, self.about = folder, about
        self.named = named  # by the user: then what goes wrong with it is told; the cache folder is only a help
        self.keeps_from = time.monotonic() + MINUTE
        self.lock: int | None = None
        self.broken = False  # work was stopped: what is finished stays for the next time
        if named:
            self._open()
        elif folder.exists():
            self.keeps_from = 0.0

    @property
    def keeping(self) -> bool:
        """Whether blocks are written by now."""
        if self.lock is None and not self.named and time.monotonic() >= self.keeps_from:
            self._try_open()
        return self.lock is not None

    def _try_open(self) -> None:
        try:
            self._open()
        except GonioError:  # no such folder can be had, or another run of the same question uses it
            self.keeps_from = math.inf

    def keep(self, name: str, raw: bytes) -> None:
        """Write a block; where the folder is not the user's and has no room, nothing more is kept."""
        try:
            self.put(name, raw)
        except GonioError:
            if self.named:
                raise
            self.close()
            self.keeps_from = math.inf

    def _open(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            inside = {p.name for p in self.folder.iterdir() if not NAME.fullmatch(p.name)}
            if inside - {"lock"} and "state.json" not in inside:
                raise GonioError(f"state: {self.folder} holds other files and no state; give a new or an empty folder.")
            self.lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as e:
            raise GonioError(
                f"state: the folder {self.folder} cannot be used ({reason(e)}); give one that you may write in."
            ) from None
        if fcntl is not None:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as e:
                if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    self.close()
                    raise GonioError(
                        f"state: another run that is alive uses {self.folder}; wait for it, or give another folder."
                    ) from None
        self._check()
        remove_leftovers(self.folder)

    def _check(self) -> None:
        file = self.folder / "state.json"
        if file.exists():
            try:
                found = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                found = {}
            for part, mine in self.about.items():
                if found.get(part) != mine:
                    self.close()
                    raise GonioError(
                        f"state: {self.folder} is the state of another {part} ({str(found.get(part))[:80]}, here "
                        f"{str(mine)[:80]}); give another folder, or remove this one."
                    )
        else:
            self.put("state.json", json.dumps(self.about, indent=1).encode())

    def put(self, name: str, raw: bytes) -> None:
        """Write a file of the folder, whole or not at all."""
        temporary = None
        try:
            temporary, handle = new_file(self.folder, "")
            try:
                view = memoryview(raw)
                while view:
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
                os.replace(temporary, self.folder / name)
            finally:
                os.close(handle)
        except OSError as e:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    temporary.unlink()
            raise GonioError(
                f"state: a block could not be kept in {self.folder} ({reason(e)}); make room and ask again: what is "
                f"there is whole, and the same command goes on from it."
            ) from None

    def close(self) -> None:
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def remove(self) -> None:
        """Remove the folder and all in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Blocks:
    """The finished blocks of one list of items."""

    def __init__(self, state: RunState, name: str, key: Sequence[Any], items: Sequence[Any]) -> None:
        self.state, self.name, self.key, self.items = state, name, key, items
        self.prefix = ""
        self.held: list[tuple[int, Any]] = []  # finished before anything is kept

    def _file(self, k: int) -> str:
        if not self.prefix:
            self.prefix = _digest(("gonio block 1", self.name, *self.key))[:24]
        item = self.items[k]
        return f"{self.prefix}-{_digest(item if isinstance(item, tuple) else (item,))[:16]}.block"

    def read(self, k: int) -> Any:
        """The kept result of an item; None where there is none, or none that is whole."""
        if not self.state.keeping:
            return None
        try:
            raw = (self.state.folder / self._file(k)).read_bytes()
        except OSError:
            return None
        return from_bytes(raw)

    def write(self, k: int, result: Any) -> None:
        """Keep a result, now or once blocks are kept."""
        self.held.append((k, result))
        if self.state.keeping:
            for at, finished in self.held:
                self.state.keep(self._file(at), to_bytes(finished))
            self.held.clear()


def _digest(parts: Sequence[Any]) -> str:
    h = hashlib.sha256()
    for p in parts:
        lies = place_of(p) if isinstance(p, np.ndarray) else None
        p = p if lies is None else (lies.file, lies.offset, lies.shape, str(lies.dtype), lies.seen)  # known unread
        raw = np.ascontiguousarray(p) if isinstance(p, np.ndarray) else np.frombuffer(repr(p).encode(), np.uint8)
        h.update(f"{raw.dtype} {raw.shape};".encode())
        h.update(memoryview(raw.reshape(-1).view(np.uint8)))  # type: ignore[arg-type]
    return h.hexdigest()


def blocks(name: str, key: Sequence[Any] | None, items: Sequence[Any]) -> Blocks | None:
    """Where the finished blocks of a list of items are kept; None where nothing is, and where nothing tells them."""
    return Blocks(_states[-1], name, key, items) if _states and key is not None else None


def broken() -> None:
    """Remember that work was stopped."""
    for state in _states:
        state.broken = True


def active(steps: float) -> bool:
    """Whether finished blocks of work of so many operations are kept; less than a minute's is not in the cache."""
    return bool(_states) and (_states[-1].named or _states[-1].keeping or steps > STEPS)


@contextmanager
def resumable(folder: str | os.PathLike[str] | None, *data: Any, question: str = "") -> Iterator[None]:
    """Keep what is finished in a folder, so that the same question about the same data goes on where it stopped.

    folder : a new or empty folder, or the state of the same question; None for the user's cache folder, where it is
        kept from the first minute of work on, and removed on success
    data : what the question is about: heads, or arrays
    question : the rest of what is asked, in words; a state of another question is refused

    >>> with resumable(None, question="an example"):
    ...     pass
    """
    about = {"version": __version__, "question": question, "head": _of(data)}
    if folder is not None:
        state = RunState(Path(folder), about, named=True)
    else:
        name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:24]
        state = RunState(cache_folder() / "runs" / name, about, named=False)
    _states.append(state)
    try:
        yield
    except SystemExit:  # an exit code, not a failure of the work
        raise
    except BaseException:
        state.broken = True
        raise
    finally:
        _states.remove(state)
        if not (state.named or state.broken) and state.lock is not None:
            state.remove()
        state.close()


def _of(data: Sequence[Any]) -> str:
    """The digest of what a question is about."""
    parts = [getattr(x, "digest", None) or (x if isinstance(x, np.ndarray) else repr(x)) for x in data]
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else _digest(parts)


def cache_folder() -> Path:
    """gonio's folder in the user's cache: $XDG_CACHE_HOME/gonio, or ~/.cache/gonio."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "gonio"
