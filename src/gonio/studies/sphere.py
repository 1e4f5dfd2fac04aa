"""The sphere's view of embeddings (You 2025): geodesic means, dispersion, and where they mislead.

    mean direction   of the unit vectors: their sum at length 1
    geodesic mean    the point of the sphere with the least mean squared angle to all (a descent to a fixed point)
    concentration    kappa of a von Mises-Fisher law: the root of  I_{d/2}(k) / I_{d/2-1}(k) = R,  R the mean
                     resultant length; with its interval over resampled vectors
    plain mean       of the vectors as they are: where lengths carry information it points elsewhere

A von Mises-Fisher law spreads evenly around its mean. Whether the vectors do is looked at: with R known, the mean
square along each direction beside the mean is the same; `evenness` is their mean over the largest, 1 for an even
spread of very many vectors, and about 1 / (1 + sqrt(d / n))^2 for one of n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.correlations import spearman
from gonio.core.directions import unit
from gonio.studies.study import Measured, StudyResult, enough

if TYPE_CHECKING:
    from jaxtyping import Float

QUESTION = "What do statistics on the sphere say of these vectors, and where do they mislead because lengths matter?"
RESAMPLES = 200


def sphere(X: Any, *, weights: Any = None, name: str = "the vectors given", seed: int = 0) -> StudyResult:
    """Means and dispersion on the sphere, and what lengths add.

    Parameters
    ----------
    X : vectors, one a row; rows of length 0 are left out
    weights : how often each occurs, if it is known: lengths are correlated with it
    """
    V = checks.wide(checks.matrix(X, "study sphere", "X", axes=("rows", "dim"))).astype(np.float64)
    size = np.linalg.norm(V, axis=1)
    live = size > 0
    V, size = V[live], size[live]
    enough(len(V), 20, "sphere", "vectors of some length")
    U = unit(V)
    rng = np.random.default_rng(seed)
    mean, plain = unit(U.mean(axis=0)[None])[0], unit(V.mean(axis=0)[None])[0]
    middle = geodesic_mean(U)
    drawn = [rng.integers(0, len(U), len(U)) for _ in range(RESAMPLES)]
    sums = np.array([U[d].mean(axis=0) for d in drawn])
    d = V.shape[1]
    kappas = np.array([concentration(float(np.linalg.norm(s)), d) for s in sums])
    means = unit(np.array([V[i].mean(axis=0) for i in drawn]))
    angle_null = np.degrees(np.arccos(np.clip((unit(sums) * mean).sum(axis=1), -1, 1)))
    angles = np.degrees(np.arccos(np.clip((means * unit(sums)).sum(axis=1), -1, 1)))
    found = [
        _drawn("mean resultant length", float(np.linalg.norm(U.mean(axis=0))), np.linalg.norm(sums, axis=1)),
        _drawn("concentration", concentration(float(np.linalg.norm(U.mean(axis=0))), d), kappas),
        Measured("angle of geodesic mean and mean direction", _angle(middle, mean), how="degrees"),
        _drawn("angle of plain mean and mean direction", _angle(plain, mean), angles, "degrees"),
        Measured("95 % cone of the mean direction", float(np.quantile(angle_null, 0.95)), how="degrees, resampled"),
        Measured("evenness", evenness(U, mean)),
        Measured("evenness of as many even vectors", 1 / (1 + np.sqrt(d / len(V))) ** 2, how="Marchenko and Pastur"),
        _rank("length and cosine to the mean", size, U @ mean, drawn),
    ]
    if weights is not None:
        found.append(_rank("length and how often", size, np.asarray(weights, float)[live], drawn))
    numbers = {m.name: m for m in found}
    return StudyResult(
        "sphere",
        QUESTION,
        f"{name}: {len(V):,} vectors of {d} dimensions",
        tuple(found),
        verdict(numbers),
        against(numbers),
        "Of rows of a softmax head none of these is a fact: a translation moves all of them. A concentration is that "
        "of a law which the vectors need not follow.",
        seed,
    )


def verdict(n: dict[str, Measured]) -> str:
    """Do lengths change the picture, and is the law one that the vectors follow?"""
    k, angle, cone = (
        n["concentration"],
        n["angle of plain mean and mean direction"],
        n["95 % cone of the mean direction"],
    )
    law, even = n["evenness"].value, n["evenness of as many even vectors"].value
    far = law < even / 2
    said = f"The concentration is {k.words(1)}, but " if far else f"The concentration is {k.words(1)}, and "
    how = "far from even" if far else "nearly even" if law > 0.8 * even else "not quite even"
    said += f"the spread around the mean is {how} (evenness {law:.2f}, {even:.2f} if it were even). "
    if angle.above(cone.value):
        return f"{said}Lengths matter: the plain mean lies {angle.value:.1f} degrees off the sphere's."
    return f"{said}Lengths hardly matter for the mean: {angle.value:.1f} degrees, within what resampling moves it by."


def against(n: dict[str, Measured]) -> str:
    """You reads lengths as certainty apart from direction: said where length and direction go together."""
    m = n["length and cosine to the mean"]
    if m.above(0) or m.below(0):
        side = "towards" if m.above(0) else "away from"
        return (
            f"You 2025 takes lengths and directions apart; here they go together: longer vectors lie {side} the mean "
            f"direction ({m.words(2)}), so unit vectors lose more than a length."
        )
    return ""


def geodesic_mean(U: Float[np.ndarray, "rows dim"], steps: int = 100) -> Float[np.ndarray, " dim"]:
    """The fixed point of  m -> exp_m(mean of log_m(u)):  the least mean squared angle, from the mean direction on."""
    m = unit(U.mean(axis=0)[None])[0]
    for _ in range(steps):
        c = np.clip(U @ m, -1, 1)
        angle = np.arccos(c)
        side = U - c[:, None] * m
        length = np.linalg.norm(side, axis=1)
        log = np.where(length[:, None] > 1e-12, side * (angle / np.maximum(length, 1e-12))[:, None], 0).mean(axis=0)
        step = np.linalg.norm(log)
        if step < 1e-10:
            break
        m = np.cos(step) * m + np.sin(step) * log / step
        m /= np.linalg.norm(m)
    return m


def concentration(R: float, d: int) -> float:
    """kappa with I_{d/2}(k) / I_{d/2-1}(k) = R, by Newton steps from Banerjee's start R (d - R^2) / (1 - R^2)."""
    if R <= 0:
        return 0.0
    if R >= 1:
        return float("inf")
    k = R * (d - R * R) / (1 - R * R)
    for _ in range(25):
        a = bessel_ratio(k, d)
        change = (a - R) / max(1 - a * a - (d - 1) / k * a, 1e-12)
        k = max(k - change, k / 2)
        if abs(change) < 1e-10 * k:
            break
    return float(k)


def bessel_ratio(k: float, d: int, depth: int = 400) -> float:
    """I_{d/2}(k) / I_{d/2-1}(k) by its continued fraction  1 / (d/k + 1 / ((d+2)/k + ...)),  from deep inside out."""
    value = 0.0
    for j in range(depth + int(k), -1, -1):
        value = 1 / ((d + 2 * j) / k + value)
    return value


def evenness(U: np.ndarray, mean: np.ndarray) -> float:
    """The mean square a direction beside the mean over the largest along any one there; 1 for an even spread."""
    beside = U - (U @ mean)[:, None] * mean
    S = beside.T @ beside / len(U)
    top = float(np.linalg.eigvalsh(S)[-1])
    return float(np.trace(S) / (U.shape[1] - 1) / top) if top > 0 else 1.0


def _angle(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.degrees(np.arccos(np.clip(a @ b, -1, 1))))


def _drawn(name: str, value: float, drawn: np.ndarray, unit_of: str = "") -> Measured:
    low, high = np.quantile(drawn, [0.025, 0.975])
    how = f"{unit_of}{', ' if unit_of else ''}{RESAMPLES} resamples"
    return Measured(name, value, float(low), float(high), how)


def _rank(name: str, x: np.ndarray, y: np.ndarray, drawn: list[np.ndarray]) -> Measured:
    low, high = np.nanquantile([spearman(x[d], y[d]) for d in drawn], [0.025, 0.975])
    return Measured(name, spearman(x, y), float(low), float(high), f"Spearman, {RESAMPLES} resamples")
