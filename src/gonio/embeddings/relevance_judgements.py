"""What people said is relevant: qrels of a test collection, or judged pairs, as files or as plain Python.

qrels    query, document, grade        lines of TREC (query 0 document grade), of three columns, or a dict of dicts
pairs    query, document, judgement    lines of three columns, or triples
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError, LoadError
from gonio.core.readable_label import quoted
from gonio.embeddings.embedding_table import EmbeddingTable, named_rows

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class RelevanceJudgements:
    """Judged pairs by row: query, document and grade."""

    query: Int[np.ndarray, " pairs"]
    document: Int[np.ndarray, " pairs"]
    grade: Float[np.ndarray, " pairs"]

    def __post_init__(self) -> None:
        for a in (self.query, self.document, self.grade):
            a.flags.writeable = False

    @property
    def relevant(self) -> Bool[np.ndarray, " pairs"]:
        """Whether a pair counts as a match: a grade above 0."""
        return self.grade > 0

    def at_least(self, least: float) -> RelevanceJudgements:
        """The same pairs, where only grades of at least this much are above 0."""
        return RelevanceJudgements(self.query, self.document, np.where(self.grade >= least, 1.0, 0.0))


def judgements_of(source: Any, what: str, queries: EmbeddingTable, documents: EmbeddingTable) -> RelevanceJudgements:
    """Read judgements and find their rows; an id that a table does not have is an error."""
    triples = _triples(source, what)
    if not triples:
        raise GonioError(f"check: {what} holds no judgement; lines of query, document and grade are needed.")
    names = [str(q) for q, _, _ in triples], [str(d) for _, d, _ in triples]
    query, document = named_rows(queries, names[0], what), named_rows(documents, names[1], what)
    return RelevanceJudgements(query, document, np.array([g for _, _, g in triples], np.float64))


def _triples(source: Any, what: str) -> list[tuple[Any, Any, float]]:
    if isinstance(source, (str, Path)):
        return _lines(Path(source), what)
    if isinstance(source, Mapping):
        return [(q, d, _grade(g, what, q)) for q, ds in source.items() for d, g in dict(ds).items()]
    try:
        return [(q, d, _grade(g, what, q)) for q, d, g in source]
    except (TypeError, ValueError) as e:
        if isinstance(e, GonioError):
            raise
        raise GonioError(
            f"check: {what} is a {type(source).__name__}; (query, document, grade) each are needed."
        ) from None


def _lines(path: Path, what: str) -> list[tuple[str, str, float]]:
    if not path.is_file():
        raise LoadError(f"check: there is no file {path} for {what}; give lines of query, document and grade.")
    out = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig", errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        parts = [x.strip() for x in (line.split("\t") if "\t" in line else re.split(r"[,\s]+", line.strip()))]
        if len(parts) == 4:  # TREC: the second is an iteration that nobody reads
            parts = [parts[0], parts[2], parts[3]]
        if len(parts) != 3:
            raise LoadError(
                f"check: line {number:,} of {path.name} has {len(parts)} columns; query, document and grade are needed."
            )
        try:
            out.append((parts[0], parts[1], float(parts[2])))
        except ValueError:
            if number > 1:  # the first may name the columns
                raise LoadError(
                    f"check: line {number:,} of {path.name} grades {quoted(parts[2][:30])}; a number is needed."
                ) from None
    return out


def _grade(g: Any, what: str, query: Any) -> float:
    try:
        value = float(g)
    except (TypeError, ValueError):
        value = float("nan")
    if value != value or abs(value) == float("inf"):
        raise GonioError(f"check: {what} grades {g!r} for {quoted(str(query))}; a finite number is needed.")
    return value
