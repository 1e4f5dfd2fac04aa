"""Are two heads one model? Recover the change that takes one to the other, or say how far they are apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.inputs import Inputs
from gonio.core.printed_bounds import at_most
from gonio.gauge.fit import Difference, regress
from gonio.gauge.group import SCORES
from gonio.gauge.mapped import bias_map, by_map, nearly_equal
from gonio.gauge.offset import biases_differ_by, offset_between
from gonio.gauge.predictions import LARGE, predicted
from gonio.gauge.rotation import rotate
from gonio.gauge.rounding import RoundedTable
from gonio.gauge.transforms import BiasShift, Chain, Linear, Rotation, Transform, Translation
from gonio.gauge.verdict import CLEAR, HOPELESS, SURE, Pair, SameModel, in_words, judged, verdict, verdict_of

__all__ = ["SameModel", "same_model"]


def same_model(a: Head, b: Head, embeddings: tuple[Any, Any] | None = None) -> SameModel:
    """Is one head a gauge transform of the other?

    For softmax heads, is  W_b = W_a M' + 1 v'  for an invertible M and a v? First it is asked whether M can be the
    identity, then M is fitted on the common labels, matched by name where both have names, and what it leaves of every
    entry is held to what the rounding of the two tables explains of that entry (`gonio.gauge.leftover`). Biases are
    compared up to an input shift and a constant. For sigmoid and dot heads and word vectors the same without v, for the
    link cosine and factors that were penalised with a rotation for M, for input embeddings and GloVe's vectors with v
    alone.

    `embeddings = (F_a, F_b)`, the two models' embeddings of the same inputs, brings the predictions in: then the
    question is whether they agree.

    A "yes" without embeddings means that the heads can produce the same predictions, not that the models do. Where the
    differences of rows have rank n - 1, any two heads are related and the answer is None, unless they are
    equal to rounding or differ by one vector.

    Claims: GONIO.complete, GONIO.1.7g
    """
    for h in (a, b):
        h.must_be_known("same_model")
    if a.link != b.link:
        return verdict(False, f"the links differ: {a.link} and {b.link}", None, np.inf, 0.0, 0)
    if (a.softcap or 0) != (b.softcap or 0):
        return verdict(False, f"the soft-caps differ: {a.softcap} and {b.softcap}", None, np.inf, 0.0, 0)
    ia, ib, how = _common(a, b)
    unit = a.link == "cosine"
    pair = Pair(RoundedTable(a, ia, unit=unit), RoundedTable(b, ib, unit=unit), how)
    if embeddings is not None:
        return _by_predictions(pair, embeddings)
    if a.link not in SCORES and not unit and (a.link == "input" or a.offset_in or b.offset_in):
        return _by_offset(pair)
    plain = _same_rows(pair)
    if plain is not None:
        return plain
    if unit or (a.link == "dot" and a.trained == b.trained == "factors"):
        return _by_rotation(pair)
    result = by_map(pair)
    norms = [h.inputs if h.inputs.centred else None for h in (a, b)]
    if result.same is False and any(norms):
        return _through_norms(pair, norms, result)
    return result


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
    return verdict(True, reason, transform, offset.residual, offset.rounding, pair.count)


def _by_offset(pair: Pair) -> SameModel:
    """Tables that no map but an offset leaves alone: input embeddings, GloVe's vectors."""
    a, b = pair.a.head, pair.b.head
    if a.shape[1] != b.shape[1]:
        return verdict(False, f"the widths differ: {a.shape[1]} and {b.shape[1]}", None, np.inf, 0.0, pair.count)
    free = a.offset_in is not None and b.offset_in is not None
    found = offset_between(pair.a, pair.b, free=free)
    if found.fits:
        words = (
            "one vector, which " + str(a.offset_in) + " can take up, is added to all rows"
            if found.v.any()
            else "the rows are equal"
        )
        return verdict(
            True, f"{words}, to rounding ({pair.how})", Translation(found.v), found.residual, found.rounding, pair.count
        )
    kind = (
        "no one vector is the difference of all rows"
        if free
        else "the rows are not equal, and no change of them is known to be convention"
    )
    if found.scattered:
        reason = f"{kind}, but they differ by no more than a computation in float64 may leave ({pair.how})"
        return verdict(None, reason, None, found.residual, found.rounding, pair.count, pair.worst(found.errors))
    reason = f"{kind}; of one label {found.errors.max():.2g} times what rounding allows is left ({pair.how})"
    return verdict(False, reason, None, found.residual, found.rounding, pair.count, pair.worst(found.errors))


def _by_rotation(pair: Pair) -> SameModel:
    """Heads fixed up to a rotation (and, for the link cosine, up to lengths)."""
    a, b = pair.a.head, pair.b.head
    if a.shape[1] != b.shape[1]:
        reason = f"the widths differ: {a.shape[1]} and {b.shape[1]}; pad the narrower with zeros to compare"
        return verdict(False, reason, None, np.inf, 0.0, pair.count)
    found = rotate(pair.a, pair.b)
    answer = judged(found.left, pair)
    if answer is not False and nearly_equal(pair):  # what a product with the identity would hide
        stored = Pair(replace(pair.a, unit=False), replace(pair.b, unit=False), pair.how)
        close = regress(stored.a, Difference(stored.a, stored.b), shifts=False, near=True)
        off = close.left.overall <= 1.5 and judged(close.left, pair, sharp=True) is False
        if off and (not pair.a.unit or _not_scaled(stored, int(np.argmax(close.left.errors)))):
            answer, found = False, replace(found, left=close.left)
    if answer is True and biases_differ_by(pair.a, pair.b, free=False) is None:
        bias = bias_map(pair)
        answer = judged(bias.left, pair) if bias is not None else answer
        if answer is not True:
            return verdict(
                answer,
                f"the biases are {in_words(bias.left)} ({pair.how})",
                Rotation(found.M.T),
                bias.left.residual,
                bias.left.rounding,
                pair.count,
                pair.worst(bias.left.errors),
            )
    what = "unit rows" if pair.a.unit else "rows"
    words = {True: "a rotation takes", False: "no rotation takes", None: "it cannot be told whether a rotation takes"}
    reason = f"{words[answer]} the {what} of one to those of the other to rounding"
    reason += f" ({pair.how})" if answer else f": {in_words(found.left)} ({pair.how})"
    return verdict_of(found.left, answer, reason, Rotation(found.M.T), pair)


def _not_scaled(pair: Pair, i: int) -> bool:
    """Whether row i of b is no multiple of row i of a, by more than all roundings of its entries."""
    (x, ex), (y, ey) = (t.block((i, i + 1)) for t in (pair.a, pair.b))
    ratio = float((x * y).sum() / ((x * x).sum() or 1.0))
    return bool((np.abs(y - ratio * x) > 2 * (ex * abs(ratio) + ey)).any())


def _through_norms(pair: Pair, norms: list[Inputs | None], plain: SameModel) -> SameModel:
    """Heads after a LayerNorm, whose rows are free along 1/gain: compare what meets the normalised embeddings."""
    a, b = (replace(t, norm=norm) for t, norm in zip((pair.a, pair.b), norms, strict=True))
    seen = by_map(Pair(a, b, pair.how))
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
        f"over {found.points:,} inputs the {what} differ by {found.off:.2g} of their size, a prediction by "
        f"{at_most(largest, 2)} at most"
    )

    def answer(same: bool | None, more: str = "") -> SameModel:
        rows = None if same else worst
        return verdict(same, reason + more, None, found.off, found.level, pair.count, rows, largest)

    if found.most > CLEAR * 1.5 and (found.off > 1e-9 or pair.digits < 53):
        return answer(False, f"; of one score {found.most:.2g} times what rounding explains")
    if found.level > HOPELESS:
        return answer(None, f"; rounding alone explains {found.level:.2g}, so nothing can be told")
    if largest > LARGE * scale:
        return answer(
            None, "; rounding of what is stored may explain it, but predictions that differ so are not the same"
        )
    if found.most > SURE:
        return answer(None, f"; of one score {found.most:.2g} times what rounding explains")
    return answer(True)


def _common(a: Head, b: Head) -> tuple[np.ndarray, np.ndarray, str]:
    """The rows of a and b that stand for the same labels."""
    if a.named and b.named:
        where = {name: j for name, j in b.names.positions.items() if j >= 0}
        pairs = [(i, where[name]) for name, i in a.names.positions.items() if i >= 0 and name in where]
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
