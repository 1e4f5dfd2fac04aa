"""Rows that fill a table up to a round size and provably never win, as they are written.

Frameworks pad vocabularies to multiples of 64 or 128, often with zeros or with -10,000 in every entry. Both can win:
zero when the rows have a common offset, the other for about half of all inputs. A row inside the hull of the others
cannot, and rounding to the checkpoint's type does not push it out if it lies deep. A copy of a real row can: it is on
top wherever that row is, and who breaks the tie is up to the kernel. With a bias a copy that stands lower cannot.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.source import Source
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import NeverWins

if TYPE_CHECKING:
    from jaxtyping import Float, Int

TYPES: dict[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
BELOW = 100.0  # by how much the bias of a padded row is below all others: exp(-100) of a probability
LARGEST_POOL = 20_000
MOST_PAIRS = 200
SAMPLES = 256


@dataclass(frozen=True, eq=False)
class Padded:
    """A head with rows that never win, their proofs, and how likely such a row still is.

    places       the rows that were filled: padded ones replaced, then new ones
    row, bias    what stands in each of them, in the checkpoint's type (bias in float32 or float64)
    copy_of      the real row it is a copy of, with a lower bias; None where it lies inside the hull of real rows
    probability  the largest probability of one such row over the embeddings looked at; NaN for links without any
    bound        what it can never exceed (softmax): k such rows are equal, and some rival is not below: 1 / (k + 1)
    """

    head: Head
    places: Int[np.ndarray, " padded"]
    row: np.ndarray
    bias: float | None
    copy_of: int | None
    certificates: tuple[NeverWins, ...]
    probability: float
    bound: float
    over: str

    @property
    def note(self) -> str:
        """In words: where the rows lie, and that never winning is not never being sampled."""
        where = "inside the hull of real rows"
        if self.copy_of is not None:
            where = f"row {self.copy_of} again, with a lower bias"
        likely = f"sampled with probability up to {self.probability:.3g} over {self.over}"
        return f"{where}; they never win" + ("" if np.isnan(self.probability) else f", and are {likely}")

    def to_dict(self) -> dict[str, Any]:
        """The rows that were filled, in plain values."""
        return {
            "rows": len(self.head),
            "places": self.places.tolist(),
            "row": np.asarray(self.row, np.float64).tolist(),
            "bias": None if self.bias is None else float(self.bias),
            "copy_of": self.copy_of,
            "probability": None if np.isnan(self.probability) else float(self.probability),
            "bound": None if np.isnan(self.bound) else float(self.bound),
            "over": self.over,
        }

    def __repr__(self) -> str:
        return f"Padded({len(self.places)} rows of {len(self.head):,}, {self.head.rows.kind})\n  {self.note}"


def pad(head: Head, to: int, dtype: str, *, embeddings: Any = None, seed: int = 0) -> Padded:
    """Fill the head's padded rows, and append rows up to `to`, so that none of them can win; each with its proof.

    The rows are written in `dtype` ("float32", "float16", "bfloat16"), which must hold the real rows exactly. Their
    largest probability is measured on `embeddings`, or on a sample of the head's inputs.
    """
    checks.one_of(dtype, tuple(TYPES), "pad", "dtype")
    n, d = head.shape
    if isinstance(to, bool) or not isinstance(to, (int, np.integer)) or to < n:
        raise GonioError(f"pad: the head has {n} rows and is to have {to}; a whole number of at least {n} is needed.")
    places = np.concatenate([head.padded, np.arange(n, to)])
    real = np.setdiff1d(np.arange(n), head.padded)
    if not len(places):
        raise GonioError(f"pad: the head has {n} rows, none of them padded; give a larger number of rows.")
    if not len(real):
        raise GonioError("pad: the head has no real row, so every row that is added can win.")
    head.must_score("pad")
    if head.link == "cosine":
        raise GonioError("pad: the head's link is 'cosine', for which every row of its own direction can win.")
    kind = TYPES[dtype]
    _holds(head, dtype)
    F = head.inputs.sample(SAMPLES, d, np.random.default_rng(seed)) if embeddings is None else embeddings
    F = checks.embeddings(F, d, "pad")
    over = f"{len(F):,} {'sampled' if embeddings is None else 'given'} embeddings"

    lowest = None if head.bias is None else _below(head.bias[real], kind)
    for pool in _pools(head, real, seed):
        found = _inside(head, pool, kind)
        if found is None:
            continue
        row, weights = found
        if head.inputs.points is not None:
            weights = np.zeros(0)
        if not _holds_alone(head, pool, row, lowest, weights):
            continue
        out = _filled(head, int(to), places, row, lowest, kind)
        if proofs := _proven(out, places, pool, weights):
            return Padded(out, places, row, lowest, None, proofs, *_likely(out, places, F), over)
    copied = _least_likely(head, real, F)
    if head.bias is None or lowest is None or not lowest < head.bias[copied]:
        raise GonioError(
            f"pad: no row of {dtype} was found that lies inside the hull of the {len(real)} real rows, and every other "
            f"row can be on top; pad in a wider type (float32), or give the head a bias, which can hold such rows down."
        )
    row = head[copied].astype(kind)
    out = _filled(head, int(to), places, row, lowest, kind)
    whole = np.zeros(0) if head.inputs.points is not None else np.ones(1)
    proofs = _proven(out, places, np.array([copied]), whole)
    assert proofs, "a row with a lower bias is below the row it copies"
    return Padded(out, places, row, lowest, copied, proofs, *_likely(out, places, F), over)


def _holds(head: Head, dtype: str) -> None:
    with np.errstate(all="ignore"):
        same = all((b.astype(TYPES[dtype]).astype(b.dtype) == b).all() for _, b in head.blocks())
    if not same:
        raise GonioError(
            f"pad: the rows of the head are not numbers of {dtype}, so writing them would change what is proven; "
            f"choose a wider dtype, or round the head first (gonio.ask.precision.cast)."
        )


def _below(bias: np.ndarray, kind: Any) -> float:
    """A bias below all others that the type holds."""
    wanted = float(bias.min()) - BELOW
    with np.errstate(all="ignore"):
        value = float(np.asarray(wanted).astype(kind))
    return value if np.isfinite(value) and value <= float(bias.min()) else float(bias.min())


def _pools(head: Head, real: np.ndarray, seed: int) -> list[np.ndarray]:
    """Rows to lie between: a few per dimension first, for a small proof, then all; of few rows also the pairs, whose
    mid-point the type may hold exactly."""
    d, rng = head.shape[1], np.random.default_rng(seed)
    sizes = [k for k in (3 * (d + 2), 12 * (d + 2)) if k < len(real)]
    pools = [np.sort(rng.choice(real, k, replace=False)) for k in sizes]
    pairs = list(itertools.islice(itertools.combinations(real.tolist(), 2), MOST_PAIRS)) if not pools else []
    return [*pools, *([real] if len(real) <= LARGEST_POOL else []), *(np.array(p) for p in pairs)]


def _inside(head: Head, pool: np.ndarray, kind: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The pool's mean rounded to the type, and positive weights of the pool that give it exactly, up to rounding."""
    V = head.rows[pool].astype(np.float64)
    with np.errstate(all="ignore"):
        row = V.mean(axis=0).astype(kind)
        p = row.astype(np.float64)
        if not np.isfinite(p).all() or len(pool) < 2:
            return None
        A = np.column_stack([V - p, np.ones(len(pool))])  # differences: a common offset would drown the rest
        w = np.full(len(pool), 1 / len(pool))
        for _ in range(3):  # the least change of equal weights, and two refinements
            miss = np.append(-(w @ A[:, :-1]), 1 - w.sum())
            w = w + np.linalg.lstsq(A.T, miss, rcond=None)[0]
    return (row, w) if np.isfinite(w).all() and (w > 0).all() else None


def _filled(head: Head, to: int, places: np.ndarray, row: np.ndarray, bias: float | None, kind: Any) -> Head:
    n, d = head.shape
    W = np.empty((to, d), kind)
    for start, block in head.blocks():
        W[start : start + len(block)] = block.astype(kind)
    W[places] = row
    b = None
    if head.bias is not None:
        b = np.concatenate([head.bias, np.zeros(to - n, head.bias.dtype)])
        b[places] = bias
    labels = None
    if head.named:
        labels = [*head.labels, *(f"<padding {k}>" for k in range(n, to))]
    source = head.source or Source("an array", "array")
    source = replace(source, padded=tuple(int(k) for k in places))
    return head.replace(W=W, bias=b, labels=labels, source=source)


def _holds_alone(head: Head, pool: np.ndarray, row: np.ndarray, bias: float | None, weights: np.ndarray) -> bool:
    """Whether the proof holds in a head of the pool and the row alone: nothing else enters it, and it is small."""
    last = len(pool)
    b = None if head.bias is None else np.append(head.bias[pool], np.asarray(bias, head.bias.dtype))
    small = Head(np.vstack([head.rows[pool], row.astype(np.float64)]), b, link=head.link, inputs=head.inputs)
    return bool(_proven(small, np.array([last]), np.arange(last), weights))


def _proven(head: Head, places: np.ndarray, rivals: np.ndarray, weights: np.ndarray) -> tuple[NeverWins, ...]:
    """The proofs that the rows in these places never win, all of them verified; none where one is refused."""
    proofs = tuple(NeverWins(head.digest, int(k), rivals, weights) for k in places)
    return () if verify_all(head, proofs).refused else proofs


def _likely(head: Head, places: np.ndarray, F: np.ndarray) -> tuple[float, float]:
    if head.link not in ("softmax", "sigmoid"):
        return float("nan"), float("nan")
    bound = 1 / (len(places) + 1) if head.link == "softmax" else 1.0
    top = max(float(head.probabilities(F[k : k + 64])[:, places[0]].max()) for k in range(0, len(F), 64))
    return top, bound


def _least_likely(head: Head, real: np.ndarray, F: Float[np.ndarray, "points dim"]) -> int:
    """The real row whose largest score, against the best of the others, is lowest over the embeddings."""
    worst = np.full(len(real), -np.inf)
    for k in range(0, len(F), 64):
        scores = head.logits(F[k : k + 64])[:, real]
        worst = np.maximum(worst, (scores - scores.max(axis=1, keepdims=True)).max(axis=0))
    return int(real[int(np.argmin(worst))])
