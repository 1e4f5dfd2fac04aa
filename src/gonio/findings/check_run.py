"""`gonio.check`: every question about a table of embeddings, in order; without judgements it says what is odd, never
what is better."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gonio.core.errors import GonioError
from gonio.core.parallel import one_blas_thread
from gonio.core.version import __version__
from gonio.embeddings.given_neighbours import given_lists
from gonio.embeddings.open_table import table_of
from gonio.embeddings.retrieval_quality import GAINS
from gonio.embeddings.scorers import METRICS
from gonio.findings.finding import TABLE_SECTIONS, Finding
from gonio.findings.found import Found, check_keys, plain
from gonio.findings.table_drift import drift
from gonio.findings.table_hubs import hubs
from gonio.findings.table_quality import judged as judged_quality
from gonio.findings.table_rows import rows
from gonio.findings.table_scores import meaning, shape
from gonio.findings.table_subject import TableSubject

VERSION = 1  # of the JSON
QUESTIONS: dict[str, Callable[[TableSubject], Iterator[Finding]]] = {
    "rows": rows,
    "meaning": meaning,
    "shape": shape,
    "hubs": hubs,
    "judged": judged_quality,
    "drift": drift,
}
# The findings that can be warnings, and what they need.
WARNINGS: dict[str, Callable[[TableSubject], str]] = {
    "not-finite": lambda s: "",
    "empty-rows": lambda s: "",
    "constant-rows": lambda s: "",
    "duplicates": lambda s: "",
    "mixed-lengths": lambda s: "",
    "threshold": lambda s: _needs(s, "threshold"),
    "offset": lambda s: "",
    "hubs": lambda s: "",
    "remedies": lambda s: _needs(s, "judged", "qrels"),
    "drift": lambda s: _needs(s, "was"),
    "drift-quality": lambda s: _needs(s, "was_queries"),
}


def _needs(s: TableSubject, *options: str) -> str:
    """That one of these options is needed, where none was given."""
    if any(getattr(s, x) is not None for x in options):
        return ""
    return "cannot be found without " + " or ".join(f"--{x.replace('_', '-')}" for x in options)


@dataclass(frozen=True, eq=False, repr=False)
class Check(Found):
    """Everything found about a table of embeddings."""

    asked_by: ClassVar[str] = "check"

    findings: tuple[Finding, ...]
    about: dict[str, Any]
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """The check in plain values: docs/check.schema.json describes it."""
        return {
            "format": "gonio check",
            "version": VERSION,
            "gonio": __version__,
            "about": plain(self.about),
            "sections": dict(TABLE_SECTIONS),
            "findings": [plain(f.to_dict()) for f in self.findings],
            "seconds": {k: round(v, 3) for k, v in self.seconds.items()},
        }

    def __repr__(self) -> str:
        n, d = self.about["shape"]
        said = ", ".join(f.key for f in self.warnings) or "nothing"
        return f"Check({self.about['corpus']}: {n:,} x {d}, {len(self.findings)} findings)\n  worth acting on: {said}"


def check(
    corpus: Any,
    queries: Any = None,
    *,
    was: Any = None,
    was_queries: Any = None,
    judged: Any = None,
    qrels: Any = None,
    relevant: float | None = None,
    precision: float = 0.9,
    gains: str = "linear",
    cheaper: bool = False,
    frequencies: Any = None,
    metric: str = "cosine",
    threshold: float | None = None,
    false_alarms: float = 0.01,
    sample: int | None = None,
    k: int = 10,
    column: str | None = None,
    id: str | None = None,
    seed: int = 0,
    neighbours: Any = None,
    fail_on: Sequence[str] = (),
    on_block: Callable[[int, int, str], None] | None = None,
) -> Check:
    """What is odd about a table of embeddings, what a score means in it, and, given judgements, what helps.

    Parameters
    ----------
    corpus : the documents' embeddings: a path, folder, glob, array, frame or index (`gonio.embeddings.table_of`)
    queries : those of the queries, of the same model; without them rows of the corpus ask for their neighbours
    was : the same documents under the old model, matched by id, or row by row where there are no ids
    was_queries : the same queries under the old model
    judged : judged pairs: a file of lines, or triples, of query, document and judgement; without queries both
        are rows of the corpus
    qrels : graded judgements of a test collection: a file (TREC, or three columns), or {query: {document: grade}}
    relevant : of judged pairs, the judgement from which a pair is a match; above 0, if not given
    precision : the precision that the threshold from judgements is to have
    gains : of nDCG: "linear" (the grade) or "exponential" (2^grade - 1)
    cheaper : also what truncated, int8 and binary copies of the table would cost
    frequencies : a number for each row (how often it occurs, how long its text is), or by id: do lengths follow it?
    metric : how documents are ordered: cosine, dot or l2
    threshold : a score (for l2 a distance) in use
    false_alarms : the share of random pairs that a threshold may let through
    sample : at most so many queries (or rows) ask, drawn at random; findings from it are marked estimated
    k : the length of lists
    neighbours : (ids, scores) from an index of your own: for each query, or for each document where there are no
        queries, the rows of its nearest under the metric, best first, -1 for none. Hubs are counted in these lists, and
        marked estimated, for an approximate index may have missed some
    column, id : the columns of the embeddings and of the ids, where several could be meant
    fail_on : findings that you will ask `failing` about; one that does not exist is an error

    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((200, 8))
    >>> check(np.vstack([X, X[:3]]))["duplicates"].value
    3
    """
    _check_options(metric, threshold, false_alarms, sample, k)
    if gains not in GAINS:
        raise GonioError(f"check: gains is {gains!r}; choose one of {', '.join(GAINS)}.")
    if not _number(precision) or not 0 < precision <= 1:
        raise GonioError(f"check: precision is {precision!r}; a number above 0 and up to 1 is needed.")
    a = table_of(corpus, column=column, id=id)
    q = None if queries is None else table_of(queries, column=column, id=id)
    if q is not None and q.shape[1] != a.shape[1]:
        raise GonioError(
            f"check: {q.name} has width {q.shape[1]} and {a.name} width {a.shape[1]}; queries and documents must come "
            f"from one model."
        )
    old = None if was is None else table_of(was, column=column, id=id)
    old_queries = None if was_queries is None else table_of(was_queries, column=column, id=id)
    if old_queries is not None and (old is None or q is None):
        raise GonioError("check: was_queries are the queries under the old model; give was and queries too.")
    if old_queries is not None and old is not None and old_queries.shape[1] != old.shape[1]:
        raise GonioError(
            f"check: {old_queries.name} has width {old_queries.shape[1]} and {old.name} width {old.shape[1]}; both "
            f"must "
            f"come from the old model."
        )
    s = TableSubject(
        a,
        q,
        metric,
        threshold,
        false_alarms,
        sample,
        k,
        seed,
        judged=judged,
        qrels=qrels,
        was=old,
        was_queries=old_queries,
        cheaper=cheaper,
        frequencies=frequencies,
        relevant=relevant,
        precision=precision,
        gains=gains,
        neighbours=None if neighbours is None else given_lists(neighbours, len(a), None if q is None else len(q)),
        progress=on_block,
        typed={
            name: value
            for name, value, usual in (
                ("column", column, None),
                ("id", id, None),
                ("metric", metric, "cosine"),
                ("false_alarms", false_alarms, 0.01),
                ("sample", sample, None),
                ("k", k, 10),
            )
            if value != usual
        },
    )
    check_keys("check", fail_on, WARNINGS, s)
    findings: list[Finding] = []
    seconds: dict[str, float] = {}
    with one_blas_thread():  # its own threads would wait for each other, and round by how many they are
        for name, ask in QUESTIONS.items():
            began = time.perf_counter()
            findings += ask(s)
            seconds[name] = time.perf_counter() - began
    order = list(TABLE_SECTIONS)
    findings.sort(key=lambda f: order.index(f.section))
    about = {
        "corpus": a.name,
        "shape": list(a.shape),
        "queries": None if q is None else {"name": q.name, "count": len(q)},
        "metric": metric,
        "k": s.size,
        "sample": sample,
    }
    return Check(tuple(findings), about, seconds)


def _check_options(metric: Any, threshold: Any, false_alarms: Any, sample: Any, k: Any) -> None:
    if metric not in METRICS:
        raise GonioError(f"check: metric is {metric!r}; choose one of {', '.join(METRICS)}.")
    if threshold is not None and not _number(threshold):
        raise GonioError(f"check: threshold is {threshold!r}; a finite number is needed.")
    if not _number(false_alarms) or not 0 < false_alarms < 1:
        raise GonioError(f"check: false_alarms is {false_alarms!r}; a number between 0 and 1 is needed.")
    for name, value, least in (("sample", sample, 20), ("k", k, 1)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise GonioError(f"check: {name} is {value!r}; a whole number from {least} on is needed.")


def _number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and x == x and abs(x) != float("inf")
