"""A request whose answer is bounded in bytes and in time while it arrives, whatever the server does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from gonio.core.errors import LoadError

QUIET = 60.0  # seconds without a byte
FIXED = 120.0  # seconds for any answer
SLOWEST = 50_000  # bytes a second beyond these
PIECE = 1 << 18
REDIRECTS = 5
NAMELESS = ("range", "accept-encoding", "user-agent")  # headers that carry no secret
TOLD = {"commit": ("X-Repo-Commit",), "etag": ("X-Linked-Etag", "ETag"), "error": ("X-Error-Code",)}


@dataclass(frozen=True)
class ServerAnswer:
    """The status, the bytes, and which part of the file they are said to be (Content-Range).

    The commit, the etag and the name of an error are what the first server says, not one it redirects to.
    """

    status: int
    body: bytes
    part: str
    commit: str = ""
    etag: str = ""
    error: str = ""


def fetch(session: Any, url: str, headers: dict[str, str], most: int) -> ServerAnswer:
    """Ask for a file and read at most `most` bytes; more, a compressed body or a server that drips is an error.

    A body is read only where it is what was asked for: a part (206) to a request with a Range, a whole (200) without.
    A redirect to another server gets no token: of the headers only those go there that name no one.
    """
    until = time.monotonic() + FIXED + most / SLOWEST
    home, told = _origin(url), {"commit": "", "etag": "", "error": ""}
    for _ in range(REDIRECTS):
        with _opened(session, url, headers) as (status, about, pieces):
            if _origin(url) == home:
                told = {k: told[k] or _first(about, names) for k, names in TOLD.items()}
            if status in (301, 302, 303, 307, 308):
                url = _next(url, about.get("Location", ""))
                if _origin(url) != home:
                    headers = {k: v for k, v in headers.items() if k.lower() in NAMELESS}
                continue
            if status != (206 if "Range" in headers else 200):
                return ServerAnswer(status, b"", "", **told)
            if about.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
                raise LoadError("came compressed, though its plain bytes were asked for; give a downloaded folder.")
            body = bytearray()
            _fill(body, pieces, most, until)
            return ServerAnswer(status, bytes(body), about.get("Content-Range", ""), **told)
    raise LoadError(f"is redirected more than {REDIRECTS} times; download it and give its folder.")


def _next(url: str, location: str) -> str:
    """Where a redirect leads; never to another kind of address, nor from a safe one to an open one."""
    target = urljoin(url, location)
    kinds = urlsplit(url).scheme, urlsplit(target).scheme
    if not location or kinds[1] not in ("http", "https") or kinds == ("https", "http"):
        raise LoadError(f"is redirected to {location[:80]!r}, which is not followed; download it and give its folder.")
    return target


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise LoadError(
            f"is redirected to {url[:80]!r}, which is no address; download it and give its folder."
        ) from None
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)


def _first(about: Any, names: tuple[str, ...]) -> str:
    return next((str(about[n])[:200] for n in names if about.get(n)), "")


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
        with session.stream("GET", url, headers=headers, timeout=QUIET, follow_redirects=False) as answer:
            yield answer.status_code, answer.headers, answer.iter_raw()
        return
    answer = session.get(url, headers=headers, timeout=QUIET, allow_redirects=False, stream=True)
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
