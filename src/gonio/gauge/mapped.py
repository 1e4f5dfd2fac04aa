"""Heads that are fixed up to an invertible map: the map between two, and whether what it leaves is rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gonio.core.head_summary import largest_of_rounding, numerical_rank
from gonio.core.parallel import in_threads
from gonio.core.triangular_factor import triangular_factor
from gonio.gauge.fit import Difference, Regression, RegressionColumn, regress
from gonio.gauge.offset import biases_differ_by
from gonio.gauge.rounding import RoundedTable, pieces
from gonio.gauge.transforms import BiasShift, Chain, InputShift, Linear, Transform, Translation
from gonio.gauge.verdict import HOPELESS, Pair, SameModel, in_words, judged, verdict_of


def by_map(pair: Pair) -> SameModel:
    """Heads fixed up to an invertible map, and for softmax an offset."""
    n, shifts = pair.count, pair.shifts
    if _any_two_are_related(pair):
        reason = (
            f"the {'differences of rows' if shifts else 'rows'} have rank {n - shifts} for {n} labels: any two such "
            f"heads are related, so only embeddings can tell"
        )
        found = regress(pair.a, pair.b, shifts=shifts)
        return verdict_of(found.left, None, reason, _transform(pair, found, None), pair)
    found = _map_between(pair)
    gap = None if biases_differ_by(pair.a, pair.b, free=shifts) is not None else bias_map(pair)
    parts = [found.left, *([gap.left] if gap else [])]
    answers = [judged(left, pair, sharp=k == 0 and found.near) for k, left in enumerate(parts)]
    transform = _transform(pair, found, gap)
    if False in answers:
        return _not_the_same(pair, found, gap, answers)
    back = None if found.near else _back(pair, found)
    returns = True if back is None else judged(back.left, pair)
    if pair.digits == 53 and back is not None and back.left.residual < 1e-10:
        returns = True  # rounding of the product that made b is not told by b's own entries
    elif back is not None and returns is False and back.left.rounding > 2 * 2.0**-pair.digits:
        returns = None  # errors this much enlarged are no longer small, as the test takes them to be
    if returns is False:
        assert back is not None  # without a way back there is nothing that could fail
        return verdict_of(back.left, False, f"taken back, {in_words(back.left)} ({pair.how})", transform, pair)
    rounding = max(found.left.rounding, found.left.returned)
    if rounding > HOPELESS:
        reason = f"rounding alone explains {rounding:.2g} of the rows, so nothing can be told from them ({pair.how})"
        return replace(verdict_of(found.left, None, reason, transform, pair), rounding=rounding)
    ranks = None if found.full and _clearly_invertible(found) else _ranks(pair)
    if ranks is not None and ranks[0] != ranks[1]:
        return _other_ranks(pair, found, ranks, transform)
    if None in answers or returns is None:
        doubtful = parts[answers.index(None)] if None in answers or back is None else back.left
        reason = f"it cannot be told: {in_words(doubtful)} ({pair.how})"
        return verdict_of(found.left, None, reason, transform, pair)
    rank = ranks[0] if ranks else pair.a.width
    if n < 2 * (rank + 1):
        free = f"{n} labels of rank {rank} leave it too free to tell; only embeddings can"
        reason = f"a map fits to rounding, but {free} ({pair.how})"
        return verdict_of(found.left, None, reason, transform, pair)
    if pair.coarse:
        types = f"the rounding of {pair.a.storage.kind} and {pair.b.storage.kind} hides differences"
        reason = f"a map fits to rounding, but {types} ({pair.how})"
        return verdict_of(found.left, None, reason, transform, pair)
    kinds = "an invertible map" + (" and a translation" if shifts else "")
    reason = (
        f"{kinds} of the rows takes one to the other to rounding, so they can produce the same predictions ({pair.how})"
    )
    return verdict_of(found.left, True, reason, transform, pair)


def _map_between(pair: Pair) -> Regression:
    """The map from a to b; near the identity as what it adds to it, which shows what rounding would hide."""
    if pair.a.width == pair.b.width and nearly_equal(pair):
        found = regress(pair.a, Difference(pair.a, pair.b), shifts=pair.shifts, near=True)
        if pair.digits < 53 or found.left.overall <= 1.5 or found.left.residual > 1e-10:
            return found
    return regress(pair.a, pair.b, shifts=pair.shifts)


def nearly_equal(pair: Pair) -> bool:
    """Whether y - x is small beside y, offsets apart, on some of the rows."""
    n = pair.count
    some = np.unique(np.linspace(0, n - 1, min(n, 2000)).astype(int))
    x, y = (np.concatenate([t.block((i, i + 1))[0] for i in some]) for t in (pair.a, pair.b))
    gap = y - x
    if pair.shifts:
        gap, y = gap - np.median(gap, axis=0), y - y.mean(axis=0)
    return float(np.median(np.linalg.norm(gap, axis=1))) < 0.02 * float(np.median(np.linalg.norm(y, axis=1)))


def _back(pair: Pair, found: Regression) -> Regression | None:
    """The map from b to a, where a's rounding, mapped, would hide what b's own shows."""
    if pair.a.width != pair.b.width or found.left.amplified < 3:
        return None
    values = np.linalg.svd(found.M, compute_uv=False)
    return None if values[-1] < 1e-12 * values[0] else regress(pair.b, pair.a, shifts=pair.shifts)


def _clearly_invertible(found: Regression) -> bool:
    values = np.linalg.svd(found.matrix, compute_uv=False)
    return found.matrix.shape[0] == found.matrix.shape[1] and values[-1] * 1e6 > values[0]


def _not_the_same(pair: Pair, found: Regression, gap: Regression | None, answers: list[bool | None]) -> SameModel:
    transform = _transform(pair, found, gap)
    if answers[0] is False and not (found.full and _clearly_invertible(found)):
        ranks = _ranks(pair)
        if ranks[0] != ranks[1]:
            return _other_ranks(pair, found, ranks, transform)
    left = found.left if answers[0] is False or gap is None else gap.left
    what = "" if answers[0] is False else "of the biases "
    return verdict_of(left, False, f"{what}{in_words(left)} ({pair.how})", transform, pair)


def _other_ranks(pair: Pair, found: Regression, ranks: tuple[int, int, bool], transform: Transform | None) -> SameModel:
    if ranks[2]:
        reason = f"the rows have rank {ranks[0]} and {ranks[1]}, which no invertible map changes ({pair.how})"
        return verdict_of(found.left, False, reason, transform, pair)
    reason = f"the ranks are {ranks[0]} and {ranks[1]}, give or take rounding; it cannot be told ({pair.how})"
    return verdict_of(found.left, None, reason, transform, pair)


def _ranks(pair: Pair) -> tuple[int, int, bool]:
    """The ranks beyond rounding of both tables (of their differences for softmax), and whether both are clear."""
    out = [_rank(t, pair.shifts) for t in (pair.a, pair.b)]
    return out[0][0], out[1][0], out[0][1] and out[1][1]


def _rank(t: RoundedTable, shifts: bool) -> tuple[int, bool]:
    n = len(t.which)
    top = float(t.head.norms[t.which].max()) or 1.0

    def moments(span: tuple[int, int]) -> tuple[np.ndarray, float]:
        x, e = t.block(span)
        # Rows in float64 were computed, perhaps by a product: about d roundings each.
        return x.sum(axis=0), float((e**2 + 2 * t.width * 2.0**-106 * x**2).sum())

    sums, squares = zip(*in_threads(moments, pieces(n)), strict=True)
    mean = np.sum(sums, axis=0) / n * shifts
    values = np.linalg.svd(triangular_factor(lambda s: (t.block(s)[0] - mean) / top, n, t.width), compute_uv=False)
    noise = largest_of_rounding(sum(squares) / (3 * n * t.width) / top**2, (n, t.width))
    rank = numerical_rank(values, (n, t.width), noise)
    doubtful = (values > noise / 8) & (values < 8 * noise)
    return rank, not doubtful.any()


def _any_two_are_related(pair: Pair) -> bool:
    """Whether both tables have as many dimensions as labels (less one for softmax)."""
    full = pair.count - pair.shifts
    if full > min(pair.a.width, pair.b.width):
        return False
    ranks = _ranks(pair)
    return min(ranks[:2]) >= full


def bias_map(pair: Pair) -> Regression:
    """The input shift that takes one bias to the other."""
    (ba, ea), (bb, eb) = pair.a.bias(), pair.b.bias()
    return regress(pair.a, RegressionColumn(bb - ba, np.hypot(ea, eb) + 2.0**-53 * np.abs(bb - ba)), shifts=pair.shifts)


def _transform(pair: Pair, found: Regression, gap: Regression | None) -> Chain | None:
    """The fit as a change of a head: input shift (in a's coordinates), linear map, offset."""
    M = found.matrix
    if M.shape[0] != M.shape[1] or pair.a.norm is not None or pair.b.norm is not None:
        return None  # rows of another width are no transform of these, though they may predict the same
    steps: list[Transform] = []
    if gap is not None:
        steps.append(InputShift(-gap.M[:, 0]))
        steps += [BiasShift(float(gap.v[0]))] if pair.shifts else []
    whole = _completed(M.T)
    steps.append(Linear(whole))
    if pair.shifts:
        steps.append(Translation(found.v))
    return Chain(tuple(steps))


def _completed(M: np.ndarray) -> np.ndarray:
    """M made invertible: least squares maps directions that no row uses to zero, where any map will do."""
    U, s, Vt = np.linalg.svd(M)
    used = s > s[0] * 1e-10 if s[0] > 0 else np.zeros(len(s), bool)
    if used.all():
        return M
    fill = float(np.median(s[used])) if used.any() else 1.0
    return (U * np.where(used, s, fill)) @ Vt
