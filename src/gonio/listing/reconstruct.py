"""What cosines fix when all of them are known.

Without bias the cosine matrix C(W) fixes the label sets (Nielsen and Grivas 2026, Lemma 5.3) but not the rankings
(Theorem 5.5). The cosines of all differences C(BW) fix the rankings (Theorem 5.6), and more: the head itself up to
translation, rotation and one scale, since the angles of its triangles give the ratios of their sides. With a bias the
rows (w_i, b_i) and (0, 1) take the place of w_i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.listing.arrangement import Arrangement, arrange_with_tolerance
from gonio.listing.braid_matrix import braid
from gonio.listing.cell_list import CellList
from gonio.listing.gram_factor import FLOAT64_ERROR, GramFactor, factorise, rows_from_gram
from gonio.listing.label_set_list import LabelSets, label_sets
from gonio.listing.packed_signs import unpack

if TYPE_CHECKING:
    from jaxtyping import Float, Int

TIMES_TOLERANCE = 3  # what is not taken for zero must exceed by so much what may be


def cosines(W: Any) -> Float[np.ndarray, "labels labels"]:
    """C(W)_ij = w_i.w_j / (|w_i| |w_j|), for a head that is small enough to look at all pairs.

    Claims: NG26.D5.2
    """
    rows = checks.matrix(W, "cosines", "W").astype(np.float64)
    length = np.linalg.norm(rows, axis=1)
    if not (length > 0).all():
        raise GonioError(f"cosines: row {int(np.argmin(length))} is zero and has no cosine; drop it.")
    unit = rows / length[:, None]
    return np.clip(unit @ unit.T, -1, 1)


def cosines_of_differences(W: Any) -> Float[np.ndarray, "pairs pairs"]:
    """C(BW): the cosines of all differences w_i - w_j, i < j, in lexicographic order."""
    rows = checks.matrix(W, "cosines_of_differences", "W").astype(np.float64)
    if len(rows) < 2:
        raise GonioError("cosines_of_differences: one label has no differences.")
    D = braid(len(rows)) @ rows
    if not (np.linalg.norm(D, axis=1) > 0).all():
        raise GonioError(
            "cosines_of_differences: two labels have equal rows, whose difference has no cosine; drop one."
        )
    return cosines(D)


def with_bias(head: Head) -> Float[np.ndarray, "rows wider"]:
    """(0, .., 0, 1) over the rows (w_i, b_i): with a bias, the cosines of these fix the label sets.

    Those of W do not.
    """
    bias = np.zeros(head.shape[0]) if head.bias is None else head.bias
    extra = np.zeros((1, head.shape[1] + 1))
    extra[0, -1] = 1
    return np.vstack([extra, np.column_stack([head.W, bias])])


def label_sets_from_cosines(C: Any, *, tol: float | None = None) -> LabelSets:
    """The label sets of every bias-free head with these cosines.

    C = L L' gives rows L with the column space of the normalised W, and sign vectors depend on that space alone.

    tol: how far a cosine may be off; read off the numbers where it is not given (`gram_factor.stated_error`). Refused
    where that error leaves open whether a value is zero: a list that hangs on it would be invented.

    Claims: NG26.L5.3
    """
    who = "label_sets_from_cosines"
    found = factorise(C, tol=tol, who=who)
    sets = label_sets(Head(found.rows, link="sigmoid"), numbers=found.tolerance or "floats")
    _told_apart(who, found, sets.arrangement, sets.cells)
    return sets


def rankings_from_cosines(C: Any, *, tol: float | None = None) -> Int[np.ndarray, "rankings labels"]:
    """The rankings of every bias-free head with these cosines of differences: label indices, winner first.

    tol: as in `label_sets_from_cosines`. Refused too where some signs of differences contradict each other.

    Claims: NG26.T5.6
    """
    who = "rankings_from_cosines"
    found = factorise(C, tol=tol, who=who)
    n = _labels_of(len(found.rows))
    a, _ = arrange_with_tolerance(found.rows, found.tolerance)
    cells = CellList(a, tol=found.tolerance)
    _told_apart(who, found, a, cells)
    parts = []
    first, second = (np.eye(n, dtype=np.int64)[k] for k in np.triu_indices(n, 1))
    for words, _ in cells.blocks():
        signs = unpack(words, a.planes)[:, a.plane] == (a.sign > 0)
        beaten = (~signs).astype(np.int64) @ first + signs.astype(np.int64) @ second
        if not (np.sort(beaten, axis=1) == np.arange(n)).all():
            raise GonioError(
                f"{who}: some differences would have signs that form a cycle (a above b above c above a), so these are "
                f"not the cosines of the differences of {n} labels, or not with enough digits; they are good to "
                f"{found.error:.1g} ({found.told}). Give them with more digits, or the head itself."
            )
        parts.append(np.argsort(beaten, axis=1))
    half = np.concatenate(parts) if parts else np.zeros((0, n), np.int64)
    return np.concatenate([half, half[:, ::-1]])


def _told_apart(who: str, found: GramFactor, a: Arrangement, cells: CellList) -> None:
    """Complain unless every value is either within the error of 0 or far beyond it.

    A cosine of 1 that may be 1 - e hides an angle of sqrt(2 e), far more than the error of a row. Where nothing but
    such cosines speaks for the rank (the rows that are not parallel are independent), it is not known.
    """
    low, high = cells.gap if a.rank > 1 else (0.0, np.inf)
    low = max(low, _merged(found.rows, a))
    apart = TIMES_TOLERANCE * found.tolerance
    clear = a.rank == found.rows.shape[1] and low <= found.row_error and high >= apart
    hidden = len(found.rows) > a.planes == a.rank and found.error > FLOAT64_ERROR
    if clear and not hidden:
        return
    good = f"{who}: the cosines are good to {found.error:.1g} ({found.told})"
    if clear:
        what = f"a cosine of 1 may hide an angle of {np.sqrt(2 * found.error):.1g}, and the rank hangs on it"
    else:
        what = (
            f"a value up to {found.row_error:.1g} is 0 as far as they tell, one above {apart:.1g} is "
            f"not, and one that decides a sign is {low if low > found.row_error else high:.1g}"
        )
    raise GonioError(
        f"{good}: {what}. The answer would be invented; give the cosines with more digits, or the head itself."
    )


def _merged(rows: np.ndarray, a: Arrangement) -> float:
    """How far a row that was taken for parallel to another is off its line."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    first = np.array([int(np.flatnonzero(a.plane == p)[0]) for p in range(a.planes)])
    return float(np.linalg.norm(unit - a.sign[:, None] * unit[first[a.plane]], axis=1).max(initial=0))


def _labels_of(pairs: int) -> int:
    n = round((1 + np.sqrt(1 + 8 * pairs)) / 2)
    if n * (n - 1) // 2 != pairs:
        raise GonioError(f"rankings_from_cosines: {pairs} rows are not the n(n-1)/2 differences of n labels.")
    return n


def head_from_cosines_of_differences(C: Any, *, link: str = "softmax") -> Head:
    """A head with these cosines of differences; every other is this one translated, rotated or reflected, and scaled.

    In the triangle of labels i, j, k the cosines give the angles, and the sine rule the sides:
    |w_i - w_k| / |w_i - w_j| = sin(angle at j) / sin(angle at k).  Label 0 is put at 0, and |w_0 - w_1| at 1.

    Claims: GONIO.head-from-differences
    """
    C = checks.matrix(C, "head_from_cosines_of_differences", "C", axes=("pairs", "pairs")).astype(np.float64)
    n = _labels_of(len(C))
    if n == 2:
        return Head(np.array([[0.0], [-1.0]]), link=link)  # type: ignore[arg-type]
    place = np.zeros((n, n), np.int64)
    i, j = np.triu_indices(n, 1)
    place[i, j] = place[j, i] = np.arange(len(C))

    def cosine(a: int, b: int, c: int) -> float:
        """The cosine of the angle at a in the triangle a, b, c: of b - a and c - a."""
        signs = (1 if b > a else -1) * (1 if c > a else -1)
        return signs * float(C[place[a, b], place[a, c]])

    # Sides from label 0, found along triangles that are far from flat: each next label by its best triangle.
    side = np.full(n, np.nan)
    side[1] = 1.0
    known, left = [1], set(range(2, n))
    while left:
        best = max((_flatness(cosine(0, a, k), cosine(a, 0, k), cosine(k, 0, a)), a, k) for a in known for k in left)
        if best[0] < 1e-7:
            raise GonioError(
                "head_from_cosines_of_differences: the labels lie on one line, whose differences all have "
                "cosine +1 or -1; "
                "these fix the order along the line and nothing else."
            )
        _, a, k = best
        side[k] = side[a] * np.sqrt(1 - cosine(a, 0, k) ** 2) / np.sqrt(1 - cosine(k, 0, a) ** 2)
        known.append(k)
        left.remove(k)
    first = place[0, 1:]
    G = C[np.ix_(first, first)] * np.outer(side[1:], side[1:])
    rows = rows_from_gram(G)
    return Head(np.vstack([np.zeros((1, rows.shape[1])), -rows]), link=link)  # type: ignore[arg-type]


def _flatness(*angles: float) -> float:
    return min(1 - c * c for c in angles)


def head_from_cosines(C: Any, *, link: str = "softmax") -> Head:
    """The head of unit rows with these cosines, unique up to rotation: where all rows have one length, C(W) is enough.

    Claims: GONIO.head-from-cosines
    """
    return Head(rows_from_gram(C), link=link)  # type: ignore[arg-type]
