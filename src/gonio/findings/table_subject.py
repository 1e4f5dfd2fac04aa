"""What a check is about: the documents, the queries, what was judged, the table of before; and what questions share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.embeddings.embedding_table import EmbeddingTable
from gonio.embeddings.query_hubs import QueryHubs, query_hubs
from gonio.embeddings.query_lists import QueryLists, query_lists
from gonio.embeddings.random_pairs import RandomPairs, random_pairs
from gonio.embeddings.row_survey import RowSurvey, survey_rows
from gonio.embeddings.scorers import METRICS, hub_scorers, metric_scorer
from gonio.findings.finding import Finding, State

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ROWS = 1000  # rows that ask for their neighbours where there are no queries
LISTED = 50  # ids that a finding names
FEW, CORRECTED = 250, 1_000_000_000  # who ask by every metric; pairs up to which corrections for hubs are tried unasked
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class TableSubject:
    """The tables and the options of one check."""

    corpus: EmbeddingTable
    queries: EmbeddingTable | None
    metric: str
    threshold: float | None
    false_alarms: float
    sample: int | None
    k: int
    seed: int
    was: EmbeddingTable | None = None
    was_queries: EmbeddingTable | None = None
    judged: Any = None
    qrels: Any = None
    relevant: float | None = None
    precision: float = 0.9
    gains: str = "linear"
    cheaper: bool = False
    frequencies: Any = None
    neighbours: QueryLists | None = None  # lists of the user's own index, under the metric in use
    progress: Progress | None = field(default=None)
    typed: Mapping[str, Any] = field(default_factory=dict)  # options that asking again needs too

    @cached_property
    def survey(self) -> RowSurvey:
        """One pass over the documents."""
        return survey_rows(self.corpus, seed=self.seed)

    @cached_property
    def asks(self) -> Float[np.ndarray, "queries dim"] | None:
        """All queries."""
        if self.queries is None:
            return None
        Q = self.queries.whole()
        bad = np.flatnonzero(~np.isfinite(Q).all(axis=1) | ~Q.any(axis=1))
        if len(bad):
            raise GonioError(
                f"check: {len(bad):,} of the {len(Q):,} queries of {self.queries.name} are not finite or all zeros "
                f"(the first is {self.queries.names(bad[:1])[0]}); drop them."
            )
        return Q

    @cached_property
    def asked(self) -> Int[np.ndarray, " asked"]:
        """The queries that ask, or where there are none the rows: drawn where a sample was asked for."""
        rng = np.random.default_rng(self.seed + 2)
        if self.asks is not None:
            every = np.arange(len(self.asks))
            return every if self.sample is None else _drawn(rng, every, self.sample)
        return _drawn(rng, self.survey.which, self.sample or ROWS)

    @property
    def estimated(self) -> bool:
        """Whether those who ask are a sample."""
        return len(self.asked) < (self.survey.live if self.asks is None else len(self.asks))

    @cached_property
    def asking(self) -> Float[np.ndarray, "asked dim"]:
        """Their vectors."""
        if self.asks is not None:
            return self.asks[self.asked]
        at = np.searchsorted(self.survey.which, self.asked)
        return self.survey.rows[at]

    @property
    def size(self) -> int:
        """The length of lists: k, or all other rows that have a direction where they are fewer."""
        return max(1, min(self.k, self.survey.live - (self.asks is None)))

    @cached_property
    def few(self) -> Int[np.ndarray, " few"]:
        """Some of those who ask, by their place: the metrics are compared on them."""
        return _drawn(np.random.default_rng(self.seed + 7), np.arange(len(self.asked)), FEW)

    @cached_property
    def lists(self) -> dict[str, QueryLists]:
        """The best documents of all who ask, in one pass: by cosine and the metric in use.

        For a few of them also by the other metrics ("few dot"), with queries also corrected for hubs, where that is not
        too much, and for some rows ("rows").
        """
        scorers = [metric_scorer(m, self.asking) for m in dict.fromkeys(("cosine", self.metric))]
        scorers += [replace(metric_scorer(m, self.asking[self.few]), name=f"few {m}") for m in METRICS[1:]]
        own = {} if self.asks is not None else {s.name: self.asked for s in scorers}
        if self.asks is None:
            own |= {f"few {m}": self.asked[self.few] for m in METRICS[1:]}
        else:
            rng = np.random.default_rng(self.seed + 3)
            own["rows"] = _drawn(rng, self.survey.which, min(self.sample or ROWS, ROWS))
            rows = self.survey.rows[np.searchsorted(self.survey.which, own["rows"])]
            scorers.append(replace(metric_scorer("cosine", rows), name="rows"))
            if len(self.corpus) * len(self.asked) <= CORRECTED:
                scorers += hub_scorers(self.asking)
        return query_lists(self.corpus, scorers, self.size, own=own, on_block=self.progress)

    @property
    def row_lists(self) -> tuple[Int[np.ndarray, " rows"], QueryLists]:
        """Sampled rows of the corpus and their nearest by cosine."""
        if self.asks is None:
            return self.asked, self.lists["cosine"]
        rng = np.random.default_rng(self.seed + 3)
        return _drawn(rng, self.survey.which, min(self.sample or ROWS, ROWS)), self.lists["rows"]

    @cached_property
    def pairs(self) -> RandomPairs:
        """Random pairs under the metric."""
        whole = len(self.survey.which) == self.survey.live
        return random_pairs(self.survey.rows, self.asks, self.metric, whole=whole, seed=self.seed)

    @cached_property
    def hubs(self) -> QueryHubs:
        """How often each document is listed, by the user's own lists where there are any."""
        lists = self.lists[self.metric] if self.neighbours is None else self.neighbours
        return query_hubs(lists.near, len(self.corpus))

    @property
    def several(self) -> bool:
        """Whether two rows have a direction, so that there is a pair at all."""
        return self.survey.live > 1

    def again(self, **more: Any) -> str:
        """The command that asks this check again with other options; a line of Python where the table is no file."""
        places = [t.place for t in (self.corpus, self.queries) if t is not None]
        more = {**self.typed, **more}
        if None in places:
            names = "X" if self.queries is None else "X, Q"
            return f"gonio.check({', '.join([names, *(f'{k}={v!r}' for k, v in more.items())])})"
        if "k" in more:
            more["top"] = more.pop("k")
        said = ["gonio check", shlex.quote(str(places[0]))]
        said += ["--queries", shlex.quote(str(places[1]))] if len(places) > 1 else []
        return " ".join([*said, *(f"--{k.replace('_', '-')} {shlex.quote(str(v))}" for k, v in more.items())])

    def named(self, rows: Any) -> list[str]:
        """The ids of the first of some rows."""
        return self.corpus.names(rows[:LISTED])


def _drawn(rng: np.random.Generator, of: np.ndarray, count: int) -> np.ndarray:
    return of if len(of) <= count else np.sort(rng.choice(of, count, replace=False))


def found(
    key: str, section: str, title: str, state: State, value: Any, says: str, do: str, /, threshold=None, **data: Any
) -> Finding:
    """A finding with a line that acts on it: `X` documents, `Q` queries, `old` the old table."""
    return Finding(key, section, title, state, value, says, threshold, data={"try": do, **data})


def difference_words(x: Any) -> str:
    """A difference with its sign and its interval, or alone where there is none.

    >>> from gonio.similarity.bootstrap import Interval
    >>> difference_words(Interval(-0.5, -0.75, -0.25)), difference_words(Interval(0.1, float("nan"), float("nan")))
    ('-0.500 (-0.750 to -0.250)', '+0.100 (too few queries differ for an interval)')
    """
    if x.low != x.low:
        return f"{x.value:+.3f} (too few queries differ for an interval)"
    return f"{x.value:+.3f} ({x.low:+.3f} to {x.high:+.3f})"


def interval_words(x: Any, digits: int = 3) -> str:
    """A value with its interval in words, or alone where it is exact or there is none.

    >>> from gonio.similarity.bootstrap import Interval
    >>> interval_words(Interval(0.5, 0.25, 0.75)), interval_words(Interval(0.5, 0.5, 0.5))
    ('0.500 (0.250 to 0.750)', '0.500')
    """
    if x.low == x.high or x.low != x.low:
        return f"{x.value:.{digits}f}"
    return f"{x.value:.{digits}f} ({x.low:.{digits}f} to {x.high:.{digits}f})"
