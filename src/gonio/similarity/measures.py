"""What every measure can do: values of pairs of labels, the nearest labels, and the groups that leave it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head, Link
from gonio.core.parallel import in_threads, spans
from gonio.core.readable_label import quoted
from gonio.similarity.nearest import nearest_by

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SPARE = 8  # more neighbours are found in float32 than asked for, and ordered in float64
PAIRS = 4096  # pairs whose vectors are held at once


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours:
    """The nearest labels of each label asked about, nearest first, and their values under the measure."""

    asked: Int[np.ndarray, " asked"]
    near: Int[np.ndarray, "asked near"]
    values: Float[np.ndarray, "asked near"]
    measure: str
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        for a in (self.asked, self.near, self.values):
            a.flags.writeable = False

    def __len__(self) -> int:
        return len(self.asked)

    def columns(self) -> dict[str, list[Any]]:
        """One row a pair."""
        k = self.near.shape[1]
        return {
            "label": [self.labels[i] for i in np.repeat(self.asked, k)],
            "rank": list(range(1, k + 1)) * len(self.asked),
            "near": [self.labels[j] for j in self.near.ravel()],
            "value": self.values.ravel().tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """The lists in plain values."""
        return {
            "measure": self.measure,
            "asked": self.asked.tolist(),
            "near": self.near.tolist(),
            "values": self.values.tolist(),
        }

    def __repr__(self) -> str:
        first = ", ".join(
            f"{quoted(self.labels[j])} {v:.3f}" for j, v in zip(self.near[0, :3], self.values[0, :3], strict=True)
        )
        return (
            f"Neighbours({len(self):,} labels, {self.near.shape[1]} each, by {self.measure})\n"
            f"  {quoted(self.labels[self.asked[0]])}: {first}"
        )


class Measure:
    """A number for each pair of labels of one head.

    name       what it is called
    invariant  the groups that leave it alone: letters of T translation, M invertible map, S scaling, R rotation,
               P positive scaling of single rows (gonio.papers.invariance_table), U input shift, L layer-norm shift
    empty      whether it has one value for every pair of every such head, and so says nothing
    nearer     1 where larger means more alike, -1 for distances
    needs      "embeddings" where it speaks about inputs
    caveat     what it cannot tell for this head, in words; empty where there is nothing to say
    """

    name: ClassVar[str]
    invariant: ClassVar[frozenset[str]]
    nearer: ClassVar[int] = 1
    needs: ClassVar[str] = ""
    symmetric: ClassVar[bool] = True

    def __init__(self, head: Head) -> None:
        if not isinstance(head, Head):
            raise GonioError(
                f"{self.name}: a {type(head).__name__} was given; a Head is needed, so use gonio.load or gonio.Head."
            )
        self.head = head
        self.caveat = ""
        self.empty = False

    # -- asked by the user ------------------------------------------------------------------------------------------

    def pairs(self, a: Any, b: Any) -> Float[np.ndarray, " pairs"]:
        """The values of the pairs (a_1, b_1), (a_2, b_2), ...; labels by name or number; NaN where it is undefined."""
        i, j = self.index(a), self.index(b)
        if len(i) != len(j):
            raise GonioError(f"{self.name}: {len(i)} and {len(j)} labels were given; pairs need as many of each.")
        out = np.empty(len(i))

        def look(span: tuple[int, int]) -> None:
            part = slice(*span)
            out[part] = self._pairs(i[part], j[part])

        in_threads(look, spans(len(i), PAIRS))
        return out

    def __call__(self, a: Any, b: Any) -> float:
        """The value of one pair of labels."""
        return float(self.pairs([a], [b])[0])

    def nearest(self, k: int = 10, labels: Any = None) -> Neighbours:
        """The k nearest labels of each label asked about (all, if none is named), itself left out, nearest first.

        Labels for which the measure is undefined (zero vectors) are nobody's neighbour. Candidates are found in
        float32, a few more than asked for, and ordered in float64.
        """
        n = self.head.shape[0]
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k < n:
            raise GonioError(
                f"{self.name}: {k} neighbours of {n:,} labels were asked for; "
                + (f"1 to {n - 1:,} can be given." if n > 1 else "one label has none.")
            )
        asked = np.arange(n) if labels is None else self.index(labels)
        found = self._nearest(min(n - 1, int(k) + min(SPARE, 2 * int(k))), None if labels is None else asked)
        values = np.empty(found.shape)

        def look(span: tuple[int, int]) -> None:
            part = slice(*span)
            values[part] = self._values(asked[part], found[part])

        in_threads(look, spans(len(asked), max(1, PAIRS // found.shape[1])))
        key = np.where(np.isnan(values), np.inf, -self.nearer * values)  # what is undefined comes last
        order = np.lexsort((found, np.round(key, 12)), axis=1)[:, : int(k)]
        return Neighbours(
            asked,
            np.take_along_axis(found, order, 1),
            np.take_along_axis(values, order, 1),
            self.name,
            self.head.labels,
        )

    def index(self, labels: Any) -> Int[np.ndarray, " some"]:
        """Rows of labels given by name or number, one or several."""
        if isinstance(labels, (str, int, np.integer)):
            labels = [labels]
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu" and labels.ndim == 1:
            n = self.head.shape[0]
            bad = labels[(labels < 0) | (labels >= n)]
            if len(bad):
                self.head.index(int(bad[0]))  # complains in its own words
            out = labels.astype(np.int64)
        else:
            try:
                out = np.array([self.head.index(x) for x in labels], np.int64)
            except TypeError:
                raise GonioError(
                    f"{self.name}: labels are a {type(labels).__name__}; names or numbers are needed."
                ) from None
        if not len(out):
            raise GonioError(f"{self.name}: no label was named; name some.")
        return out

    # -- given by each measure --------------------------------------------------------------------------------------

    def _pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _values(self, asked: np.ndarray, found: np.ndarray) -> np.ndarray:
        """The values of each label asked about with those found for it."""
        i = np.repeat(asked, found.shape[1])
        return self._pairs(i, found.ravel()).reshape(found.shape)

    def _nearest(self, k: int, which: np.ndarray | None) -> np.ndarray:
        """The candidates; measures that are inner products have a quicker way than this one."""

        def score(mine: np.ndarray, a: int, b: int) -> np.ndarray:
            i = np.repeat(mine, b - a)
            j = np.tile(np.arange(a, b), len(mine))
            values = np.concatenate([self._pairs(i[s:e], j[s:e]) for s, e in spans(len(i), 1 << 15)])
            values = np.where(np.isnan(values), -np.inf, self.nearer * values)
            return values.reshape(len(mine), b - a)

        return nearest_by(score, self.head.shape[0], k, which, barred=self._barred())[0]

    def _barred(self) -> np.ndarray | None:
        """Labels for which the measure is undefined."""
        return None

    def __repr__(self) -> str:
        n, _ = self.head.shape
        order = "larger" if self.nearer > 0 else "smaller"
        said = f"; {self.caveat}" if self.caveat else ""
        kept = "".join(g for g in "TMSRPUL" if g in self.invariant) or "nothing"
        return f"{self.name} of {n:,} labels ({order} is nearer)\n  invariant: {kept}{said}"


MEASURES: dict[str, type[Measure]] = {}
Kind = TypeVar("Kind", bound=Measure)


def register(cls: type[Kind]) -> type[Kind]:
    """Enter a measure into the table that other rooms walk."""
    MEASURES[cls.name] = cls
    return cls


def measure(name: str) -> Callable[..., Measure]:
    """The measure of that name; call it with a head (and embeddings, where it needs them).

    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4]], link="cosine", labels=["dog", "cat", "fish"])
    >>> round(measure("cosine")(head)("dog", "cat"), 3)
    0.8
    """
    if not isinstance(name, str) or name not in MEASURES:
        import difflib

        near = difflib.get_close_matches(str(name), MEASURES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(MEASURES)}."
        raise GonioError(f"measure: none is called {name!r}; {hint}")
    cls = MEASURES[name]

    def make(head: Head, embeddings: Any = None, **options: Any) -> Measure:
        if cls.needs == "embeddings":
            return cls(head, embeddings, **options)  # type: ignore[call-arg]
        return cls(head, **options)

    return make


def for_link(link: Link, *, embeddings: bool) -> str:
    """The measure to use for a link: what the gauge leaves alone and the inputs give weight to.

    For word vectors it is the cosine, which training does not fix: how useful it is, judged pairs tell. For input
    embeddings and tables of which nothing is known there is none.

    >>> for_link("softmax", embeddings=True)
    'centred-logit correlation'
    """
    if link in ("input", "unknown"):
        raise GonioError(
            "similar: "
            + (
                "no prediction reads these input embeddings directly, so no number of the table alone says how the "
                "model treats two of them; compare the model's outputs, or name a measure of the table as it is stored "
                "with --measure (measure=)."
                if link == "input"
                else "nothing says what these rows are, and which similarity means something hangs on it; say it with "
                "--link (link=), or name a measure of the table as it is stored with --measure (measure=)."
            )
        )
    if link == "vectors":
        return "cosine"
    if link == "cosine":
        return "cosine"
    if link == "softmax":
        return "centred-logit correlation" if embeddings else "whitened-centred cosine"
    if link == "dot" and embeddings:
        return "projected-back cosine"
    return "logit correlation" if embeddings else "whitened cosine"


def inputs_of(head: Head, F: Any, who: str, *, least: int = 2) -> Float[np.ndarray, "points dim"]:
    """The embeddings a measure speaks about: those given, or those that the head was observed with."""

    if F is None and head.inputs.points is not None:
        F = head.inputs.points
    if F is None:
        raise GonioError(
            f"{who}: it is a statement about inputs and none were given; pass embeddings of shape (points, "
            f"{head.shape[1]}), the vectors that reach this head."
        )
    F = checks.embeddings(F, head.shape[1], who)
    if len(F) < least:
        raise GonioError(f"{who}: {len(F)} embedding was given; a correlation over inputs needs at least {least}.")
    return F
