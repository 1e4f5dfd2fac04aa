"""How far a cosine of a factor model can be moved by rescaling its coordinates.

With items b -> b / d and users a -> a * d, d > 0 coordinate by coordinate, no score changes. For two items, with
tau_l = b_jl / b_il over the coordinates where both differ from zero and weights w_l ~ b_il^2 / d_l^2,

    cos = E_w[tau] / sqrt(E_w[tau^2]),

which takes every value strictly between its ends; the ends follow from the signs of the products b_il b_jl and, where
all are alike, from Kantorovich's inequality.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.gauge.reach import Reach


def item_item(bi: Any, bj: Any) -> Reach:
    """The cosines of two items (or two users) over all positive diagonal rescalings.

    sup = 1 if some product is positive, inf = -1 if some is negative; all products positive: inf = 2 sqrt(mM)/(m+M)
    with m, M the least and largest tau, or 0 if a coordinate is zero in exactly one of the two; all negative: the
    mirror image; no coordinate in common: 0 always.

    >>> str(item_item([1.0, 2.0], [3.0, -1.0]))
    '(-1, 1)'

    Claims: GONIO.2.2
    """
    x, y = _pair(bi, bj, "item_item")
    if not x.any() or not y.any():
        return Reach(0.0, 0.0, False, False, "a zero vector has no cosine")
    both = (x != 0) & (y != 0)
    if not both.any():
        return Reach(
            0.0, 0.0, True, True, "the two have no coordinate in common, so their cosine is 0 in every scaling"
        )
    alone = bool(((x != 0) ^ (y != 0)).any())  # a coordinate that only one of the two has
    signs = np.sign(x) * np.sign(y)
    positive, negative = bool((signs > 0).any()), bool((signs < 0).any())
    part, power = _ratios(y[both], x[both])
    order = np.lexsort((part, power))
    least, largest = order[0], order[-1]
    is_least, is_largest = ((part == part[k]) & (power == power[k]) for k in (least, largest))
    if positive and negative:  # the ends are met only as some weights vanish
        return Reach(-1.0, 1.0, False, False, "coordinates of both signs: rescaling gives every cosine but -1 and 1")
    sign = 1.0 if positive else -1.0
    if is_least.all() and not alone:
        return Reach(sign, sign, True, True, "the two are multiples of each other in every scaling")
    if alone:
        near, reached, why = 0.0, False, "a coordinate that only one of them has can be made to outweigh all others"
    else:
        ratio = float(np.ldexp(part[least] / part[largest], power[least] - power[largest]))  # m / M
        near = 2 * np.sqrt(ratio) / (1 + ratio)
        two = bool((is_least | is_largest).all())  # weights on the two extreme ratios alone: attained inside
        reached, why = two, "all products have one sign: Kantorovich's inequality bounds the cosine"
    return Reach(near, 1.0, reached, False, why) if sign > 0 else Reach(-1.0, -near, False, reached, why)


def _ratios(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|y / x| as part * 2^power, 1/2 <= part < 1, whatever the size of the two."""
    (p, e), (q, f) = np.frexp(np.abs(y)), np.frexp(np.abs(x))
    part, power = np.frexp(p / q)
    return part, power + e - f


def user_item(p: Any, q: Any) -> Reach:
    """The cosines of a user p and an item q over all positive diagonal rescalings: the sign stays that of p.q, and
    |cos| lies in (0, |p.q| / sum_l |p_l q_l|], with the maximum at d_l = sqrt(|q_l| / |p_l|).

    Claims: GONIO.2.2
    """
    x, y = _pair(p, q, "user_item")
    if not x.any() or not y.any():
        return Reach(0.0, 0.0, False, False, "a zero vector has no cosine")
    (p, e), (q, f) = np.frexp(x), np.frexp(y)
    both = (p != 0) & (q != 0)
    product = np.ldexp(p * q, e + f - (e + f)[both].max(initial=-5000)) if both.any() else np.zeros(1)
    score, total = float(product.sum()), float(np.abs(product).sum())
    if score == 0:
        return Reach(0.0, 0.0, True, True, "the score is 0, and with it the cosine in every scaling")
    top = abs(score) / total
    alone = bool(((x != 0) ^ (y != 0)).any())
    if both.sum() == 1 and not alone:
        side = float(np.sign(score))
        return Reach(side, side, True, True, "both lie on one axis, in every scaling")
    # A coordinate that one of the two lacks keeps |cos| below the maximum, which is then only approached.
    why = "rescaling can make the cosine as small as wanted, never change its sign"
    return Reach(0.0, top, False, not alone, why) if score > 0 else Reach(-top, 0.0, not alone, False, why)


def diagonal_for(bi: Any, bj: Any, target: float) -> np.ndarray:
    """A rescaling d > 0 under which two items have the target cosine, for any value strictly inside their range.

    Weights move continuously from one extreme to the other, so bisection between two scalings finds it.
    """
    x, y = _pair(bi, bj, "diagonal_for")
    x, y = (np.ldexp(v, -int(np.frexp(np.abs(v).max())[1])) for v in (x, y))  # lengths do not count
    reach = item_item(x, y)
    if target not in reach or target in (reach.low, reach.high):
        raise GonioError(f"diagonal_for: the cosine {target:g} is not strictly inside what rescaling reaches, {reach}.")

    def cos(d: np.ndarray) -> float:
        a, b = x / d, y / d
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))

    low, high = _extremes(x, y)
    t0, t1 = 0.0, 1.0
    for _ in range(200):
        t = (t0 + t1) / 2
        d = np.exp((1 - t) * low + t * high)
        t0, t1 = (t, t1) if cos(d) < target else (t0, t)
    return np.exp((1 - t0) * low + t0 * high)


def _extremes(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of two rescalings that come close to the least and the largest cosine."""
    big = 300.0 / 4

    def favour(which: np.ndarray) -> np.ndarray:
        return np.where(which, 0.0, big)

    signs = np.sign(x) * np.sign(y)
    with np.errstate(divide="ignore"):
        size = np.log(np.abs(x)) + np.log(np.abs(y))  # of the products, which may be too small for floats
    high, low = (
        favour((signs == side) & (size == size[signs == side].max())) if (signs == side).any() else None
        for side in (1, -1)
    )
    if low is None or high is None:
        both = signs != 0
        alone_x, alone_y = (x != 0) & ~both, (y != 0) & ~both
        if alone_x.any() or alone_y.any():
            end = np.where(both, big, 0.0)
        else:
            tau = np.where(both, np.abs(y) / np.maximum(np.abs(x), 1e-300), np.nan)
            least, largest = np.nanargmin(tau), np.nanargmax(tau)
            m, M = tau[least], tau[largest]
            end = np.full(len(x), big)
            # Weights M : m on the two extreme ratios give Kantorovich's bound; w_l ~ x_l^2 / d_l^2.
            end[least] = np.log(abs(x[least])) - np.log(M) / 2
            end[largest] = np.log(abs(x[largest])) - np.log(m) / 2
        low, high = (low, end) if high is None else (end, high)
    assert low is not None
    assert high is not None
    return low, high


def _pair(a: Any, b: Any, who: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = (
        checks.vector(v, who, name, per="coordinate").astype(np.float64) for v, name in ((a, "first"), (b, "second"))
    )
    if len(x) != len(y):
        raise GonioError(f"{who}: the vectors have {len(x)} and {len(y)} coordinates; they must have as many.")
    return x, y
