"""Are two heads one model? Recover the change that takes one to the other, or say how far they are apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.errors import GonioError
from gonio.gauge.fit import Column, Difference, Leftover, Regression, folded, regress
from gonio.gauge.group import SCORES
from gonio.gauge.offset import Offset, biases_differ_by, offset_between
from gonio.gauge.predictions import LARGE, predicted
from gonio.gauge.rotation import rotate
from gonio.gauge.rounding import Table, digits_of, pieces
from gonio.gauge.transforms import BiasShift, Chain, InputShift, Linear, Rotation, Transform, Translation
from gonio.head import Head
from gonio.inputs import AfterLayerNorm
from gonio.parallel import in_threads
from gonio.profile import largest_of_rounding, numerical_rank

if TYPE_CHECKING:
    from jaxtyping import Int

SURE, CLEAR = 6.0, 8.0  # standard deviations of rounding: up to here an entry counts as rounding, from there it does not
HOPELESS = 0.1  # where rounding alone leaves this share of the rows, nothing can be told from them


@dataclass(frozen=True, eq=False)
class SameModel:
    """Whether head b is head a after a change that no prediction sees.

    same        True, False, or None where the heads alone cannot tell
    reason      in words
    transform   the change that takes a to b, where one fits; the best one otherwise
    residual    root mean square of what it leaves over, relative to the size of b's rows
    rounding    the residual that the rounding of the two tables alone would leave
    worst       the labels (rows of a) that fit least, worst first
    labels      how many labels were compared
    """

    same: bool | None
    reason: str
    transform: Transform | None
    residual: float
    rounding: float
    worst: Int[np.ndarray, " worst"]
    labels: int
    max_probability_difference: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values, the transform left out for its size."""
        parts = {k: v for k, v in vars(self).items() if k != "transform"}
        return parts | {"worst": self.worst.tolist(), "transform": self.transform.name if self.transform else None}

    def __repr__(self) -> str:
        said = {True: "the same", False: "not the same", None: "cannot be told"}[self.same]
        figures = f"residual {self.residual:.2g}, rounding {self.rounding:.2g}, {self.labels:,} labels"
        return f"SameModel({said}; {figures})\n  {self.reason}"


def same_model(a: Head, b: Head, embeddings: tuple[Any, Any] | None = None) -> SameModel:
    """Is one head a gauge transform of the other?

    For softmax heads, is  W_b = W_a M' + 1 v'  for an invertible M and a v? First it is asked whether M can be the
    identity, then M is fitted on the common labels, matched by name where both have names, and what it leaves of every
    entry is held to what the rounding of the two tables explains of that entry (`gonio.gauge.fit`). Biases are compared up to an
    input shift and a constant. For sigmoid and dot heads and word vectors the same without v, for the link cosine and
    factors that were penalised with a rotation for M, for input embeddings and GloVe's vectors with v alone.

    `embeddings = (F_a, F_b)`, the two models' embeddings of the same inputs, brings the predictions in: then the
    question is whether they agree.

    A "yes" without embeddings means that the heads can produce the same predictions, not that the models do. Where the
    differences of rows have rank n - 1, any two heads are related (FACTS 1.7g) and the answer is None, unless they are
    equal to rounding or differ by one vector.

    Claims: GONIO.complete, GONIO.1.7g
    """
    for h in (a, b):
        h.must_be_known("same_model")
    if a.link != b.link:
        return _verdict(False, f"the links differ: {a.link} and {b.link}", None, np.inf, 0.0, 0)
    if (a.softcap or 0) != (b.softcap or 0):
        return _verdict(False, f"the soft-caps differ: {a.softcap} and {b.softcap}", None, np.inf, 0.0, 0)
    ia, ib, how = _common(a, b)
    unit = a.link == "cosine"
    pair = Pair(Table(a, ia, unit=unit), Table(b, ib, unit=unit), how)
    if embeddings is not None:
        return _by_predictions(pair, embeddings)
    if a.link not in SCORES and not unit and (a.link == "input" or a.offset_in or b.offset_in):
        return _by_offset(pair)
    plain = _same_rows(pair)
    if plain is not None:
        return plain
    if unit or (a.link == "dot" and a.trained == b.trained == "factors"):
        return _by_rotation(pair)
    result = _by_map(pair)
    norms = [h.inputs if isinstance(h.inputs, AfterLayerNorm) else None for h in (a, b)]
    if result.same is False and any(norms):
        return _through_norms(pair, norms, result)
    return result


@dataclass(frozen=True, eq=False)
class Pair:
    """The rows of two heads that stand for the same labels, and in words how they were matched."""

    a: Table
    b: Table
    how: str

    @property
    def count(self) -> int:
        return len(self.a.which)

    @property
    def shifts(self) -> bool:
        """Whether a vector added to all rows is convention."""
        return self.a.head.link == "softmax" and self.a.head.softcap is None

    @property
    def coarse(self) -> bool:
        return self.a.storage.coarse or self.b.storage.coarse

    @property
    def digits(self) -> int:
        return min(digits_of(t.storage.kind) for t in (self.a, self.b))

    def worst(self, errors: np.ndarray, most: int = 10) -> np.ndarray:
        """The labels that fit least, as rows of a."""
        return self.a.which[np.argsort(-errors)[:most]]


def _same_rows(pair: Pair) -> SameModel | None:
    """Yes where the rows are equal to rounding or, where that is convention, differ by one vector; else None."""
    if pair.a.head.shape[1] != pair.b.head.shape[1]:
        return None
    constant = biases_differ_by(pair.a, pair.b, free=pair.shifts)
    if constant is None:
        return None
    offset = offset_between(pair.a, pair.b, free=pair.shifts)
    if not offset.fits or (offset.rounding > HOPELESS and offset.residual > 0):
        return None
    steps: list[Transform] = [Translation(offset.v)] if pair.shifts else [Linear(np.eye(len(offset.v)))]
    steps += [BiasShift(constant)] if constant else []
    what = "unit rows" if pair.a.unit else "rows"
    words = f"the {what} differ by one vector" if offset.v.any() else f"the {what} are equal"
    reason = f"{words} to rounding, so the same embeddings get the same predictions ({pair.how})"
    transform = steps[0] if len(steps) == 1 else Chain(tuple(steps))
    return _verdict(True, reason, transform, offset.residual, offset.rounding, pair.count)


def _by_offset(pair: Pair) -> SameModel:
    """Tables that no map but an offset leaves alone: input embeddings, GloVe's vectors."""
    a, b = pair.a.head, pair.b.head
    if a.shape[1] != b.shape[1]:
        return _verdict(False, f"the widths differ: {a.shape[1]} and {b.shape[1]}", None, np.inf, 0.0, pair.count)
    free = a.offset_in is not None and b.offset_in is not None
    found = offset_between(pair.a, pair.b, free=free)
    if found.fits:
        words = "one vector, which " + str(a.offset_in) + " can take up, is added to all rows" if found.v.any() else "the rows are equal"
        return _verdict(True, f"{words}, to rounding ({pair.how})", Translation(found.v), found.residual, found.rounding, pair.count)
    kind = "no one vector is the difference of all rows" if free else "the rows are not equal, and no change of them is known to be convention"
    if found.scattered:
        reason = f"{kind}, but they differ by no more than a computation in float64 may leave ({pair.how})"
        return _verdict(None, reason, None, found.residual, found.rounding, pair.count, pair.worst(found.errors))
    reason = f"{kind}; of one label {found.errors.max():.2g} times what rounding allows is left ({pair.how})"
    return _verdict(False, reason, None, found.residual, found.rounding, pair.count, pair.worst(found.errors))


def _by_rotation(pair: Pair) -> SameModel:
    """Heads fixed up to a rotation (and, for the link cosine, up to lengths)."""
    a, b = pair.a.head, pair.b.head
    if a.shape[1] != b.shape[1]:
        reason = f"the widths differ: {a.shape[1]} and {b.shape[1]}; pad the narrower with zeros to compare"
        return _verdict(False, reason, None, np.inf, 0.0, pair.count)
    found = rotate(pair.a, pair.b)
    answer = _judged(found.left, pair)
    if answer is not False and _nearly_equal(pair):  # what a product with the identity would hide
        stored = Pair(replace(pair.a, unit=False), replace(pair.b, unit=False), pair.how)
        close = regress(stored.a, Difference(stored.a, stored.b), shifts=False, near=True)
        off = close.left.overall <= 1.5 and _judged(close.left, pair, sharp=True) is False
        if off and (not pair.a.unit or _not_scaled(stored, int(np.argmax(close.left.errors)))):
            answer, found = False, replace(found, left=close.left)
    if answer is True and biases_differ_by(pair.a, pair.b, free=False) is None:
        bias = _bias_map(pair)
        answer = _judged(bias.left, pair) if bias is not None else answer
        if answer is not True:
            return _verdict(answer, f"the biases are {_left(bias.left)} ({pair.how})", Rotation(found.M.T), bias.left.residual, bias.left.rounding, pair.count, pair.worst(bias.left.errors))
    what = "unit rows" if pair.a.unit else "rows"
    words = {True: "a rotation takes", False: "no rotation takes", None: "it cannot be told whether a rotation takes"}
    reason = f"{words[answer]} the {what} of one to those of the other to rounding"
    reason += f" ({pair.how})" if answer else f": {_left(found.left)} ({pair.how})"
    return _from(found.left, answer, reason, Rotation(found.M.T), pair)


def _not_scaled(pair: Pair, i: int) -> bool:
    """Whether row i of b is no multiple of row i of a, by more than all roundings of its entries."""
    (x, ex), (y, ey) = (t.block((i, i + 1)) for t in (pair.a, pair.b))
    ratio = float((x * y).sum() / ((x * x).sum() or 1.0))
    return bool((np.abs(y - ratio * x) > 2 * (ex * abs(ratio) + ey)).any())


def _by_map(pair: Pair) -> SameModel:
    """Heads fixed up to an invertible map, and for softmax an offset."""
    n, shifts = pair.count, pair.shifts
    if _any_two_are_related(pair):
        reason = (
            f"the {'differences of rows' if shifts else 'rows'} have rank {n - shifts} for {n} labels: any two such "
            f"heads are related, so only embeddings can tell"
        )
        found = regress(pair.a, pair.b, shifts=shifts)
        return _from(found.left, None, reason, _transform(pair, found, None), pair)
    found = _map_between(pair)
    gap = None if biases_differ_by(pair.a, pair.b, free=shifts) is not None else _bias_map(pair)
    parts = [found.left, *([gap.left] if gap else [])]
    answers = [_judged(left, pair, sharp=k == 0 and found.near) for k, left in enumerate(parts)]
    transform = _transform(pair, found, gap)
    if False in answers:
        return _not_the_same(pair, found, gap, answers)
    back = None if found.near else _back(pair, found)
    returns = True if back is None else _judged(back.left, pair)
    if pair.digits == 53 and back is not None and back.left.residual < 1e-10:
        returns = True  # rounding of the product that made b is not told by b's own entries
    elif back is not None and returns is False and back.left.rounding > 2 * 2.0**-pair.digits:
        returns = None  # errors this much enlarged are no longer small, as the test takes them to be
    if returns is False:
        return _from(back.left, False, f"taken back, {_left(back.left)} ({pair.how})", transform, pair)
    rounding = max(found.left.rounding, found.left.returned)
    if rounding > HOPELESS:
        reason = f"rounding alone explains {rounding:.2g} of the rows, so nothing can be told from them ({pair.how})"
        return replace(_from(found.left, None, reason, transform, pair), rounding=rounding)
    ranks = None if found.full and _clearly_invertible(found) else _ranks(pair)
    if ranks is not None and ranks[0] != ranks[1]:
        return _other_ranks(pair, found, ranks, transform)
    if None in answers or returns is None:
        reason = f"it cannot be told: {_left(parts[answers.index(None)] if None in answers else back.left)} ({pair.how})"
        return _from(found.left, None, reason, transform, pair)
    rank = ranks[0] if ranks else pair.a.width
    if n < 2 * (rank + 1):
        reason = f"a map fits to rounding, but {n} labels of rank {rank} leave it too free to tell; only embeddings can ({pair.how})"
        return _from(found.left, None, reason, transform, pair)
    if pair.coarse:
        reason = f"a map fits to rounding, but the rounding of {pair.a.storage.kind} and {pair.b.storage.kind} hides differences ({pair.how})"
        return _from(found.left, None, reason, transform, pair)
    kinds = "an invertible map" + (" and a translation" if shifts else "")
    reason = f"{kinds} of the rows takes one to the other to rounding, so they can produce the same predictions ({pair.how})"
    return _from(found.left, True, reason, transform, pair)


def _map_between(pair: Pair) -> Regression:
    """The map from a to b: as identity plus a small map where that is what it is, which shows what rounding would hide."""
    if pair.a.width == pair.b.width and _nearly_equal(pair):
        found = regress(pair.a, Difference(pair.a, pair.b), shifts=pair.shifts, near=True)
        if pair.digits < 53 or found.left.overall <= 1.5 or found.left.residual > 1e-10:
            return found
    return regress(pair.a, pair.b, shifts=pair.shifts)


def _nearly_equal(pair: Pair) -> bool:
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


def _judged(left: Leftover, pair: Pair, *, sharp: bool = False) -> bool | None:
    """Whether what is left is rounding: yes, no, or None in between."""
    even = left.entry <= CLEAR * max(left.spread, 1.0)
    if pair.digits >= 24 and even and left.overall > 1.5 and left.spread <= 2 * np.sqrt(pair.a.width) + 2:
        return None  # spread over all entries, and no more than sums computed in this type leave
    if left.entry > CLEAR or left.beyond or left.row[1] > 1 or left.overall > 2:
        # Of a product computed in float64 more than its own rounding may be left, by steps that the tables do not tell.
        return None if pair.digits == 53 and not sharp and left.residual < 1e-12 else False
    # A product computed in float64 has more rounding than can be foreseen entry by entry: an outlier is left open.
    stands_out = pair.digits == 53 and not sharp and left.entry > max(4.0, 16 * left.overall)
    if left.entry > SURE or left.row[0] > 1 or left.overall > 1.5 or stands_out:
        return None
    return True


def _left(left: Leftover) -> str:
    """What is left, in words."""
    return (
        f"the best map leaves {left.residual:.2g} of the rows where rounding explains {left.rounding:.2g}; of one entry "
        f"{left.entry:.2g} times what rounding does"
    )


def _not_the_same(pair: Pair, found: Regression, gap: Regression | None, answers: list[bool | None]) -> SameModel:
    transform = _transform(pair, found, gap)
    if answers[0] is False and not (found.full and _clearly_invertible(found)):
        ranks = _ranks(pair)
        if ranks[0] != ranks[1]:
            return _other_ranks(pair, found, ranks, transform)
    left = found.left if answers[0] is False or gap is None else gap.left
    what = "" if answers[0] is False else "of the biases "
    return _from(left, False, f"{what}{_left(left)} ({pair.how})", transform, pair)


def _other_ranks(pair: Pair, found: Regression, ranks: tuple[int, int, bool], transform: Transform | None) -> SameModel:
    if ranks[2]:
        reason = f"the rows have rank {ranks[0]} and {ranks[1]}, which no invertible map changes ({pair.how})"
        return _from(found.left, False, reason, transform, pair)
    reason = f"the ranks are {ranks[0]} and {ranks[1]}, give or take rounding; it cannot be told ({pair.how})"
    return _from(found.left, None, reason, transform, pair)


def _ranks(pair: Pair) -> tuple[int, int, bool]:
    """The ranks beyond rounding of both tables (of their differences for softmax), and whether both are clear."""
    out = [_rank(t, pair.shifts) for t in (pair.a, pair.b)]
    return out[0][0], out[1][0], out[0][1] and out[1][1]


def _rank(t: Table, shifts: bool) -> tuple[int, bool]:
    n = len(t.which)
    top = float(t.head.norms[t.which].max()) or 1.0

    def moments(span: tuple[int, int]) -> tuple[np.ndarray, float]:
        x, e = t.block(span)
        # Rows in float64 were computed, perhaps by a product: about d roundings each.
        return x.sum(axis=0), float((e**2 + 2 * t.width * 2.0**-106 * x**2).sum())

    sums, squares = zip(*in_threads(moments, pieces(n)), strict=True)
    mean = np.sum(sums, axis=0) / n * shifts
    values = np.linalg.svd(folded(lambda s: (t.block(s)[0] - mean) / top, n, t.width), compute_uv=False)
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


def _bias_map(pair: Pair) -> Regression:
    """The input shift that takes one bias to the other."""
    (ba, ea), (bb, eb) = pair.a.bias(), pair.b.bias()
    return regress(pair.a, Column(bb - ba, np.hypot(ea, eb) + 2.0**-53 * np.abs(bb - ba)), shifts=pair.shifts)


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


def _through_norms(pair: Pair, norms: list[AfterLayerNorm | None], plain: SameModel) -> SameModel:
    """Heads after a LayerNorm, whose rows are free along 1/gain: compare what meets the normalised embeddings."""
    a, b = (replace(t, norm=norm) for t, norm in zip((pair.a, pair.b), norms, strict=True))
    seen = _by_map(Pair(a, b, pair.how))
    if seen.same is not False or all(norms):
        return replace(seen, reason=f"seen through their LayerNorms: {seen.reason}", transform=None)
    reason = (
        "rows after a LayerNorm are free along 1/gain, and only one of the two is known to stand after one; "
        f"what feeds the other decides ({pair.how})"
    )
    return replace(plain, same=None, reason=reason)


def _by_predictions(pair: Pair, embeddings: Any) -> SameModel:
    """Compare what the two models predict for the same inputs, over the common labels."""
    if pair.a.head.link != "cosine":
        pair.a.head.must_score("same_model")
    found = predicted(pair.a, pair.b, embeddings)
    scale = 1.0 if pair.a.head.link in ("softmax", "sigmoid") else found.size
    largest, worst = found.difference, pair.worst(found.errors)
    what = "centred logits" if pair.shifts else "logits"
    reason = (
        f"over {found.points:,} inputs the {what} differ by {found.off:.2g} of their size, a prediction by {largest:.2g} "
        f"at most"
    )

    def answer(same: bool | None, more: str = "") -> SameModel:
        rows = None if same else worst
        return _verdict(same, reason + more, None, found.off, found.level, pair.count, rows, largest)

    if found.most > CLEAR * 1.5 and (found.off > 1e-9 or pair.digits < 53):
        return answer(False, f"; of one score {found.most:.2g} times what rounding explains")
    if found.level > HOPELESS:
        return answer(None, f"; rounding alone explains {found.level:.2g}, so nothing can be told")
    if largest > LARGE * scale:
        return answer(None, "; rounding of what is stored may explain it, but predictions that differ so are not the same")
    if found.most > SURE:
        return answer(None, f"; of one score {found.most:.2g} times what rounding explains")
    return answer(True)


def _from(left: Leftover, same: bool | None, reason: str, transform: Transform | None, pair: Pair) -> SameModel:
    worst = None if same else pair.worst(left.errors)
    return _verdict(same, reason, transform, left.residual, left.rounding, pair.count, worst)


def _verdict(
    same: bool | None, reason: str, transform: Transform | None, residual: float, rounding: float, labels: int,
    worst: np.ndarray | None = None, difference: float | None = None,
) -> SameModel:  # fmt: skip
    worst = np.empty(0, np.int64) if worst is None else worst
    worst.flags.writeable = False
    return SameModel(same, reason, transform, float(residual), float(rounding), worst, labels, difference)


def _common(a: Head, b: Head) -> tuple[np.ndarray, np.ndarray, str]:
    """The rows of a and b that stand for the same labels."""
    if a.named and b.named:
        where = {name: j for name, j in b._positions.items() if j >= 0}
        pairs = [(i, where[name]) for name, i in a._positions.items() if i >= 0 and name in where]
        if len(pairs) >= 2:
            pairs.sort()
            ia, ib = (np.array(x, dtype=np.int64) for x in zip(*pairs, strict=True))
            return ia, ib, f"{len(pairs):,} labels in common, matched by name"
    if a.shape[0] != b.shape[0]:
        raise GonioError(
            f"same_model: the heads have {a.shape[0]:,} and {b.shape[0]:,} labels and fewer than two names in common; "
            f"give heads over the same labels."
        )
    every = np.arange(a.shape[0])
    return every, every, f"{a.shape[0]:,} labels, matched by position"
