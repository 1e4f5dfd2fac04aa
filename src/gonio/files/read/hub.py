"""A model on the hub: the header of its safetensors is read, then only the bytes of the head, by range requests."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable

import numpy as np

from gonio.core.archive import Archive, Entry
from gonio.core.errors import LoadError, missing_extra
from gonio.files.read import checkpoint, names
from gonio.files.read.bounded_request import ServerAnswer, fetch
from gonio.files.read.head_draft import Draft
from gonio.files.read.safetensors import dtype_of, header_length, parse_header

FIRST = 1 << 18  # one request usually brings the whole header
CAP = 256 << 20  # a tokenizer or config larger than this is not one
FILES = 2000  # no model is in more parts; the largest have a few hundred
PART = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class Repository:
    """Files of a model on the hub, whole or by range. Requests go through huggingface_hub: its endpoint, its token."""

    def __init__(self, name: str, revision: str = "main") -> None:
        try:
            import huggingface_hub
        except ImportError:
            raise missing_extra("load", "huggingface_hub", "hub") from None
        self.name = name
        self.url: Callable[[str], str] = lambda file: huggingface_hub.hf_hub_url(name, file, revision=revision)
        self.session = huggingface_hub.get_session()
        self.headers = huggingface_hub.utils.build_hf_headers()
        self.fetched = 0

    def _get(self, file: str, most: int, span: tuple[int, int] | None = None) -> ServerAnswer:
        """What the server answers: at most `most` bytes, within a time that their number allows."""
        headers = dict(self.headers) | {"Accept-Encoding": "identity"}  # the bytes of the file itself are counted
        if span is not None:
            headers["Range"] = f"bytes={span[0]}-{span[1] - 1}"
        try:
            answer = fetch(self.session, self.url(file), headers, most)
        except LoadError as e:
            raise LoadError(f"load: {file} of {self.name} {e}") from None
        except Exception as e:
            raise LoadError(
                f"load: {self.name} could not be reached ({type(e).__name__}); check the network, or give a folder."
            ) from None
        if answer.status in (401, 403):
            raise LoadError(
                f"load: {self.name} is private, gated or does not exist (status {answer.status}); log in with "
                f"`hf auth login`, or check the name."
            )
        return answer

    def whole(self, file: str) -> bytes | None:
        """A small file, or None where the repository has none of that name."""
        answer = self._get(file, CAP)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise LoadError(f"load: {file} of {self.name} could not be fetched (status {answer.status}).")
        self.fetched += len(answer.body)
        return answer.body

    def span(self, file: str, start: int, stop: int) -> tuple[bytes, int] | None:
        """Bytes start..stop of a file and the length of the whole; None where there is no such file."""
        answer = self._get(file, stop - start, (start, stop))
        if answer.status == 404:
            return None
        about = PART.fullmatch(answer.part)
        if answer.status != 206 or about is None:
            raise LoadError(
                f"load: the server of {self.name} does not serve parts of files (status {answer.status}); "
                f"download the model and give its folder."
            )
        first, last, whole = (int(x) for x in about.groups())
        if first != start or last != min(stop, whole) - 1 or len(answer.body) != last + 1 - first:
            raise LoadError(
                f"load: bytes {start:,} to {stop - 1:,} of {file} of {self.name} were asked for, and "
                f"{len(answer.body):,} came that are said to be {first:,} to {last:,} of {whole:,}; try again."
            )
        self.fetched += len(answer.body)
        return answer.body, whole


class HubArchive(Archive):
    """The tensors of a model on the hub; reading one fetches its bytes and no more."""

    format = "hub (safetensors)"

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.where: dict[str, tuple[str, int, int]] = {}
        index = repository.whole("model.safetensors.index.json")
        if index is None:
            files = ["model.safetensors"]
        else:
            try:
                files = sorted({str(v) for v in json.loads(index)["weight_map"].values()})
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise LoadError(f"load: the index of {repository.name} is damaged.") from None
            if len(files) > FILES:
                raise LoadError(
                    f"load: the index of {repository.name} names {len(files):,} files, and each is a request; at most "
                    f"{FILES:,} are read. Download the model and give its folder."
                )
        entries: dict[str, Entry] = {}
        for file in files:
            found, ranges, offset = self._header(file)
            entries |= found
            self.where |= {n: (file, offset + a, offset + b) for n, (a, b) in ranges.items()}
        super().__init__(repository.name, entries)

    def _header(self, file: str) -> tuple[dict[str, Entry], dict[str, tuple[int, int]], int]:
        first = self.repository.span(file, 0, FIRST)
        if first is None:
            raise LoadError(
                f"load: {self.repository.name} has no {file}; only models with safetensors weights are read there."
            )
        raw, size = first
        length = header_length(raw[:8], size, f"{self.repository.name}/{file}")
        if 8 + length > len(raw):
            rest = self.repository.span(file, len(raw), 8 + length)
            raw += rest[0] if rest else b""
        found, ranges = parse_header(raw[8 : 8 + length], size - 8 - length, f"{self.repository.name}/{file}")
        return found, ranges, 8 + length

    def cost(self, name: str) -> int:
        """How many bytes reading a tensor fetches."""
        _, start, stop = self.where[name]
        return stop - start

    def _fetch(self, name: str) -> np.ndarray:
        file, start, stop = self.where[name]
        entry = self.entries[name]
        if len(entry.shape) == 2:  # the head itself: say what it costs before it is fetched
            print(
                f"{self.repository.name}: fetching {name} ({entry}), {stop - start:,} bytes of {file}",
                file=sys.stderr,
                flush=True,
            )
        if stop == start:
            return np.empty(entry.shape, dtype_of(entry.dtype))
        got = self.repository.span(file, start, stop)
        if got is None:
            raise LoadError(f"load: {file} of {self.repository.name} is gone; try again.")
        return np.frombuffer(got[0], np.uint8).view(dtype_of(entry.dtype)).reshape(entry.shape)


def draft(name: str, tensor: str | None) -> Draft:
    """The head of a model on the hub."""
    repository = Repository(name)
    raw = repository.whole("config.json")
    archive = HubArchive(repository)
    if raw is None:
        out = names.draft(archive, tensor)
    else:
        out = checkpoint.draft(archive, checkpoint.parse_config(raw, f"{name}/config.json"), repository.whole, tensor)
    out.bytes_read = repository.fetched
    return out
