"""Why do the cosine matrices of two models correlate (Lee et al. 2025)? How much of it is about the models?

Two heads over one label set: the correlation of their stored cosines, with an interval over labels and a Mantel test
(labels of one dealt anew); what is left when frequency and length of the labels are held; how high and low equivalent
forms of the two make it; and the correlation of their centred-logit correlations over the same inputs, which no
equivalent form moves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.diagnostics.agreement_of_heads import shared_labels
from gonio.gauge import gauge_of
from gonio.gauge.transforms import Linear, Translation
from gonio.studies.centred_logits import correlations, logit_coordinates, sampled
from gonio.studies.gauge_extremes import correlation, lowest, split_one
from gonio.studies.study import Measured, StudyResult, enough

QUESTION = "Do the two models agree on which labels are alike, or only their coordinates?"
LABELS = 400
RESAMPLES, DEALS = 200, 199


def common_geometry(
    a: Head,
    b: Head,
    *,
    states: tuple[Any, Any] | None = None,
    frequency: Any = None,
    lengths: Any = None,
    names: tuple[str, str] = ("the first", "the second"),
    labels: int = LABELS,
    steps: int = 60,
    seed: int = 0,
) -> StudyResult:
    """How two heads' cosines correlate, what equivalent forms make of it, and what their logits say.

    Parameters
    ----------
    states : (F_a, F_b), what reaches each head for the same inputs in the same order
    frequency : log frequency of every label of the first head, held in the partial correlation
    lengths : one number a label of the first head, held too; if not given, the lengths of their names
    labels : at most so many shared labels are drawn, but more than the wider head has columns where there are such:
        of fewer labels than columns every configuration is an equivalent form
    steps : of the descent to the lowest correlation
    """
    rng = np.random.default_rng(seed)
    both, shared = shared_labels(a, b)
    which = sampled(len(both), max(labels, int(1.5 * max(a.shape[1], b.shape[1]))), rng)
    live = (a.norms[both[which, 0]] > 0) & (b.norms[both[which, 1]] > 0)
    which = which[live]
    enough(len(which), 10, "geometry", "shared labels with rows of some length")
    i, j = both[which].T
    W, V = a.rows[i].astype(np.float64), b.rows[j].astype(np.float64)
    held = [np.asarray(x, float)[i] for x in (frequency, lengths) if x is not None]
    if lengths is None and a.named:
        held.append(np.array([len(shared[k]) for k in which], float))
    found = _compared("stored cosines", correlations(W), correlations(V), held, rng)
    found += _reach(W, V, a, b, steps)
    if states is not None:
        if len(states[0]) != len(states[1]):
            raise GonioError(
                f"study geometry: {len(states[0]):,} and {len(states[1]):,} states were given; "
                "the same inputs are needed in both."
            )
        first, second = (correlations(logit_coordinates(h, F, k)) for h, F, k in ((a, states[0], i), (b, states[1], j)))
        found += _compared("logits", first, second, held, rng)
    numbers = {m.name: m for m in found}
    return StudyResult(
        "geometry",
        QUESTION,
        f"{names[0]} and {names[1]}: {len(which):,} of {len(both):,} shared labels",
        tuple(found),
        verdict(numbers),
        against(numbers),
        "The lowest correlation is what a descent found, not a bound. "
        + ("" if states is not None else "Without states of the same inputs nothing here is a fact of the models."),
        seed,
    )


def verdict(n: dict[str, Measured]) -> str:
    """What the numbers say of stored cosines, and of logits where there are any."""
    stored = n["stored cosines"]
    said = f"Stored cosines correlate by {stored.words()}"
    if "lowest found" in n:
        top = " to 1 (proven, approached)" if "supremum" in n else " on"
        said += f"; equivalent forms of the two run from {n['lowest found'].words()}{top}, so the number is no fact"
    else:
        said += "; no equivalent form of these tables that moves it is known"
    if "logits" not in n:
        return said + "."
    logit = n["logits, frequency and length held"] if "logits, frequency and length held" in n else n["logits"]
    if logit.above(0):
        return said + f". The models do agree: their logits correlate by {n['logits'].words()} whatever the form."
    return said + f". That the models agree is not shown: their logits correlate by {n['logits'].words()}."


def against(n: dict[str, Measured]) -> str:
    """Lee et al. read a high correlation as shared geometry; said where it is far from what the logits have."""
    if "logits" not in n or "lowest found" not in n:
        return ""
    stored, logit = n["stored cosines"], n["logits"]
    if stored.low is not None and logit.high is not None and stored.low > logit.high:
        return f"the stored cosines agree more ({stored.words()}) than what the models do ({logit.words()})."
    if stored.high is not None and logit.low is not None and stored.high < logit.low:
        return f"the stored cosines hide agreement: {stored.words()} where the logits have {logit.words()}."
    return ""


def _compared(name: str, A: np.ndarray, B: np.ndarray, held: list[np.ndarray], rng: np.random.Generator):
    """The correlation of two matrices with its interval and Mantel p, and the same with covariates held."""
    value, low, high = with_interval(A, B, rng)
    p = mantel(A, B, rng)
    out = [Measured(name, value, low, high, f"{RESAMPLES} resamples of the labels; Mantel p {p:.3f}")]
    if held:
        left = [held_out(C, held) for C in (A, B)]
        value, low, high = with_interval(left[0], left[1], rng)
        p = mantel(left[0], left[1], rng)
        how = f"{RESAMPLES} resamples of the labels; Mantel p {p:.3f}"
        out.append(Measured(f"{name}, frequency and length held", value, low, high, how))
    return out


def _reach(W: np.ndarray, V: np.ndarray, a: Head, b: Head, steps: int) -> list[Measured]:
    """How high and low equivalent forms make it; nothing where no gauge that moves cosines is known of either head."""
    kinds = [gauge_of(h).kinds for h in (a, b)]
    linear, translate = ((kind in kinds[0], kind in kinds[1]) for kind in (Linear, Translation))
    if not any(linear) and not any(translate):
        return []
    out = []
    split = split_one(W, V) if all(linear) and all(translate) else None
    if split is not None:
        shown = correlation(split[0].apply(W), split[1].apply(V))
        name = a.labels[split[2]] if a.named and len(W) == len(a) else f"label {split[2]} of those drawn"
        out.append(Measured("supremum", 1.0, how=f"proven: {name} can win in both"))
        out.append(Measured("highest form shown", shown))
    low, form_a, form_b = lowest(W, V, steps=steps, translate=translate, linear=linear)
    worst = max(np.linalg.cond(f.M) for f in (form_a, form_b))
    out.append(Measured("lowest found", low, how=f"{steps} steps of L-BFGS; condition of the maps at most {worst:.1e}"))
    return out


def with_interval(A: np.ndarray, B: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """Pearson over pairs of labels, and its 95 % over resampled labels (a pair counts as often as both do)."""
    n = len(A)
    drawn = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(float)
    weights = np.vstack([np.ones(n), drawn])
    A, B = A.copy(), B.copy()
    np.fill_diagonal(A, 0)
    np.fill_diagonal(B, 0)
    total = weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    mean = lambda C: ((weights @ C) * weights).sum(axis=1) / total  # noqa: E731
    a, b, aa, bb, ab = mean(A), mean(B), mean(A * A), mean(B * B), mean(A * B)
    r = (ab - a * b) / np.sqrt(np.maximum((aa - a * a) * (bb - b * b), 1e-300))
    low, high = np.quantile(r[1:], [0.025, 0.975])
    return float(r[0]), float(low), float(high)


def mantel(A: np.ndarray, B: np.ndarray, rng: np.random.Generator) -> float:
    """How often labels dealt anew give as high a correlation of two matrices of pairs."""
    n = len(A)
    C = A - A[np.triu_indices(n, 1)].mean()
    np.fill_diagonal(C, 0)
    seen = (C * B).sum()
    null = [(C * B[np.ix_(o, o)]).sum() for o in (rng.permutation(n) for _ in range(DEALS))]
    return float((1 + (np.array(null) >= seen - 1e-9 * abs(seen)).sum()) / (1 + DEALS))


def held_out(C: np.ndarray, held: list[np.ndarray]) -> np.ndarray:
    """What a regression on the sum and the difference in size of each covariate leaves of a matrix of pairs."""
    i, j = np.triu_indices(len(C), 1)
    z = [(x - x.mean()) / (x.std() or 1) for x in held]
    X = np.column_stack([np.ones(len(i)), *(x[i] + x[j] for x in z), *(np.abs(x[i] - x[j]) for x in z)])
    y = C[i, j]
    out = np.zeros_like(C)
    out[i, j] = out[j, i] = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return out
