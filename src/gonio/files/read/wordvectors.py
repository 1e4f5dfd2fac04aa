"""Word vectors: word2vec's text and binary files, GloVe's text, and gensim's objects."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from gonio.core.archive import read_only
from gonio.core.errors import LoadError
from gonio.core.row_table import RowTable
from gonio.files.read.head_draft import Draft

HEADER = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t]*\r?\n")
GZIP = b"\x1f\x8b"
LONGEST_LINE = 1 << 24  # a million numbers
LONGEST_WORD = 1 << 16
MOST_BLANK = 1000
BLOCK = 1 << 22  # numbers gathered before a new block is begun
SWELL = 50  # numbers in text shrink three- to fourfold; what grows more than this when unpacked is a trap


def text(path: Path, tensor: str | None = None) -> Draft:
    """Word vectors a line, behind a line "count dim" (word2vec, fastText) or without one (GloVe); gzip is unpacked.

    The last `dim` fields of a line are its numbers, so a word may contain spaces.
    """
    place = _only_table(path, tensor)
    with _opened(path) as stream:
        if stream.gzipped and looks_like_binary(stream.peek()):
            return _binary(stream, place)
        first = stream.line(1)
        header = HEADER.fullmatch(first if first.endswith(b"\n") else first + b"\n")
        if header:
            claimed, dim = int(header[1]), int(header[2])
            stream.must_hold(claimed, dim, 2)
            table, number, line = _Table(dim), 2, stream.line(2)
        else:
            claimed, dim = None, _width(first)
            if not dim:
                raise LoadError(
                    f"load: line 1 of {place} is {_shown(first)}; word vectors start with a line 'count dim' or with a "
                    f"word and its numbers."
                )
            table, number, line = _Table(dim), 1, first
        words: list[str] = []
        blank = 0
        while line:
            if line.isspace():
                blank += 1
                if blank > MOST_BLANK:
                    raise LoadError(
                        f"load: {place} has more than {MOST_BLANK:,} blank lines; these are no word vectors."
                    )
            else:
                word, values = _parse(line, dim, f"load: line {number:,} of {place}")
                words.append(word)
                table.add(values)
            number, line = number + 1, stream.line(number + 1)
        if claimed is not None and claimed != len(words):
            raise LoadError(
                f"load: {place} has {len(words):,} vectors and its first line claims {claimed:,}; it is cut off or "
                f"damaged, so fetch it again."
            )
        kind = "word2vec text" if header else "GloVe text"
        return _draft(place, kind, table.whole(), words, stream.taken)


def binary(path: Path, tensor: str | None = None) -> Draft:
    """word2vec's binary file: a line "count dim", then for each word its name, a space, and `dim` float32."""
    place = _only_table(path, tensor)
    with _opened(path) as stream:
        return _binary(stream, place)


def looks_like_text(head: bytes) -> bool:
    """Whether a file that starts with `head` seems to hold word vectors in text."""
    header = HEADER.match(head)
    rest = head[header.end() :] if header else head
    line, end, _ = rest.partition(b"\n")
    if not end:  # the last field may be cut
        line = b" ".join(line.split()[:-1])
    if _odd(line):
        return False
    numbers = _width(line)
    return numbers > 1 or (bool(header) and (numbers == 1 or not line.strip()))


def looks_like_binary(head: bytes) -> bool:
    """Whether a file that starts with `head` seems to be word2vec's binary file."""
    header = HEADER.match(head)
    return bool(header) and len(head) > header.end() and not looks_like_text(head)


def keyed(x: Any) -> Draft:
    """gensim's vectors, or the output rows of its Word2Vec, FastText and Doc2Vec models; gensim is not imported."""
    who = f"a {type(x).__name__}"
    vectors = getattr(x, "wv", x)
    names = getattr(vectors, "index_to_key", None)
    output = getattr(x, "syn1neg", None) if vectors is not x else None
    if names is None or (output is None and getattr(vectors, "vectors", None) is None):
        raise LoadError(f"load: {who} has no index_to_key and vectors; pass gensim's KeyedVectors or a trained model.")
    words = [str(k) for k in names]
    if vectors is not x and output is None and getattr(x, "hs", 0):
        raise LoadError(
            f"load: {who} was trained with hierarchical softmax (hs=1) alone: its output rows are nodes of a Huffman "
            f"tree, not words; train it with negative sampling, or pass its vectors (model.wv)."
        )
    negative = output is not None and getattr(x, "negative", 0) > 0
    table: Any = output if negative else vectors.vectors
    if np.ndim(table) != 2 or len(table) != len(words):
        raise LoadError(
            f"load: {who} has {len(words):,} words and rows of shape {np.shape(table)}; one row a word is needed."
        )
    if not negative:
        return _draft(who, "gensim", table, words, 0)
    out = Draft(
        place=who, format="gensim", rows=RowTable(table), link="sigmoid", labels=words, tensors={"W": "syn1neg"}
    )
    out.decide("weight", "syn1neg, the output rows of negative sampling")
    out.decide("bias", "negative sampling has none")
    out.decide("link", f"trained with {x.negative} negative samples: a yes-or-no decision for each word")
    out.decide("inputs", "a word's vector or a mean of several, which may lie anywhere")
    out.decide("labels", "wv.index_to_key")
    return out


def _draft(place: str, kind: str, table: Any, words: list[str], taken: int) -> Draft:
    out = Draft(place=place, format=kind, rows=RowTable(table), link="vectors", labels=words, bytes_read=taken)
    out.decide("weight", "the vectors, one a word")
    out.decide("bias", "word vectors have none")
    out.decide("link", "word vectors: one of the two tables that are trained on each other's dot products")
    out.decide("inputs", "not known: the table that these were trained against is not in the file")
    out.decide("labels", "the words")
    if kind == "GloVe text":
        out.offset_in = "the biases of GloVe's training"
        out.decide(
            "offset",
            "a file without a line of counts is as GloVe writes it; its biases take up an offset",
            assumed=True,
        )
    else:
        why = "a file with a line of counts is as word2vec and fastText write it; they train without biases"
        out.decide("offset", f"{why}, so nothing takes up an offset", assumed=True)
    return out


def _only_table(path: Path, tensor: str | None) -> str:
    if tensor is not None:
        raise LoadError(f"load: {path} holds word vectors and no tensor {tensor!r}; leave tensor= out.")
    return str(path)


# -- one line, one word ---------------------------------------------------------------------------------------------


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field  # Python reads 1_000 as a number


def _odd(head: bytes) -> bool:
    """Whether there are control characters that text has no use for."""
    return any(c < 32 and c not in b"\t\r\n" for c in head)


def _shown(line: bytes) -> str:
    return repr(line[:40].decode("utf-8", "replace")) + ("..." if len(line) > 40 else "")


def _width(line: bytes) -> int:
    """How many numbers end the line, leaving at least one field for the word."""
    fields = line.split()
    count = 0
    while count < len(fields) - 1 and _is_number(fields[-1 - count]):
        count += 1
    return count


def _parse(line: bytes, dim: int, who: str) -> tuple[str, list[float]]:
    """The word and the numbers of a line."""
    fields = line.rsplit(None, dim)
    if len(fields) == dim and line[:1].isspace():
        fields.insert(0, b"")  # some vocabularies hold an empty word
    word, numbers = fields[0], fields[1:]
    try:
        values = [float(x) for x in numbers]
    except ValueError:
        bad = next((x for x in numbers if not _is_number(x)), numbers[0])
        wrong = f"holds {_shown(bad)} where a number should be"
    else:
        extra = word.rsplit(None, 1)
        if len(values) == dim and not (len(extra) == 2 and _is_number(extra[1])):
            return word.decode("utf-8", "replace"), values
        found = len(line.split()) - 1
        wrong = f"has {found:,} number{'s' if found != 1 else ''} behind its word"
    raise LoadError(f"{who} {wrong}; {dim:,} numbers a word are needed, so mend or fetch the file again.")


def _binary(stream: _Stream, place: str) -> Draft:
    first = stream.line(1)
    header = HEADER.fullmatch(first)
    if not header:
        raise LoadError(f"load: {place} starts with {_shown(first)}; word2vec's binary file starts with 'count dim'.")
    count, dim = int(header[1]), int(header[2])
    stream.must_hold(count, dim, 4)
    table, words = _Table(dim), []
    held, at, width = b"", 0, 4 * dim
    for i in range(count):
        while (space := held.find(b" ", at, at + LONGEST_WORD)) < 0 or len(held) < space + 1 + width:
            more = stream.read(max(1 << 20, width)) if space >= 0 or len(held) - at < LONGEST_WORD else b""
            if not more:
                raise LoadError(
                    f"load: {place} ends, or has no name, at word {i + 1:,} of the {count:,} its first line claims; "
                    f"it is cut off or damaged, so fetch it again."
                )
            held, at = held[at:] + more, 0
        words.append(held[at:space].lstrip(b"\n").decode("utf-8", "replace"))
        table.add(np.frombuffer(held, "<f4", dim, space + 1))
        at = space + 1 + width
    rest = held[at:] + stream.read(1 << 10)
    if rest.strip():
        raise LoadError(
            f"load: {place} goes on behind the {count:,} words of width {dim:,} that its first line claims; it is "
            f"damaged, so fetch it again."
        )
    return _draft(place, "word2vec binary", table.whole(), words, stream.taken)


class _Table:
    """Rows of float32 that come one by one, how many is not known beforehand."""

    def __init__(self, dim: int) -> None:
        self.dim, self.size = dim, max(1, BLOCK // max(1, dim))
        self.blocks: list[np.ndarray] = []
        self.used = self.size

    def add(self, row: Any) -> None:
        if self.used == self.size:
            self.blocks.append(np.empty((self.size, self.dim), np.float32))
            self.used = 0
        with np.errstate(over="ignore"):  # the head tells where a number is infinite
            self.blocks[-1][self.used] = row
        self.used += 1

    def whole(self) -> np.ndarray:
        """All rows, read-only; the blocks are given up."""
        if self.blocks:
            self.blocks[-1] = self.blocks[-1][: self.used]
        out = np.empty((sum(map(len, self.blocks)), self.dim), np.float32)
        end = len(out)
        while self.blocks:  # from the back, so that each block is freed as soon as it is copied
            block = self.blocks.pop()
            out[end - len(block) : end] = block
            end -= len(block)
        return read_only(out)


class _Stream:
    """The bytes of a file, unpacked if it is gzipped, in bounded pieces and bounded in all."""

    def __init__(self, path: Path) -> None:
        self.place, self.size = str(path), path.stat().st_size
        self.file: IO[bytes] = path.open("rb")
        self.gzipped = self.file.read(2) == GZIP
        self.file.seek(0)
        self.raw: Any = gzip.GzipFile(fileobj=self.file) if self.gzipped else self.file
        self.most = max(1 << 24, SWELL * self.size) if self.gzipped else self.size
        self.taken = 0

    def must_hold(self, count: int, dim: int, least: int) -> None:
        """Complain where `count` words with `dim` numbers of `least` bytes cannot be in the file."""
        if not count or not dim or count * (dim * least + 1) > self.most or dim > LONGEST_LINE:
            raise LoadError(
                f"load: the first line of {self.place} claims {count:,} vectors of width {dim:,} and the file has "
                f"{self.size:,} bytes{' (gzipped)' if self.gzipped else ''}; it is cut off, empty or damaged."
            )

    def peek(self) -> bytes:
        return self.raw.peek(512)[:512]

    def read(self, size: int) -> bytes:
        return self._counted(self.raw.read(size))

    def line(self, number: int) -> bytes:
        """The next line with its end; empty behind the last."""
        line = self._counted(self.raw.readline(LONGEST_LINE + 1))
        if len(line) > LONGEST_LINE:
            raise LoadError(
                f"load: line {number:,} of {self.place} is longer than {LONGEST_LINE:,} bytes; word vectors "
                f"have a word and its numbers a line."
            )
        return line

    def _counted(self, got: bytes) -> bytes:
        self.taken += len(got)
        if self.taken > self.most:
            raise LoadError(
                f"load: {self.place} grows more than {SWELL}-fold when unpacked, which no word vectors do; unpack it "
                f"yourself if you trust it."
            )
        return got


@contextmanager
def _opened(path: Path) -> Iterator[_Stream]:
    stream = None
    try:
        stream = _Stream(Path(path))
        if not stream.size:
            raise LoadError(f"load: {path} is empty; word vectors are needed, so fetch it again.")
        yield stream
    except (OSError, EOFError, zlib.error) as e:
        raise LoadError(f"load: {path} cannot be read ({e}); it is cut off or damaged, so fetch it again.") from None
    finally:
        if stream is not None:
            stream.file.close()
