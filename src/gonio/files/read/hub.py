"""A model on the hub: the header of its safetensors is read, then only the bytes of the head, by range requests."""

from __future__ import annotations

import json

import numpy as np

from gonio.core.archive import Archive, Entry
from gonio.core.errors import LoadError
from gonio.files.read import checkpoint, names
from gonio.files.read.head_draft import Draft
from gonio.files.read.hub_name import HubName, hub_name, is_inside
from gonio.files.read.hub_repository import Repository
from gonio.files.read.safetensors import dtype_of, header_length, parse_header

FIRST = 1 << 18  # one request usually brings the whole header
FILES = 2000  # no model is in more parts; the largest have a few hundred


class HubArchive(Archive):
    """The tensors of a model on the hub; reading one fetches its bytes and no more."""

    format = "hub (safetensors)"

    def __init__(self, repository: Repository, file: str = "") -> None:
        self.repository = repository
        self.where: dict[str, tuple[str, int, int]] = {}
        index = None if file else repository.whole("model.safetensors.index.json")
        if index is None:
            files = [file or "model.safetensors"]
        else:
            try:
                files = sorted({str(v) for v in json.loads(index)["weight_map"].values()})
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise LoadError(f"load: the index of {repository.name} is damaged.") from None
            if not all(is_inside(x) for x in files):
                raise LoadError(f"load: the index of {repository.name} names files outside of it; it is damaged.")
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
        raw, size = bytes(first[0]), first[1]
        length = header_length(raw[:8], size, f"{self.repository.name}/{file}")
        if 8 + length > len(raw):
            rest = self.repository.span(file, len(raw), 8 + length)
            raw += bytes(rest[0]) if rest else b""
        found, ranges = parse_header(raw[8 : 8 + length], size - 8 - length, f"{self.repository.name}/{file}")
        return found, ranges, 8 + length

    def cost(self, name: str) -> int:
        """How many bytes reading a tensor fetches."""
        _, start, stop = self.where[name]
        return stop - start

    def _fetch(self, name: str) -> np.ndarray:
        file, start, stop = self.where[name]
        entry = self.entries[name]
        if stop == start:
            return np.empty(entry.shape, dtype_of(entry.dtype))
        told = f"{self.repository.name}: fetching {name} ({entry}), {stop - start:,} bytes of {file}"
        # the head itself: what it costs is said before it is fetched
        got = self.repository.span(file, start, stop, told if len(entry.shape) == 2 else "")
        if got is None:
            raise LoadError(f"load: {file} of {self.repository.name} is gone; try again.")
        return np.frombuffer(got[0], np.uint8).view(dtype_of(entry.dtype)).reshape(entry.shape)


def draft(name: str | HubName, tensor: str | None) -> Draft:
    """The head of a model on the hub, or of a safetensors file of it with the config and tokenizer beside that."""
    model = hub_name(name)
    repository = Repository(model)
    beside = model.file.rpartition("/")[0]

    def files(file: str) -> bytes | None:
        return repository.whole(f"{beside}/{file}" if beside else file)

    raw = files("config.json")
    archive = HubArchive(repository, model.file)
    if raw is None:
        out = names.draft(archive, tensor)
    else:
        config = checkpoint.parse_config(raw, f"{repository.name}/config.json")
        out = checkpoint.draft(archive, config, files, tensor)
    out.bytes_read = repository.bytes_read
    return out
