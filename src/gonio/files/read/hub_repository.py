"""Files of a model on the hub, whole or in part: from a cache where they are kept, else from its server."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import LoadError
from gonio.files.read.bounded_request import ServerAnswer, fetch
from gonio.files.read.hub_cache import (
    HubError,
    cached_file,
    gated_sentence,
    hub_library,
    is_offline,
    offline_sentence,
    revision_sentence,
    unknown_sentence,
)
from gonio.files.read.hub_name import COMMIT, HubName
from gonio.files.read.hub_store import Wanted, keep, kept, note_commit, noted_commit, place_of

CAP = 256 << 20  # a tokenizer or config larger than this is not one
PART = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class UnreachableError(HubError):
    """Nobody answers."""


class Repository:
    """Files of a model on the hub, whole or by range: from a cache where they are kept, else from its server.

    Requests go through huggingface_hub: its endpoint, its token. All that is read is of one commit, where the server
    tells which; only then is it kept.
    """

    def __init__(self, model: HubName) -> None:
        library = hub_library()
        self.model = model
        self.name = str(HubName(model.repository, model.revision))
        self.url: Callable[[str, str], str] = lambda file, at: library.hf_hub_url(model.repository, file, revision=at)
        self.library = library
        self.endpoint = str(library.constants.ENDPOINT)
        self.offline = is_offline()
        self.cannot = offline_sentence(model)  # what is said of a part that is nowhere here, where no server is asked
        self.bytes_read = 0
        self.held: dict[str, bytes | None] = {}
        self.seen: dict[str, tuple[int, str]] = {}  # length and etag of each file, so that its parts are of one
        self.told_unkept = False
        self.commit = self._commit()

    def whole(self, file: str) -> bytes | None:
        """A small file, or None where the repository has none of that name."""
        if file in self.held:
            return self.held[file]
        here = self._cached(file)
        if here is not None:
            self.held[file] = self._counted(here.read_bytes()) if here.stat().st_size <= CAP else None
            return self.held[file]
        wanted = self._wanted(file)
        found = kept(wanted) if wanted else None
        if found is not None:
            body = None if found.body is None else self._counted(found.body.tobytes())
        elif self.offline:
            body = None
        else:
            body = self._body(file, self._get(file, CAP))
        self.held[file] = body
        return body

    def span(self, file: str, start: int, stop: int, tell: str = "") -> tuple[bytes | np.ndarray, int] | None:
        """Bytes start..stop of a file and the length of the whole; None where there is no such file.

        `tell` is said before they are fetched from the server.
        """
        here = self._cached(file)
        if here is not None:
            size = here.stat().st_size
            length = max(min(stop, size) - start, 0)
            part = np.memmap(here, np.uint8, "r", start, (length,)).view(np.ndarray) if length else b""
            return self._counted(part), size
        wanted = self._wanted(file, start, stop)
        found = kept(wanted) if wanted else None
        if found is not None and found.body is None:
            return None
        if found is not None and found.body is not None and self._agrees(file, found.size, found.etag):
            return self._counted(found.body), found.size
        if self.offline:
            raise HubError(f"load: {self.cannot}")
        if tell:
            print(tell, file=sys.stderr, flush=True)
        answer = self._get(file, stop - start, (start, stop))
        if answer.status == 404:
            self._keep(wanted, None, 0, "")
            return None
        about = PART.fullmatch(answer.part)
        if answer.status != 206 or about is None:
            raise LoadError(
                f"load: the server of {self.name} does not serve parts of files (status {answer.status}); "
                f"download the model and give its folder."
            )
        first, last, size = (int(x) for x in about.groups())
        if first != start or last != min(stop, size) - 1 or len(answer.body) != last + 1 - first:
            raise LoadError(
                f"load: bytes {start:,} to {stop - 1:,} of {file} of {self.name} were asked for, and "
                f"{len(answer.body):,} came that are said to be {first:,} to {last:,} of {size:,}; try again."
            )
        if not self._agrees(file, size, answer.etag):
            kept_in = f"remove {place_of(wanted).parent} and" if wanted else "then"
            raise LoadError(
                f"load: parts of {file} of {self.name} are of different versions, by their length or etag; {kept_in} "
                f"load it again."
            )
        self._keep(wanted, answer.body, size, answer.etag)
        return self._counted(answer.body), size

    def _commit(self) -> str | None:
        """The commit of the revision, as the server tells it; where none can be asked, as it was last seen."""
        revision = self.model.revision
        if COMMIT.fullmatch(revision):
            return revision
        noted = noted_commit(self.endpoint, self.model.repository, revision)
        if self.offline:
            if noted is None:
                config = cached_file(self.model.repository, "config.json", revision)
                noted = None if config is None else config.parent.name
            if noted is None:
                raise HubError(f"load: {self.cannot}")
            return noted
        try:
            answer = self._ask("config.json", revision, CAP)
        except UnreachableError:
            if noted is None:
                raise
            print(f"{self.name} could not be reached; what was kept of it is read", file=sys.stderr, flush=True)
            self.offline = True
            self.cannot = f"{self.name} could not be reached, and not all of it was kept; try again, or give a folder."
            return noted
        self.held["config.json"] = self._body("config.json", answer, keep=False)
        commit = answer.commit if COMMIT.fullmatch(answer.commit) else None
        if commit is not None:
            if noted != commit:
                note_commit(self.endpoint, self.model.repository, revision, commit)
            body = self.held["config.json"]
            wanted = Wanted(self.endpoint, self.model.repository, commit, "config.json")
            if kept(wanted) is None:
                self._keep(wanted, body, len(body or b""), answer.etag)
        return commit

    def _body(self, file: str, answer: ServerAnswer, *, keep: bool = True) -> bytes | None:
        if answer.status not in (200, 404):
            raise LoadError(f"load: {file} of {self.name} could not be fetched (status {answer.status}).")
        body = self._counted(answer.body) if answer.status == 200 else None
        if keep:
            self._keep(self._wanted(file), body, len(answer.body), answer.etag)
        return body

    def _get(self, file: str, most: int, span: tuple[int, int] | None = None) -> ServerAnswer:
        answer = self._ask(file, self.commit or self.model.revision, most, span)
        if self.commit and answer.commit and answer.commit != self.commit:
            raise LoadError(
                f"load: {file} of {self.name} was asked for at commit {self.commit[:12]}, and came of "
                f"{answer.commit[:12]}; try again."
            )
        return answer

    def _ask(self, file: str, at: str, most: int, span: tuple[int, int] | None = None) -> ServerAnswer:
        """What the server answers: at most `most` bytes, within a time that their number allows."""
        headers = dict(self.library.utils.build_hf_headers()) | {"Accept-Encoding": "identity"}  # the file's own bytes
        if span is not None:
            headers["Range"] = f"bytes={span[0]}-{span[1] - 1}"
        try:
            answer = fetch(self.library.get_session(), self.url(file, at), headers, most)
        except LoadError as e:
            raise LoadError(f"load: {file} of {self.name} {e}") from None
        except Exception as e:
            raise UnreachableError(
                f"load: {self.name} could not be reached ({type(e).__name__}); check the network, or give a folder."
            ) from None
        if answer.error == "GatedRepo":
            raise HubError(f"load: {gated_sentence(self.model)}")
        if answer.error == "RepoNotFound":
            raise HubError(f"load: {unknown_sentence(self.model)}")
        if answer.error == "RevisionNotFound":
            raise HubError(f"load: {revision_sentence(self.model)}")
        if answer.status in (401, 403):
            raise HubError(
                f"load: {self.name} is private, gated or does not exist (status {answer.status}); log in with "
                f"`hf auth login`, or check the name."
            )
        return answer

    def _cached(self, file: str) -> Path | None:
        return cached_file(self.model.repository, file, self.commit) if self.commit else None

    def _wanted(self, file: str, start: int = 0, stop: int = 0) -> Wanted | None:
        return Wanted(self.endpoint, self.model.repository, self.commit, file, start, stop) if self.commit else None

    def _agrees(self, file: str, size: int, etag: str) -> bool:
        """Whether a part is of the same file as the parts before it."""
        return self.seen.setdefault(file, (size, etag)) == (size, etag)

    def _keep(self, wanted: Wanted | None, body: bytes | None, size: int, etag: str) -> None:
        why = keep(wanted, body, size, etag) if wanted is not None else ""
        if why and not self.told_unkept:
            self.told_unkept = True
            print(f"{self.name}: what is fetched is not kept ({why.removeprefix('load: ')})", file=sys.stderr)

    def _counted(self, body: Any) -> Any:
        self.bytes_read += len(body)
        return body
