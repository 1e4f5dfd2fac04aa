"""Which statistics of a trained head differ from random heads once the gauge is taken out?

Each statistic below is a function of the covariance of the centred logits over the states, so no equivalent form of the
model has another value. It is held against random heads of the same spectrum and the same sizes of labels (see
`random_heads`), and what names and frequencies have to do with neighbours against labels dealt anew.

    spread      standard deviation of the centred-logit correlations of all pairs
    nearest     mean over labels of the correlation with the nearest label
    hubs        skewness of how often a label is among the 10 nearest of others
    own way     share of labels that win where states move towards them most: K_ii > K_ij for all j
    margin      mean of (K_ii - max_j K_ij) / K_ii
    can tie     share of pairs of 40 labels that can share the top in the 3 leading directions: edges of their hull
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gonio.core.head import Head
from gonio.studies.centred_logits import correlations, logit_coordinates, mean_probability, nearest, sampled
from gonio.studies.cosine_spread import cosine_spread
from gonio.studies.label_meaning import label_meaning
from gonio.studies.random_heads import of_one_spectrum, of_one_spectrum_and_norms, spectrum_missed
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
STATISTICS = ("spread", "nearest", "hubs", "own way", "margin", "can tie")


def different_from_random(
    head: Head,
    states: Any,
    *,
    name: str = "the head given",
    labels: int = LABELS,
    draws: int = DRAWS,
    seed: int = 0,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> StudyResult:
    """What of a head differs from random heads of the same spectrum and sizes, by quantities no gauge moves.

    Parameters
    ----------
    states : what reaches the head, one a row
    labels : at most so many are drawn (more than the head is wide where it has them); the head restricted to them
        is studied
    draws : random heads of each kind
    """
    rng = np.random.default_rng(seed)
    n, d = head.shape
    which = sampled(n, max(labels, d + 100), rng)
    A = logit_coordinates(head, states, which)
    enough(len(which), SUBSET, "random", "labels")
    centred = head.link == "softmax"
    seen = statistics(A, seed)
    found = []
    nulls = {"spectrum": of_one_spectrum, "spectrum and sizes": of_one_spectrum_and_norms}
    null: dict[str, np.ndarray] = {}
    missed = 0.0
    for k, (kind, make) in enumerate(nulls.items()):
        rows = []
        many = draws if k else min(draws, FEWER)
        for j in range(many):
            if on_progress is not None:
                on_progress(j, many, f"random heads, {kind}")
            drawn = make(A, rng, centred=centred)
            missed = max(missed, spectrum_missed(A, drawn))
            rows.append(statistics(drawn, seed))
        null[kind] = np.array([[r[s] for s in STATISTICS] for r in rows])
    for i, s in enumerate(STATISTICS):
        found.append(Measured(s, seen[s]))
        for kind, values in null.items():
            low, high = np.quantile(values[:, i], [0.025, 0.975])
            how = f"{len(values)} random heads of the same {kind}; p {p_value(seen[s], values[:, i]):.3f}"
            found.append(Measured(f"{s}, random ({kind})", float(values[:, i].mean()), float(low), float(high), how))
    found.append(Measured("spectrum missed by a random head", missed, how="of its sum, at most"))
    model_frequency = mean_probability(head, states)
    frequency = np.log(np.maximum(model_frequency[which], 1e-30))
    near = nearest(correlations(A), 1)[:, 0]
    found += label_meaning(tuple(head.labels[i] for i in which) if head.named else None, near, frequency, rng)
    wide = sampled(n, max(labels, 4 * d), rng)  # of hardly more labels than directions whitening leaves nothing
    often = np.log(np.maximum(model_frequency[wide], 1e-30))
    found += cosine_spread(head.rows[wide].astype(np.float64), often, rng, centred=centred)
    p = {s: p_value(seen[s], null["spectrum and sizes"][:, i]) for i, s in enumerate(STATISTICS)}
    return StudyResult(
        "random",
        QUESTION,
        f"{name}: {len(which):,} of {n:,} labels x {d}, {len(states):,} states",
        tuple(found),
        verdict(p, {m.name: m for m in found}, centred),
        limits=(
            "The spectrum, and how much each label's logit varies, are themselves trained: what is matched is not "
            "shown to be random. Other states give other numbers." + (FEW.format(n, d) if n - centred <= d else "")
        ),
        seed=seed,
        extra={"p": p, "labels": len(which)},
    )


def p_value(seen: float, null: np.ndarray) -> float:
    """Two-sided: how often a random head lies as far from the random heads' mean as the trained one."""
    middle = null.mean()
    return float((1 + (np.abs(null - middle) >= abs(seen - middle) - 1e-12).sum()) / (1 + len(null)))


def verdict(p: dict[str, float], numbers: dict[str, Measured], centred: bool = True) -> str:
    """The sentence that the numbers decide: Bonferroni over the statistics, at 5 %."""
    apart = [s for s in p if p[s] <= 0.05 / len(p)]
    same = [s for s in p if s not in apart]
    if apart:
        said = f"{len(apart)} of {len(p)} statistics differ from random heads of the same spectrum and sizes ("
        said += ", ".join(apart) + ")" + (f"; not shown to differ: {', '.join(same)}" if same else "") + "."
    else:
        said = f"None of {len(p)} statistics is shown to differ from random heads of the same spectrum and sizes."
    parts = [numbers[k].value for k in ("offset", "covariance") if k in numbers]
    convention = sum(parts) / numbers["stored cosines"].value
    which = "the offset and the covariance of the rows, which are" if centred else "the rows' covariance, which is"
    return f"{said} Of the mean square of the stored cosines {convention:.0%} is due to {which} convention."


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
