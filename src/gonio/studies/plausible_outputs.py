"""f is not surjective: of what is possible for some vector, what is plausible for a state, and what was seen?

Proofs that a label can win are about every vector that could reach the head; the states of a model fill only a part.

    possible    for some input that the head's layer before it allows
    plausible   for some point of an ellipsoid fitted to half of the states, whose size a quarter of them sets so that
                it holds all but a given share; on the last quarter its coverage is counted
    seen        at some state

Winners are asked one by one, pairs as the two that share the top, rankings as the order of four labels. The hull of the
states is tried as well: how many held-out states it holds says whether it is an outer set at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.ask.questions import can_rank
from gonio.ask.ties import can_tie
from gonio.ask.wins import can_win
from gonio.core import checks
from gonio.core.head import Head
from gonio.core.inputs import AfterRMSNorm
from gonio.embeddings.sampling_intervals import share_interval
from gonio.studies.centred_logits import sampled
from gonio.studies.study import Measured, StudyResult, enough

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

QUESTION = "Of the outputs that some vector could bring about, how many could a state, and how many were seen?"
LEFT_OUT = 0.01  # share of the states that the ellipsoid may leave out
PAIRS, RANKINGS, OF_HULL = 60, 60, 30


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """mean + root u with |u| <= 1."""

    mean: Float[np.ndarray, " dim"]
    root: Float[np.ndarray, "dim rank"]

    def contains(self, F: Float[np.ndarray, "points dim"]) -> Bool[np.ndarray, " points"]:
        """Which points lie inside; a part outside of the directions of the fit is outside."""
        return distance(self, F) <= 1

    def restrict(self, head: Head) -> Head:
        """The head as it scores u: its inputs are the ellipsoid."""
        W = head.W.astype(np.float64)
        r = self.root.shape[1]
        bias = W @ self.mean + (0 if head.bias is None else head.bias)
        ball = AfterRMSNorm(np.full(r, 1 / np.sqrt(r)))
        return Head(W @ self.root, bias - bias.mean(), link=head.link, inputs=ball)


def distance(e: Ellipsoid, F: np.ndarray) -> Float[np.ndarray, " points"]:
    """|u| of the point in e's directions that is nearest to each state; infinite where a part is left over."""
    C = np.asarray(F, np.float64) - e.mean
    u, *_ = np.linalg.lstsq(e.root, C.T, rcond=None)
    left = np.linalg.norm(C.T - e.root @ u, axis=0) > 1e-6 * np.maximum(np.linalg.norm(C, axis=1), 1e-300)
    return np.where(left, np.inf, np.linalg.norm(u, axis=0))


def fitted(fit: np.ndarray, calibrate: np.ndarray, left_out: float = LEFT_OUT) -> Ellipsoid:
    """The covariance's ellipsoid of one part, as large as to hold all but a share of another (split conformal)."""
    mean = fit.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(fit.T, bias=True))
    live = values > values[-1] * 1e-10
    unit = Ellipsoid(mean, vectors[:, live] * np.sqrt(values[live]))
    sizes = np.sort(distance(unit, calibrate))
    rank = min(len(sizes) - 1, int(np.ceil((1 - left_out) * (len(sizes) + 1))) - 1)
    return Ellipsoid(mean, unit.root * sizes[rank])


def plausible_outputs(
    head: Head,
    states: Any,
    *,
    name: str = "the head given",
    labels: int = 400,
    left_out: float = LEFT_OUT,
    seed: int = 0,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> StudyResult:
    """Winners, pairs and rankings in three columns: possible, plausible, seen.

    Parameters
    ----------
    states : what reaches the head, one a row; split at random into a half, a quarter and a quarter
    labels : at most so many labels are asked about, against all rivals
    left_out : share of the states that the ellipsoid may leave out
    """
    head.must_score("study plausible")
    F = checks.embeddings(states, head.shape[1], "study plausible").astype(np.float64)
    enough(len(F), 4 * 10, "plausible", "states")
    tell = on_progress or (lambda *_: None)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(F))
    half, last = len(F) // 2, 3 * len(F) // 4
    region = fitted(F[order[:half]], F[order[half:last]], left_out)
    inside = region.contains(F[order[last:]])
    small = region.restrict(head)
    top = _tops(head, F)
    which = sampled(head.shape[0], labels, rng)
    tell(0, 3, "winners")
    found = [_share("held-out states in the ellipsoid", inside)]
    found.append(_share("held-out states in the hull", _in_hull(F[order[:half]], F[order[last:]][:OF_HULL])))
    seen = np.isin(which, top[:, 0])
    asked = {"possible": can_win(head, which), "plausible": can_win(small, which)}
    for column, w in asked.items():
        can = np.isin(which, np.concatenate([w.wins, w.shared]))
        found.append(_share(f"winners: {column}", can, len(w.undecided)))
        if column == "plausible":
            found.append(Measured("seen winners that are not plausible", float((seen & ~can).sum())))
    found.append(_share("winners: seen", seen))
    tell(1, 3, "pairs")
    found += _pairs(head, small, top, rng)
    tell(2, 3, "rankings")
    found += _rankings(head, small, F, rng)
    numbers = {m.name: m for m in found}
    return StudyResult(
        "plausible",
        QUESTION,
        f"{name}: {len(which):,} of {head.shape[0]:,} labels, {len(F):,} states",
        tuple(found),
        verdict(numbers),
        against(numbers),
        "The ellipsoid holds most of the states given; of others nothing is known. Inside of it, too, not every point "
        "is a state: plausible is still an outer set. States were split at random, not by document.",
        seed,
        {"left_out": left_out},
    )


def verdict(n: dict[str, Measured]) -> str:
    """The three columns in words."""
    a, b, c = (n[f"winners: {k}"].value for k in ("possible", "plausible", "seen"))
    said = f"{a:.0%} of the labels asked can win, {b:.0%} within where states lie, {c:.0%} were seen to"
    r = [n[f"rankings: {k}"].value for k in ("possible", "plausible", "seen")]
    said += f"; of random orders of four labels {r[0]:.0%}, {r[1]:.0%} and {r[2]:.0%}"
    if a - b > 0.05:
        return f"{said}: that f is not surjective excludes much of what is possible."
    if b - c > 0.05:
        return f"{said}: where states lie excludes little; most of what is possible and not seen is plausible."
    return f"{said}: possible, plausible and seen are nearly the same."


def against(n: dict[str, Measured]) -> str:
    """Proofs over all inputs speak of more than states can do: said where the difference is clear of chance."""
    a, b = n["winners: possible"], n["winners: plausible"]
    if a.low is not None and b.high is not None and a.low > b.high:
        return (
            f"the sources prove what some vector brings about; of the labels that can win so ({a.value:.0%}) a part "
            f"cannot where states lie ({b.value:.0%} can)."
        )
    return ""


def _share(name: str, yes: np.ndarray, undecided: int = 0) -> Measured:
    i = share_interval(int(np.sum(yes)), len(yes))
    how = f"{int(np.sum(yes)):,} of {len(yes):,}" + (f"; {undecided:,} undecided" if undecided else "")
    return Measured(name, i.value, i.low, i.high, how)


def _tops(head: Head, F: np.ndarray, block: int = 256) -> np.ndarray:
    """The two labels of the largest logits of each state, the larger first."""
    out = []
    for s in range(0, len(F), block):
        z = head.logits(F[s : s + block])
        two = np.argpartition(-z, 1, axis=1)[:, :2]
        at = np.take_along_axis(z, two, axis=1)
        out.append(np.where((at[:, :1] >= at[:, 1:]), two, two[:, ::-1]))
    return np.concatenate(out)


def _pairs(head: Head, small: Head, top: np.ndarray, rng: np.random.Generator) -> list[Measured]:
    """Random pairs of labels that share the top."""
    n = head.shape[0]
    first = rng.integers(0, n, PAIRS)
    pairs = np.column_stack([first, (first + rng.integers(1, n, PAIRS)) % n])
    seen = {tuple(sorted(map(int, p))) for p in top}
    out = []
    for column, h in (("possible", head), ("plausible", small)):
        found = np.array(can_tie(h, pairs=pairs).answers)
        out.append(_share(f"pairs: {column}", found == "yes", int((found == "undecided").sum())))
    out.append(_share("pairs: seen", np.array([tuple(sorted(map(int, p))) in seen for p in pairs])))
    return out


def _rankings(head: Head, small: Head, F: np.ndarray, rng: np.random.Generator) -> list[Measured]:
    """Random orders of four random labels."""
    rows: dict[str, list[bool]] = {"possible": [], "plausible": [], "seen": []}
    undecided = dict.fromkeys(rows, 0)
    for _ in range(RANKINGS):
        some = rng.choice(head.shape[0], min(4, head.shape[0]), replace=False)
        z = F @ head.rows[some].astype(np.float64).T + (0 if head.bias is None else head.bias[some])
        rows["seen"].append(bool((np.diff(z, axis=1) < 0).all(axis=1).any()))
        for column, h in (("possible", head), ("plausible", small)):
            bias = None if h.bias is None else h.bias[some]
            few = Head(h.W[some], bias, link="softmax", inputs=h.inputs)
            answer = can_rank(few, list(range(len(some)))).answer
            rows[column].append(answer == "yes")
            undecided[column] += answer == "undecided"
    return [_share(f"rankings: {k}", np.array(v), undecided[k]) for k, v in rows.items()]


def _in_hull(points: np.ndarray, asked: np.ndarray, most: int = 1500) -> np.ndarray:
    """Whether each asked point is a convex combination of the points (of at most so many of them)."""
    from scipy.optimize import linprog

    P = points[:most]
    A = np.vstack([P.T, np.ones(len(P))])
    out = []
    for x in asked:
        found = linprog(np.zeros(len(P)), A_eq=A, b_eq=np.append(x, 1.0), bounds=(0, None), method="highs")
        out.append(found.status == 0)
    return np.array(out)
