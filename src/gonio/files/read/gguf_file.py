"""The bytes of a GGUF file: its metadata and tensors, every size checked before anything is touched."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np

from gonio.core.archive import Archive, Entry, read_only
from gonio.core.errors import LoadError, missing_extra
from gonio.core.row_table import RowTable, Scaled

PLAIN = {0: np.dtype("<f4"), 1: np.dtype("<f2"), 28: np.dtype("<f8"), 30: np.dtype(ml_dtypes.bfloat16)}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, ARRAY = 8, 9
LONGEST_HEADER = 1 << 27  # the largest vocabularies need a tenth of it; bounds the work a damaged file can cause
LONGEST_NAME = 255
COUNT = struct.Struct("<Q")
ENCODER = re.compile(r"(nomic-|neo-|modern-|jina-|euro)?bert(-moe|-v\d)?|t5encoder|gemma-embedding|llama-embed")
POOLED = {1: "mean", 2: "first token", 3: "last token"}  # {arch}.pooling_type of models that give out embeddings


@dataclass(frozen=True)
class Dequantised:
    """Rows of ggml's block-quantised types, times a number: see `gguf.quants`."""

    type: int
    factor: float = 1.0

    def __call__(self, stored: np.ndarray, which: Any) -> np.ndarray:
        from gguf import GGMLQuantizationType, quants

        with np.errstate(all="ignore"):  # NaN and infinities are reported by the head, with their place
            rows = quants.dequantize(stored, GGMLQuantizationType(self.type))
            return rows if self.factor == 1.0 else rows * np.float32(self.factor)


@dataclass(frozen=True)
class Tensor:
    """Where a tensor lies: its file's bytes, where in them it starts, its axes in numpy's order, its ggml type."""

    data: np.ndarray
    start: int
    shape: tuple[int, ...]
    type: int


@dataclass(frozen=True)
class Array:
    """An array of the metadata that was stepped over: `count` values of type `kind` at `start`."""

    data: np.ndarray
    kind: int
    count: int
    start: int


class Gguf(Archive):
    """The metadata and tensors of a model, from one file or from all parts of a split one."""

    format = "gguf"

    def __init__(self, place: str, meta: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.meta, self.tensors = meta, dict(tensors)
        for name in ("cls.weight", "cls.output.weight"):  # ggml writes a table of one row with one axis
            t = self.tensors.get(name)
            if t is not None and len(t.shape) == 1:
                self.tensors[name] = replace(t, shape=(1, *t.shape))
        super().__init__(place, {k: Entry(t.shape, _type_name(t.type)) for k, t in self.tensors.items()})
        arch = meta.get("general.architecture", "")
        self.arch = arch if isinstance(arch, str) else ""

    def has(self, key: str) -> bool:
        """Whether the architecture's own metadata have the key."""
        return f"{self.arch}.{key}" in self.meta

    def number(self, key: str, default: float) -> float:
        """A number of the architecture's own metadata."""
        value = self.meta.get(f"{self.arch}.{key}", default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
            found = f"a {type(value).__name__}" if not isinstance(value, (int, float)) else value
            raise LoadError(f"load: {self.place}: {self.arch}.{key} is {found}; a finite number is needed.")
        return float(value)

    def texts(self, key: str) -> list[str] | None:
        """An array of strings of the metadata, None where there is none."""
        a = self.meta.get(key)
        if not isinstance(a, Array) or a.kind != TEXT:
            return None
        out, at, data = [], a.start, a.data.data  # the lengths were checked when the array was stepped over
        for _ in range(a.count):
            (size,) = COUNT.unpack_from(data, at)
            out.append(str(data[at + 8 : at + 8 + size], "utf-8", "replace"))
            at += 8 + size
        return out

    def head(self) -> tuple[str | None, Literal["tokens", "classes", "table", "unknown"], str]:
        """The tensor that holds the label rows, what they are, and why."""
        has = self.entries
        if "cls.output.weight" in has:
            return "cls.output.weight", "classes", "the classes of a classifier or reranker"
        if "cls.weight" in has and len(set(has["cls.weight"].shape)) == 2:  # square, it is a layer before the classes
            return "cls.weight", "classes", "the classes of a classifier or reranker"
        if "output.weight" in has:
            return "output.weight", "tokens", "the output head"
        table = "token_embd.weight"
        if table not in has:
            return None, "unknown", ""
        if ENCODER.fullmatch(self.arch):
            return table, "table", f"architecture {self.arch!r} is an encoder without an output head"
        pooling = int(self.number("pooling_type", 0))
        if pooling in POOLED:
            return table, "table", f"the model gives out embeddings ({POOLED[pooling]} pooling)"
        return table, "tokens", "for want of output.weight: the head is tied to the token embeddings"

    def headless(self) -> LoadError:
        """The complaint about a file without a head."""
        if not self.entries:
            tokens = self.meta.get("tokenizer.ggml.tokens")
            count = f"a vocabulary of {tokens.count:,} tokens and " if isinstance(tokens, Array) else ""
            return LoadError(
                f"load: {self.place} holds {count}no tensors; give the file that holds the model's weights."
            )
        return LoadError(
            f"load: {self.place} has neither output.weight nor token_embd.weight; it has {self.candidates()}; "
            f"name the table of label rows with tensor=."
        )

    def candidates(self, names: Any = None, most: int = 8) -> str:
        """The two-dimensional tensors with their shapes, quantised ones too."""
        if names is None:
            names = [k for k, e in self.entries.items() if len(e.shape) == 2]
        return super().candidates(names, most)

    def sized(self, name: str, length: int, per: str) -> np.ndarray:
        """A vector of known length; the length is checked before anything is read."""
        shape = self.entries[name].shape
        if shape != (length,):
            raise LoadError(
                f"load: {self.place}: {name} has shape {shape}; one entry per {per} is needed, ({length},)."
            )
        return self.vector(name)

    def _fetch(self, name: str) -> np.ndarray:
        stored, kind = self._stored(name), self.tensors[name].type
        return (stored if kind in PLAIN else Dequantised(kind)(stored, None)).reshape(-1)

    def rows(self, name: str, factor: float) -> RowTable:
        """A two-dimensional tensor as rows, each times `factor`."""
        if name not in self.entries:
            raise self.unknown(name)
        shape, dtype, kind = self.entries[name].shape, self.entries[name].dtype, self.tensors[name].type
        if len(shape) != 2:
            raise LoadError(
                f"load: {self.place}: {name} has shape {shape}; a table of label rows has two axes, so name one of "
                f"{self.candidates()}."
            )
        stored = self._stored(name)
        self.bytes_read += stored.nbytes
        if kind not in PLAIN:
            return RowTable(stored, dim=shape[1], unpack=Dequantised(kind, factor), kind=dtype)
        return RowTable(stored) if factor == 1.0 else RowTable(stored, unpack=Scaled(factor), kind=dtype)

    def _stored(self, name: str) -> np.ndarray:
        """The tensor where it lies in the file, a row a row: plain floats, or the bytes of a quantised type."""
        t = self.tensors[name]
        d = t.shape[-1]
        n = math.prod(t.shape[:-1])
        block, size = (1, PLAIN[t.type].itemsize) if t.type in PLAIN else _quantised(t.type, f"{self.place}: {name}")
        width = d // block * size
        if d % block or t.start + n * width > len(t.data):
            what = f"has rows of {d:,} numbers, packed by {block}" if d % block else f"ends at {t.start + n * width:,}"
            raise LoadError(
                f"load: {self.place}: {name} ({self.entries[name]}) {what}, and the file has {len(t.data):,} bytes; "
                f"it is cut off or damaged, so fetch it again."
            )
        raw = t.data[t.start : t.start + n * width].reshape(n, width)
        if t.type not in PLAIN:
            return raw
        plain = raw.view(PLAIN[t.type])
        return plain if plain.flags.aligned else read_only(plain.copy())  # compiled code may rely on alignment


def _type_name(kind: int) -> str:
    if kind in PLAIN:
        return PLAIN[kind].name
    try:
        from gguf import GGMLQuantizationType

        return GGMLQuantizationType(kind).name
    except (ImportError, ValueError):
        return f"ggml type {kind}"


def _quantised(kind: int, where: str) -> tuple[int, int]:
    """How many numbers a block of a quantised type packs, and into how many bytes."""
    try:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants
    except ImportError:
        raise missing_extra("load", "gguf", "gguf") from None
    try:
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        with np.errstate(all="ignore"):
            quants.dequantize(np.zeros((1, size), np.uint8), GGMLQuantizationType(kind))
    except (ValueError, KeyError, NotImplementedError):
        raise LoadError(
            f"load: {where} is stored in {_type_name(kind)}, which the installed package gguf cannot unpack; "
            f"upgrade it (pip install -U gguf), or give a file in a common type such as F16 or Q8_0."
        ) from None
    return block, size


# -- the header -----------------------------------------------------------------------------------------------------


def open_model(path: Path) -> Gguf:
    """The metadata and the places of all tensors; nothing but the header is read."""
    meta, tensors = _header(path)
    parts = meta.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        named = re.fullmatch(r"(.*)-\d{5}-of-(\d{5})\.gguf", path.name, re.DOTALL)
        if not named or int(named[2]) != parts:
            raise LoadError(
                f"load: {path} is one part of a model in {parts} files; keep them together under their own names, "
                f"NAME-00001-of-{parts:05d}.gguf and so on."
            )
        for i in range(1, parts + 1):
            part = path.with_name(f"{named[1]}-{i:05d}-of-{parts:05d}.gguf")
            if not part.is_file():
                raise LoadError(
                    f"load: {path} is one part of a model in {parts} files; {part.name} is absent: fetch it."
                )
            also, more = _header(part)
            meta, tensors = (also if i == 1 else meta), {**tensors, **more}
    return Gguf(str(path), meta, tensors)


def _header(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        empty = path.stat().st_size == 0
        data = None if empty else np.asarray(np.memmap(path, np.uint8, "r"))
    except (OSError, ValueError) as e:
        raise LoadError(f"load: {path} cannot be read ({e}).") from None
    if data is None:
        raise LoadError(f"load: {path} is empty; a GGUF file is needed, so fetch it again.")
    return _Header(data, str(path)).read()


class _Header:
    """A place in the header that only moves forward, and never past the end."""

    def __init__(self, data: np.ndarray, place: str) -> None:
        self.data, self.view, self.place = data, data.data, place
        self.at, self.end = 0, min(len(data), LONGEST_HEADER)

    def wrong(self, what: str) -> LoadError:
        return LoadError(f"load: {self.place}: {what}; the file is cut off or damaged, so fetch it again.")

    def step(self, size: int, what: str) -> int:
        """Move on by `size` bytes and give where they start."""
        if size > self.end - self.at:
            raise self.wrong(f"{what} needs {size:,} bytes at offset {self.at:,} of a header that ends by {self.end:,}")
        self.at += size
        return self.at - size

    def number(self, code: str, what: str) -> Any:
        return struct.unpack_from(f"<{code}", self.view, self.step(struct.calcsize(f"<{code}"), what))[0]

    def text(self, what: str, longest: int = LONGEST_NAME) -> str:
        """A string; one longer than `longest` (a chat template, a licence) is stepped over and left empty."""
        size = self.number("Q", what)
        start = self.step(size, what)
        return str(self.view[start : start + size], "utf-8", "replace") if size <= longest else ""

    def value(self, kind: int, key: str, depth: int = 0) -> Any:
        """A value of the metadata; arrays are stepped over, numeric ones at once."""
        if kind in SCALARS:
            return self.number(SCALARS[kind], key)
        if kind == TEXT:
            return self.text(key)
        if kind != ARRAY or depth > 8:
            raise self.wrong(f"{key} is of the unknown kind {kind}" if kind != ARRAY else f"{key} is nested too deeply")
        inner, count = self.number("I", key), self.number("Q", key)
        start = self.at
        if inner in SCALARS:
            self.step(count * struct.calcsize(f"<{SCALARS[inner]}"), key)
        elif inner == TEXT:
            self._step_texts(count, key)
        else:
            if count * 12 > self.end - self.at:  # an empty array takes 12 bytes
                self.step(count * 12, key)
            for _ in range(count):
                self.value(inner, key, depth + 1)
        return Array(self.data, inner, count, start)

    def _step_texts(self, count: int, what: str) -> None:
        self.step(8 * count, what)  # each has at least a length; this also bounds the loop
        self.at -= 8 * count
        at, last, view, unpack = self.at, self.end - 8, self.view, COUNT.unpack_from
        for _ in range(count):
            if at > last:
                break
            at += 8 + unpack(view, at)[0]
        self.step(at - self.at if at <= last + 8 else self.end, what)

    def read(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The metadata and the tensors."""
        if bytes(self.view[:4]) != b"GGUF":
            raise LoadError(
                f"load: {self.place} starts with {bytes(self.view[:4])!r}; a GGUF file starts with b'GGUF'."
            )
        self.step(4, "the magic")
        version = self.number("I", "the version")
        if version not in (2, 3):
            kind = (
                "written for big-endian machines" if version and not version & 0xFFFF else f"of GGUF version {version}"
            )
            raise LoadError(
                f"load: {self.place} is {kind}; little-endian files of version 2 and 3 are read, so convert the model "
                f"anew with a current llama.cpp."
            )
        tensor_count, key_count = self.number("Q", "the tensor count"), self.number("Q", "the metadata count")
        meta: dict[str, Any] = {}
        for count, least, what in ((key_count, 13, "metadata"), (tensor_count, 32, "tensors")):
            if count * least > self.end - self.at:
                raise self.wrong(f"{count:,} {what} are claimed in a file of {len(self.data):,} bytes")
        for _ in range(key_count):
            key = self.text("a key of the metadata")
            if key in meta:
                raise self.wrong(f"the metadata have {key!r} twice")
            meta[key] = self.value(self.number("I", key), repr(key))
        return meta, self._tensors(tensor_count, meta.get("general.alignment", 32))

    def _tensors(self, count: int, alignment: Any) -> dict[str, Tensor]:
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            raise self.wrong(f"general.alignment is {alignment!r}, not a power of two")
        found: dict[str, tuple[tuple[int, ...], int, int]] = {}
        for _ in range(count):
            name = self.text("a tensor's name")
            axes = self.number("I", name)
            if not name or name in found or not 1 <= axes <= 4:
                raise self.wrong(f"a tensor called {name!r} with {axes} axes comes after {len(found)} others")
            shape = [self.number("Q", name) for _ in range(axes)]
            kind, offset = self.number("I", name), self.number("Q", name)
            if 0 in shape or offset % alignment:
                raise self.wrong(f"tensor {name!r} has axes {shape[::-1]} and offset {offset:,}, alignment {alignment}")
            while len(shape) > 2 and shape[-1] == 1:
                shape.pop()
            found[name] = (tuple(shape[::-1]), kind, offset)
        start = -(-self.at // alignment) * alignment
        return {k: Tensor(self.data, start + offset, shape, kind) for k, (shape, kind, offset) in found.items()}
