"""Which statistics of a trained head differ from random heads once the gauge is taken out?

Each statistic below is a function of the covariance of the centred logits over the states, so no equivalent form of the
model has another value. It is held against random heads of the same spectrum and the same sizes of labels, and against
such that keep what goes with frequency too (see `random_heads`); what names and frequencies have to do with neighbours
is held against labels dealt anew.

    spread      standard deviation of the centred-logit correlations of all pairs
    nearest     mean over labels of the correlation with the nearest label
    hubs        skewness of how often a label is among the 10 nearest of others
    own way     share of labels that win where states move towards them most: K_ii > K_ij for all j
    margin      mean of (K_ii - max_j K_ij) / K_ii
    can tie     share of pairs of 40 labels that can share the top in the 3 leading directions: edges of their hull
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.studies.centred_logits import correlations, logit_coordinates, mean_probability, nearest, sampled
from gonio.studies.cosine_spread import cosine_spread
from gonio.studies.frequency_part import curves, frequency_share
from gonio.studies.label_meaning import label_meaning
from gonio.studies.random_heads import (
    of_one_spectrum,
    of_one_spectrum_and_sizes,
    of_one_spectrum_sizes_and_frequency,
    spectrum_missed,
)
from gonio.studies.study import Measured, StudyResult, enough

QUESTION = "Which statistics of this head differ from random heads after everything that is convention is taken out?"
DRAWS = 139  # with six statistics, one draw as extreme of 139 is 0.05 / 6 at most
FEWER = 39  # draws of the null of the spectrum alone, which is shown beside
LABELS = 400
SUBSETS, SUBSET, DIRECTIONS = 8, 40, 3
FEW = (
    " With {:,} labels in {:,} directions whitening takes all cosines away from every head: the parts say that they "
    "are convention, and nothing else."
)
TABLE = " A table that predicts nothing has no known equivalent forms but rotations and a common offset."
STATISTICS = ("spread", "nearest", "hubs", "own way", "margin", "can tie")
OWN = "the model's own mean probability over the states"
SPECTRUM, SIZES, FREQUENCY = "spectrum", "spectrum and sizes", "spectrum, sizes and frequency"
MISSED = {
    SIZES: "of its sum, at most",
    FREQUENCY: "of its sum, at most; exact is what is left once frequency's part and sizes are taken out",
}


def different_from_random(
    head: Head,
    states: Any = None,
    *,
    frequency: Any = None,
    counted_in: str = "frequencies that were given",
    name: str = "the head given",
    labels: int = LABELS,
    draws: int = DRAWS,
    seed: int = 0,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> StudyResult:
    """What of a head differs from random heads of the same spectrum, sizes and frequency, by what no gauge moves.

    Parameters
    ----------
    states : what reaches the head, one a row; a table that predicts nothing needs none, and its rows without their
        mean are studied as they are stored
    frequency : log of how often each label occurs, nan where it is not known: such labels are left out; without it,
        the model's own mean probability over the states stands for it
    counted_in : where the frequencies are from, in words
    labels : at most so many are drawn (more than the head is wide where it has them); the head restricted to them
        is studied
    draws : random heads of each kind
    """
    rng, own = np.random.default_rng(seed), np.random.default_rng([seed, 11])
    n, d = head.shape
    often, counted_in = _log_frequency(head, states, frequency, counted_in)
    known = np.flatnonzero(np.isfinite(often))
    which = known[sampled(len(known), max(labels, d + 100), rng)]
    enough(len(which), SUBSET, "random", "labels")
    table = states is None
    A = _centred_rows(head, which) if table else logit_coordinates(head, states, which)
    centred = table or head.link == "softmax"
    U = curves(often[which])
    nulls = {
        SPECTRUM: (of_one_spectrum(A, rng, centred=centred), min(draws, FEWER)),
        SIZES: (of_one_spectrum_and_sizes(A, rng, centred=centred), draws),
        FREQUENCY: (of_one_spectrum_sizes_and_frequency(A, U, own, centred=centred), draws),
    }
    seen = statistics(A, seed)
    null: dict[str, np.ndarray] = {}
    missed = dict.fromkeys(nulls, 0.0)
    for kind, (heads, many) in nulls.items():
        rows = []
        for j, drawn in enumerate(islice(heads, many)):
            if on_progress is not None:
                on_progress(j, many, f"random heads, {kind}")
            missed[kind] = max(missed[kind], spectrum_missed(A, drawn))
            rows.append(statistics(drawn, seed))
        null[kind] = np.array([[r[s] for s in STATISTICS] for r in rows])
    found = []
    for i, s in enumerate(STATISTICS):
        found.append(Measured(s, seen[s]))
        for kind, values in null.items():
            low, high = np.quantile(values[:, i], [0.025, 0.975])
            how = f"{len(values)} random heads of the same {kind}; p {p_value(seen[s], values[:, i]):.3f}"
            found.append(Measured(f"{s}, random ({kind})", float(values[:, i].mean()), float(low), float(high), how))
    for kind in (SIZES, FREQUENCY):
        found.append(Measured(f"spectrum missed by a random head of the same {kind}", missed[kind], how=MISSED[kind]))
    found += frequency_share(A, U, own)
    near = nearest(correlations(A), 1)[:, 0]
    found += label_meaning(tuple(head.labels[i] for i in which) if head.named else None, near, often[which], rng)
    if not table:  # of a table without a head neither offset nor covariance is convention
        wide = known[sampled(len(known), max(labels, 4 * d), rng)]  # fewer than directions would leave nothing
        found += cosine_spread(head.rows[wide].astype(np.float64), often[wide], rng, centred=centred)
    p = {kind: {s: p_value(seen[s], null[kind][:, i]) for i, s in enumerate(STATISTICS)} for kind in null}
    of = f"{n:,} labels" if len(known) == n else f"{len(known):,} labels of known frequency"
    reached = "as stored" if table else f"{len(states):,} states"
    return StudyResult(
        "random",
        QUESTION,
        f"{name}: {len(which):,} of {of} x {d}, {reached}; frequency: {counted_in}",
        tuple(found),
        verdict(p, {m.name: m for m in found}, centred),
        limits=(
            "The spectrum, how much each label's logit varies, and what goes with frequency are themselves trained: "
            "what is matched is not shown to be random. The random heads that keep frequency have the whole spectrum "
            "only nearly: the table says how nearly. Rare and frequent labels may also spread in other directions; "
            "that is not matched. Other states give other numbers."
            + (FEW.format(n, d) if not table and n - centred <= d else "")
            + (TABLE if table else "")
        ),
        seed=seed,
        extra={"p": p, "labels": len(which)},
    )


def _log_frequency(head: Head, states: Any, frequency: Any, counted_in: str) -> tuple[np.ndarray, str]:
    """Of each label the log of how often it occurs, and where that is from."""
    if frequency is None:
        if states is None:
            raise GonioError("study random: neither states nor frequencies were given; one of them is needed.")
        return np.log(np.maximum(mean_probability(head, states), 1e-30)), OWN
    often = np.asarray(frequency, np.float64)
    if often.shape != (head.shape[0],):
        raise GonioError(
            f"study random: frequencies have shape {often.shape}; one for each label is needed, {head.shape[0]:,}."
        )
    return often, counted_in


def _centred_rows(head: Head, which: np.ndarray) -> np.ndarray:
    W = checks.embeddings(head.rows[which], head.shape[1], "study").astype(np.float64)
    return W - W.mean(axis=0)


def p_value(seen: float, null: np.ndarray) -> float:
    """Two-sided: how often a random head lies as far from the random heads' mean as the trained one."""
    middle = null.mean()
    return float((1 + (np.abs(null - middle) >= abs(seen - middle) - 1e-12).sum()) / (1 + len(null)))


def verdict(p: dict[str, dict[str, float]], numbers: dict[str, Measured], centred: bool = True) -> str:
    """The sentences that the numbers decide: Bonferroni over the statistics, at 5 %, beside each kind of head."""
    apart, same = _told_apart(p[SIZES])
    many = len(p[SIZES])
    if apart:
        said = f"{_count(apart, many, 'statistics ')} from random heads of the same spectrum and sizes ("
        said += ", ".join(apart) + ")" + (f"; not shown to differ: {', '.join(same)}" if same else "") + "."
    else:
        said = f"None of {many} statistics is shown to differ from random heads of the same spectrum and sizes."
    still, _ = _told_apart(p[FREQUENCY])
    said += " With what goes with frequency kept too, "
    said += f"{_count(still, many)} ({', '.join(still)})." if still else f"none of {many} is shown to differ."
    gone = [s for s in apart if s not in still]
    said += f" Frequency may be the reason for: {', '.join(gone)}." if gone else ""
    if "stored cosines" not in numbers:
        return said
    parts = [numbers[k].value for k in ("offset", "covariance") if k in numbers]
    convention = sum(parts) / numbers["stored cosines"].value
    which = "the offset and the covariance of the rows, which are" if centred else "the rows' covariance, which is"
    return f"{said} Of the mean square of the stored cosines {convention:.0%} is due to {which} convention."


def _count(some: list[str], many: int, of: str = "") -> str:
    return f"{len(some)} of {many} {of}differ{'s' if len(some) == 1 else ''}"


def _told_apart(p: dict[str, float]) -> tuple[list[str], list[str]]:
    """Those that differ, and those not shown to."""
    apart = [s for s in p if p[s] <= 0.05 / len(p)]
    return apart, [s for s in p if s not in apart]


def statistics(A: np.ndarray, seed: int = 0) -> dict[str, float]:
    """The six statistics of a head in coordinates of its logits, by name; functions of A A' alone."""
    from scipy.stats import skew

    K = A @ A.T
    C = correlations(A)
    upper = C[np.triu_indices(len(C), 1)]
    k = min(10, len(A) - 1)
    counts = np.bincount(nearest(C, k).ravel(), minlength=len(A))
    own = np.diag(K).copy()
    np.fill_diagonal(K, -np.inf)
    margin = np.where(own > 0, (own - K.max(axis=1)) / np.where(own > 0, own, 1), 0)
    np.fill_diagonal(C, -np.inf)
    return {
        "spread": float(upper.std()),
        "nearest": float(C.max(axis=1).mean()),
        "hubs": float(skew(counts)) if np.ptp(counts) else 0.0,
        "own way": float((margin > 0).mean()),
        "margin": float(margin.mean()),
        "can tie": float(np.mean([edges(B) for B in _subsets(A, seed)])),
    }


def _subsets(A: np.ndarray, seed: int) -> list[np.ndarray]:
    """Subsets of labels in the leading directions of A; the same labels for every head of one study."""
    _, vectors = np.linalg.eigh(A.T @ A)
    lead = A @ vectors[:, -min(DIRECTIONS, A.shape[1]) :]
    rng = np.random.default_rng([seed, 7])
    return [lead[rng.choice(len(A), SUBSET, replace=False)] for _ in range(SUBSETS)]


def edges(points: np.ndarray) -> float:
    """The share of pairs of points that an edge of their hull joins: those that can share the top alone."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        faces = ConvexHull(points).simplices
    except QhullError:
        return 0.0
    pairs = np.sort(np.concatenate([faces[:, [i, j]] for i in range(faces.shape[1]) for j in range(i)]), axis=1)
    return 2 * len(np.unique(pairs, axis=0)) / (len(points) * (len(points) - 1))
