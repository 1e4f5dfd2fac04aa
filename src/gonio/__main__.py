"""The command `gonio`, ready for Ctrl-C, SIGTERM and a lack of memory before anything else is imported.

Until the command runs and after it has ended a signal ends the process at once, with one sentence; while it runs it is
an exception, so that what is being written is tidied up. Whatever exception reaches the top after a signal is taken for
its consequence: libraries that are interrupted in the middle of their import raise all sorts.
"""

from __future__ import annotations

import errno
import os
import sys
from _signal import SIG_IGN, SIGINT, SIGTERM, getsignal, raise_signal, signal  # `signal` itself first imports enum

TYPE_CHECKING = False  # as typing has it, whose import would come before the signals are answered
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, NoReturn

WORDS = {int(SIGINT): "stopped.", int(SIGTERM): "ended from outside (SIGTERM)."}
NO_MEMORY = "there is not enough memory for this; free some, or raise the limit on it (ulimit -v)."
# How the loader of shared libraries and the maker of threads say so.
OUT_OF_MEMORY = ("cannot allocate memory", "failed to map segment", "can't start new thread", "unable to allocate")
_received: list[int] = []


class Terminated(SystemExit):
    """SIGTERM, as an exception that no handler of ordinary errors catches."""


def main() -> NoReturn:
    """Run the command; the process ends with its exit code."""
    heeded = [n for n in WORDS if getsignal(n) is not SIG_IGN]  # nohup and '&' in scripts ignore them
    _answer(heeded, _end_at_once)
    try:
        code = _run(heeded)
    except BaseException as e:
        _answer(heeded, _end_at_once)
        code = _told(_received[-1]) if _received else _explained(e)
    _answer(heeded, _end_at_once)
    code = _flushed(code)
    # All is said and written: what Python does to end itself would answer a signal by dying of it.
    _answer(heeded, SIG_IGN)
    sys.exit(code)


def _answer(heeded: list[int], handler: Callable[[int, FrameType | None], Any]) -> None:
    for number in heeded:
        signal(number, handler)


def _end_at_once(number: int, _: FrameType | None) -> NoReturn:
    os.write(2, f"gonio: {WORDS[number]}\n".encode())
    os._exit(128 + number)


def _raise(number: int, _: FrameType | None) -> NoReturn:
    _received.append(number)
    if number == SIGINT:
        raise KeyboardInterrupt
    raise Terminated(128 + number)


def _raise_again(dropped: Any) -> None:
    """An exception where Python must drop it, in a destructor say: that of a signal is raised again."""
    if _received and isinstance(dropped.exc_value, KeyboardInterrupt | Terminated):
        raise_signal(_received[-1])
    else:
        sys.__unraisablehook__(dropped)


def _run(heeded: list[int]) -> int:
    import click

    from gonio.cli import main as command

    sys.unraisablehook = _raise_again
    _answer(heeded, _raise)
    try:
        done = command.main(prog_name="gonio", standalone_mode=False)
    except click.ClickException as e:
        e.show()
        return e.exit_code
    except Terminated:
        raise
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else int(e.code is not None)
    return done if isinstance(done, int) else 0


def _told(number: int) -> int:
    print(f"gonio: {WORDS[number]}", file=sys.stderr)
    return 128 + number


def _explained(e: BaseException) -> int:
    """One sentence for what the machine refused; anything else is a mistake of ours, and shown as such."""
    text = str(e)
    if _lacks_memory(e):
        text = NO_MEMORY
    elif isinstance(e, OSError):
        text = f"{e.filename or 'output'}: {e.strerror or text}."
    else:
        raise e
    print(f"gonio: {text}", file=sys.stderr)
    return 2


def _lacks_memory(e: BaseException | None) -> bool:
    """Whether an exception, or one that led to it, comes from a lack of memory."""
    while e is not None:
        if isinstance(e, MemoryError) or any(x in str(e).lower() for x in OUT_OF_MEMORY):
            return True
        e = e.__cause__ or e.__context__
    return False


def _flushed(code: int) -> int:
    """The exit code, once what was printed has left; where it cannot leave, that is said and code 2."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as e:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python flushes once more at its end
            if e.errno != errno.EPIPE and stream is sys.stdout:
                print(f"gonio: the terminal's output could not be written ({e.strerror}).", file=sys.stderr)
                code = code or 2
    return code


if __name__ == "__main__":
    main()
