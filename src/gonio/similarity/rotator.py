"""Word Rotator's Distance: two texts as far apart as the cheapest way to turn the words of one into the other's.

    min over T >= 0 of  sum_ab T_ab (1 - cos(x_a, y_b)),  sum_b T_ab = |x_a| / sum |x|,  sum_a T_ab = |y_b| / sum |y|

(Yokoi et al. 2020.) A text is its word vectors; long vectors are important words. One word each: 1 - cos.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.parallel import in_threads

if TYPE_CHECKING:
    from jaxtyping import Float


def word_rotators_distance(x: Any, y: Any) -> float:
    """The distance of two texts, each an array of shape (words, dim); 0 to 2. NaN where a text has no non-zero word.

    >>> word_rotators_distance([[1, 0]], [[3, 4]])
    0.4
    """
    texts = []
    for t, name in ((x, "x"), (y, "y")):
        a = checks.wide(checks.matrix(t, "word_rotators_distance", name, axes=("words", "dim"))).astype(np.float64)
        checks.finite(a, "word_rotators_distance", name)
        texts.append(a)
    if texts[0].shape[1] != texts[1].shape[1]:
        raise GonioError(
            f"word_rotators_distance: x has width {texts[0].shape[1]} and y {texts[1].shape[1]}; one width is needed."
        )
    (u, a), (v, b) = (_directions(t) for t in texts)
    if not len(u) or not len(v):
        return float("nan")
    return transport(np.clip(1 - u @ v.T, 0, 2), a, b)


def word_rotators_distances(first: Sequence[Any], second: Sequence[Any]) -> Float[np.ndarray, " pairs"]:
    """The distances of the texts first[0], second[0], then first[1], second[1], ..."""
    if len(first) != len(second):
        raise GonioError(
            f"word_rotators_distances: {len(first)} and {len(second)} texts were given; pairs need as many."
        )
    return np.array(in_threads(lambda t: word_rotators_distance(*t), zip(first, second, strict=True)), np.float64)


def _directions(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    length = np.linalg.norm(text, axis=1)
    alive = length > 0
    return text[alive] / length[alive, None], length[alive] / max(length.sum(), 1e-300)


def transport(cost: Float[np.ndarray, "from to"], a: Float[np.ndarray, " from"], b: Float[np.ndarray, " to"]) -> float:
    """The least cost of carrying the weights a to the weights b (both sum to 1): a linear program."""
    m, n = cost.shape
    if abs(a.sum() - b.sum()) > 1e-9 * max(1.0, abs(a.sum())):
        raise GonioError(f"transport: the weights sum to {a.sum():.6g} and {b.sum():.6g}; both must sum to 1.")
    if m == 1 or n == 1:
        return float(a @ cost @ b)
    from scipy import sparse
    from scipy.optimize import linprog

    leave = sparse.kron(sparse.eye_array(m), np.ones((1, n)))
    arrive = sparse.kron(np.ones((1, m)), sparse.eye_array(n))
    # One of the m + n conditions follows from the others; rounding would make it contradict them.
    A = sparse.vstack([leave, arrive]).tocsr()[:-1]
    found = linprog(cost.ravel(), A_eq=A, b_eq=np.r_[a, b][:-1], bounds=(0, None), method="highs")
    if found.status != 0:
        raise GonioError(f"transport: no plan was found ({found.message}); check that the weights sum to 1.")
    return float(found.fun)
