"""fastText's own .bin models: the output matrix is the head, over labels or over words."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.archive import read_only
from gonio.core.errors import LoadError
from gonio.core.head import Link
from gonio.core.row_table import RowTable
from gonio.files.read.head_draft import Draft

MAGIC = 793712314
ARGS = "dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate".split()  # noqa: SIM905
LOSSES = {1: "hs", 2: "ns", 3: "softmax", 4: "ova"}
MODELS = {1: "cbow", 2: "skipgram", 3: "supervised"}
LINKS: dict[str, tuple[Link, str]] = {
    "softmax": ("softmax", "a softmax over all of them"),
    "ova": ("sigmoid", "one yes-or-no decision each (one against all)"),
    "ns": ("sigmoid", "negative sampling: a yes-or-no decision each"),
}
PREFIX = "__label__"
LARGEST_DICTIONARY = 30_000_000  # fastText's own limit
LONGEST_WORD = 1 << 16


def draft(path: Path, tensor: str | None = None) -> Draft:
    """The head of a fastText model: its output matrix, with one row a label (supervised) or a word.

    A model trained with hierarchical softmax is refused: its rows are the inner nodes of a tree.
    """
    place = str(path)
    if tensor not in (None, "output"):
        raise LoadError(f"load: {place}: a fastText model has no tensor {tensor!r}; the head is its 'output' matrix.")
    cursor = _Cursor(_map(Path(path)), place)
    args = _args(cursor)
    model, loss = MODELS[args["model"]], LOSSES[args["loss"]]
    if loss == "hs":
        raise LoadError(
            f"load: {place} was trained with hierarchical softmax (loss hs): the rows of its output are nodes of a "
            f"Huffman tree, not labels; train it with -loss softmax, ova or ns."
        )
    words, labels = _dictionary(cursor)
    if cursor.number("?", "the flag of the input matrix"):
        _skip_quantised(cursor)
    else:
        _matrix(cursor, "input matrix", None, args["dim"])
    if cursor.number("?", "the flag of the output matrix"):
        raise LoadError(
            f"load: {place} has a quantised output matrix (-qout), which gonio does not unpack; give the model from "
            f"before the quantisation, or quantise it without -qout."
        )
    names, kind = (labels, "labels") if model == "supervised" else (words, "words")
    start, shape = _matrix(cursor, "output matrix", len(names), args["dim"])
    if cursor.at != len(cursor.data):
        raise cursor.wrong(f"{len(cursor.data) - cursor.at:,} bytes follow the output matrix")
    stored = cursor.data[start : start + 4 * shape[0] * shape[1]].view("<f4").reshape(shape)
    if not stored.flags.aligned:  # compiled code may rely on alignment, and words before it have any length
        stored = read_only(stored.copy())
    out = Draft(place=place, format="fasttext", rows=RowTable(stored), bytes_read=cursor.at)
    out.tensors["W"] = "output"
    out.decide("weight", f"the output matrix, one row for each of the {len(names):,} {kind}")
    out.decide("bias", "fastText has none")
    out.link = LINKS[loss][0]
    out.decide("link", f"a {model} model trained with loss {loss}: {LINKS[loss][1]}")
    out.decide("inputs", "a mean of learned word vectors, which may lie anywhere")
    _name(out, names, kind)
    return out


def looks_like(head: bytes) -> bool:
    """Whether a file that starts with `head` seems to be a fastText model, with or without a magic number."""
    if len(head) < 48:
        return False
    numbers = struct.unpack_from("<12i", head)
    if numbers[0] == MAGIC:
        return True
    args = dict(zip(ARGS, numbers, strict=True))
    plausible = all(0 < args[x] < 10_000 for x in ("dim", "ws", "epoch", "minCount"))
    return plausible and args["loss"] in LOSSES and args["model"] in MODELS and 0 <= args["minn"] <= args["maxn"] < 1000


def _name(out: Draft, names: list[str], kind: str) -> None:
    """Labels as users see them: without the prefix that marks them in training text."""
    marked = kind == "labels" and all(x.startswith(PREFIX) for x in names)
    out.labels = [x.removeprefix(PREFIX) for x in names] if marked else names
    out.decide("labels", f"the dictionary's {kind}{f', with the prefix {PREFIX} taken off' if marked else ''}")


class _Cursor:
    """A place in the file that only moves forward, and never past the end."""

    def __init__(self, data: np.ndarray, place: str) -> None:
        self.data, self.view, self.place, self.at = data, data.data, place, 0

    def wrong(self, what: str) -> LoadError:
        return LoadError(f"load: {self.place}: {what}; the fastText model is cut off or damaged, so fetch it again.")

    def step(self, size: int, what: str) -> int:
        """Move on by `size` bytes and give where they start."""
        if size < 0 or size > len(self.data) - self.at:
            raise self.wrong(f"{what} needs {size:,} bytes at offset {self.at:,} of {len(self.data):,}")
        self.at += size
        return self.at - size

    def number(self, code: str, what: str) -> Any:
        return struct.unpack_from(f"<{code}", self.view, self.step(struct.calcsize(f"<{code}"), what))[0]


def _map(path: Path) -> np.ndarray:
    try:
        if path.stat().st_size:
            return np.asarray(np.memmap(path, np.uint8, "r"))
    except (OSError, ValueError) as e:
        raise LoadError(f"load: {path} cannot be read ({e}).") from None
    raise LoadError(f"load: {path} is empty; a fastText model is needed, so fetch it again.")


def _args(cursor: _Cursor) -> dict[str, int]:
    """The settings of the training, as fastText writes them first."""
    magic, version = cursor.number("i", "the magic"), cursor.number("i", "the version")
    if magic != MAGIC:
        raise LoadError(
            f"load: {cursor.place} does not start with fastText's magic number {MAGIC}; models from before 2017 lack "
            f"it, so train or save the model anew with a current fastText."
        )
    if version not in (11, 12):
        raise LoadError(f"load: {cursor.place} is a fastText model of version {version}; versions 11 and 12 are read.")
    args = {name: cursor.number("i", name) for name in ARGS}
    cursor.number("d", "t")
    if args["dim"] <= 0 or args["loss"] not in LOSSES or args["model"] not in MODELS:
        raise cursor.wrong(f"its header says dim {args['dim']}, loss {args['loss']}, model {args['model']}")
    return args


def _dictionary(cursor: _Cursor) -> tuple[list[str], list[str]]:
    """The words and the labels, in the order of their rows."""
    size, word_count, label_count = (cursor.number("i", f"the dictionary's {x}") for x in ("size", "words", "labels"))
    cursor.number("q", "the token count")
    pruned = cursor.number("q", "the size of the pruning index")
    least = 10  # the zero behind the word, a count and a type
    if not (0 <= size <= LARGEST_DICTIONARY and size * least <= len(cursor.data) - cursor.at):
        raise cursor.wrong(f"a dictionary of {size:,} entries is claimed in {len(cursor.data):,} bytes")
    found: tuple[list[str], list[str]] = ([], [])
    view, at, entry, empty = cursor.view, cursor.at, struct.Struct("<qb"), 0
    for i in range(size):
        word, zero, _ = bytes(view[at : at + 128]).partition(b"\0")
        if not zero:  # seldom: long words are read again, up to the limit
            word, zero, _ = bytes(view[at : at + LONGEST_WORD]).partition(b"\0")
        at += len(word) + 1
        empty += not word  # pretrained vectors bring in one at times; a second says that we read zeros
        if not zero or empty > 1 or at + entry.size > len(view):
            raise cursor.wrong(f"entry {i:,} of the dictionary {'is empty too' if empty > 1 else 'has no end'}")
        kind = entry.unpack_from(view, at)[1]
        at += entry.size
        if kind not in (0, 1):
            raise cursor.wrong(f"entry {i:,} of the dictionary is of the unknown type {kind}")
        found[kind].append(word.decode("utf-8", "replace"))
    cursor.at = at
    if (len(found[0]), len(found[1])) != (word_count, label_count):
        raise cursor.wrong(
            f"the dictionary has {len(found[0]):,} words and {len(found[1]):,} labels and claims {word_count:,} and "
            f"{label_count:,}"
        )
    cursor.step(8 * max(0, pruned), "the pruning index")
    return found


def _matrix(cursor: _Cursor, what: str, rows: int | None, dim: int) -> tuple[int, tuple[int, int]]:
    """Where a matrix starts, and its shape, checked against what the header told."""
    m, n = cursor.number("q", what), cursor.number("q", what)
    if m <= 0 or n != dim or rows not in (None, m):
        wanted = f"({'any' if rows is None else rows}, {dim})"
        raise cursor.wrong(f"the {what} has shape ({m}, {n}), and {wanted} is what its header and dictionary ask for")
    return cursor.step(4 * m * n, f"the {what}"), (m, n)


def _skip_quantised(cursor: _Cursor) -> None:
    """Step over a product-quantised input matrix (.ftz): codes, centroids, and those of the norms."""
    what = "the quantised input matrix"
    norms, m = cursor.number("?", what), cursor.number("q", what)
    cursor.number("q", what)
    cursor.step(cursor.number("i", what), what)
    for part in range(1 + norms):
        if part:
            cursor.step(m, what)
        dim = cursor.number("i", what)
        cursor.step(12, what)
        cursor.step(4 * 256 * dim, what)
