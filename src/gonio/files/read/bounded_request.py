"""A request whose answer is bounded in bytes and in time while it arrives, whatever the server does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gonio.core.errors import LoadError

QUIET = 60.0  # seconds without a byte
FIXED = 120.0  # seconds for any answer
SLOWEST = 50_000  # bytes a second beyond these
PIECE = 1 << 18


@dataclass(frozen=True)
class ServerAnswer:
    """The status, the bytes, and which part of the file they are said to be (Content-Range)."""

    status: int
    body: bytes
    part: str


def fetch(session: Any, url: str, headers: dict[str, str], most: int) -> ServerAnswer:
    """Ask for a file and read at most `most` bytes; more, a compressed body or a server that drips is an error.

    A body is read only where it is what was asked for: a part (206) to a request with a Range, a whole (200) without.
    """
    until = time.monotonic() + FIXED + most / SLOWEST
    with _opened(session, url, headers) as (status, about, pieces):
        if status != (206 if "Range" in headers else 200):
            return ServerAnswer(status, b"", "")
        if about.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            raise LoadError("came compressed, though its plain bytes were asked for; download it and give its folder.")
        body = bytearray()
        _fill(body, pieces, most, until)
        return ServerAnswer(status, bytes(body), about.get("Content-Range", ""))


def _fill(body: bytearray, pieces: Iterator[bytes], most: int, until: float) -> None:
    for piece in pieces:
        body += piece
        if len(body) > most:
            raise LoadError(f"is longer than the {most:,} bytes that were expected; the rest was not read.")
        if time.monotonic() > until:
            raise LoadError(f"came too slowly: {len(body):,} bytes in all the time that {most:,} may take; try again.")


@contextmanager
def _opened(session: Any, url: str, headers: dict[str, str]) -> Iterator[tuple[int, Any, Iterator[bytes]]]:
    """The status, the headers and the undecoded pieces of an answer.

    huggingface_hub spoke requests first and httpx since 1.0; the two call this differently.
    """
    if "httpx" in type(session).__module__:
        with session.stream("GET", url, headers=headers, timeout=QUIET, follow_redirects=True) as answer:
            yield answer.status_code, answer.headers, answer.iter_raw()
        return
    answer = session.get(url, headers=headers, timeout=QUIET, allow_redirects=True, stream=True)
    try:
        yield answer.status_code, answer.headers, _pieces(answer.raw)
    finally:
        answer.close()


def _pieces(raw: Any) -> Iterator[bytes]:
    """The bytes of an answer of urllib3 as they come: `read` would wait for a full piece while a server drips."""
    as_they_come = hasattr(raw, "read1")
    while True:
        piece = raw.read1(PIECE, decode_content=False) if as_they_come else raw.read(1 << 12, decode_content=False)
        if not piece:
            return
        yield piece
