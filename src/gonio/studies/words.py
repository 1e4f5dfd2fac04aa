"""Words for the studies: which row of a table is a word, how often words occur (wordfreq), pairs that people judged."""

from __future__ import annotations

import gzip
import math
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gonio.core.head import Head
from gonio.papers.real import fixture, inside

Pairs = list[tuple[str, str, float]]


def rows_of_words(head: Head) -> dict[str, int]:
    """Words in lower case to the row that stands for them at the beginning of a word.

    A tokenizer that marks the space before a word (Ġ, ▁) has other rows for what goes on within one; these, and those
    that begin with ##, are no words.
    """
    marked = any(x[:1] in ("Ġ", "▁") and x[1:2].isalpha() for x in head.labels)  # rows of spaces alone mark nothing
    out: dict[str, int] = {}
    for i, label in enumerate(head.labels):
        if marked and label[:1] not in ("Ġ", "▁", " "):
            continue
        word = label.lstrip("Ġ▁ ")
        if len(word) > 1 and word.isascii() and word.isalpha() and word.islower():
            out.setdefault(word, i)
    return out


def frequency_of_rows(head: Head, often: dict[str, float]) -> np.ndarray:
    """Of each row the number that its word has, nan where it is no word or has none."""
    out = np.full(head.shape[0], np.nan)
    for word, row in rows_of_words(head).items():
        out[row] = often.get(word, np.nan)
    return out


def word_frequencies() -> dict[str, float]:
    """English words to log2 of their frequency, from wordfreq's list; empty where the package is not there.

    The file is a list of lists of words: those of list c have frequency 10^(-c / 100).
    """
    wheel = fixture("wordfreq-*.whl")
    if wheel is None:
        return {}
    with zipfile.ZipFile(wheel) as z:
        buckets, _ = unpack(gzip.decompress(z.read("wordfreq/data/small_en.msgpack.gz")))
    step = math.log2(10) / 100
    return {w: -c * step for c, some in enumerate(buckets[1:]) for w in some if w.isalpha()}


def unpack(data: bytes, at: int = 0) -> tuple[Any, int]:
    """One value of a msgpack file that is made of texts, lists, small maps and small numbers, and where it ends."""
    kind, at = data[at], at + 1
    if kind < 0x80:
        return kind, at
    if kind < 0x90:
        pairs = {}
        for _ in range(kind & 0x0F):
            key, at = unpack(data, at)
            pairs[key], at = unpack(data, at)
        return pairs, at
    wide = {0xD9: 1, 0xDA: 2, 0xDC: 2, 0xDD: 4, 0xCC: 1, 0xCD: 2}.get(kind, 0)
    size = int.from_bytes(data[at : at + wide], "big") if wide else kind & (0x0F if kind < 0xA0 else 0x1F)
    at += wide
    if kind in (0xCC, 0xCD):
        return size, at
    if 0x90 <= kind < 0xA0 or kind in (0xDC, 0xDD):
        out = []
        for _ in range(size):
            value, at = unpack(data, at)
            out.append(value)
        return out, at
    if 0xA0 <= kind < 0xC0 or kind in (0xD9, 0xDA):
        return data[at : at + size].decode(), at + size
    raise ValueError(f"msgpack kind {kind:#x} is not read here")


def judged_words() -> Pairs:
    """WordSim-353 and SimLex-999 as they lie in gensim, judgements standardised within each; empty without it."""
    out: Pairs = []
    for file in ("wordsim353.tsv", "simlex999.txt"):
        text = inside("gensim-*.whl", f"gensim/test/test_data/{file}")
        if text is None:
            return []
        rows = [x.split("\t") for x in text.splitlines() if x and not x.startswith("#")]
        scores = np.array([float(r[2]) for r in rows])
        scores = (scores - scores.mean()) / scores.std()
        out += [(r[0].lower(), r[1].lower(), float(s)) for r, s in zip(rows, scores, strict=True) if r[0] != r[1]]
    return out


def informativeness(texts: Iterable[str], words: Sequence[str]) -> dict[str, float]:
    """The mean tf-idf of each word over the documents that have it; words that no document has are left out."""
    documents = [Counter(t.lower().split()) for t in texts]
    having: Counter[str] = Counter(w for d in documents for w in d)
    total: Counter[str] = Counter()
    for d in documents:
        size = sum(d.values())
        for w, c in d.items():
            total[w] += c / size  # type: ignore[assignment]
    n = len(documents)
    return {w: total[w] / having[w] * math.log(n / having[w]) for w in words if having[w]}
