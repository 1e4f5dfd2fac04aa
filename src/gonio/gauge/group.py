"""The gauge of a head: the changes its link, its inputs and its training leave open."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gonio.core.head import Head, Label
from gonio.gauge.reach import Reach, by_linear_map, by_translation, cosine
from gonio.gauge.transforms import (
    BiasShift,
    Chain,
    Diagonal,
    InputShift,
    LayerNormShift,
    Linear,
    Rotation,
    RowScaling,
    Scaling,
    Transform,
    Translation,
)

WHY: dict[type[Transform], str] = {
    Translation: "adding one vector to all rows moves every logit alike",
    Linear: "an invertible map of the rows is undone by the inverse map of the embeddings",
    Rotation: "a rotation of rows and embeddings together changes no score",
    InputShift: "moving the embeddings by u is undone by the bias b - W u",
    BiasShift: "one number added to every bias moves every logit alike",
    RowScaling: "the length of a row does not enter a cosine, nor the sign of a score",
    LayerNormShift: "after a LayerNorm the embeddings sum to a constant over 1/gain, so rows are free along 1/gain",
}


SCORES = ("softmax", "sigmoid", "dot")  # links of heads, whose rows score inputs
STAYS = {
    "softmax": "probabilities",
    "sigmoid": "probabilities",
    "dot": "scores",
    "cosine": "cosines",
    "vectors": "trained dot products",
    "input": "model's outputs",
}
FIXED = {
    "cosine": "rotations and lengths leave every cosine as it is",
    "dot": "rotations leave every cosine as it is",
    "input": "no change is known that moves it and leaves the model's outputs alone",
}


@dataclass(frozen=True)
class Gauge:
    """A group of changes, by its generating kinds; `why` says why each leaves the predictions alone.

    `predictions` says what is left alone: "probabilities", "scores", "rankings", "cosines", for word vectors the
    "trained dot products" with the table they were trained against, for input embeddings the "model's outputs".
    """

    kinds: tuple[type[Transform], ...]
    predictions: str
    why: tuple[str, ...]

    def __contains__(self, transform: Transform | type[Transform]) -> bool:
        if isinstance(transform, Chain):
            return all(step in self for step in transform.steps)
        kind = transform if isinstance(transform, type) else type(transform)
        implied = {Rotation: (Rotation, Linear), Scaling: (Scaling, Linear), Diagonal: (Diagonal, Linear)}
        return any(k in self.kinds for k in implied.get(kind, (kind,)))

    def random(self, head: Head, rng: np.random.Generator, size: float = 1.0) -> Chain:
        """A random member, for null distributions and tests: every kind once, of about the head's own size."""
        n, d = head.shape
        typical = size * float(np.median(head.norms)) / np.sqrt(d)
        made: list[Transform] = []
        for kind in self.kinds:
            if kind is Translation:
                made.append(Translation(typical * rng.standard_normal(d)))
            elif kind is Linear:
                made.append(Linear(np.eye(d) + size * rng.standard_normal((d, d)) / np.sqrt(d)))
            elif kind is Rotation:
                made.append(Rotation(np.linalg.qr(rng.standard_normal((d, d)))[0]))
            elif kind is InputShift:
                made.append(InputShift(size * rng.standard_normal(d)))
            elif kind is BiasShift:
                made.append(BiasShift(size * rng.standard_normal()))
            elif kind is RowScaling:
                made.append(RowScaling(np.exp(size * rng.standard_normal(n))))
            elif kind is LayerNormShift:
                made.insert(0, LayerNormShift(typical * rng.standard_normal(n)))  # before the inputs lose their norm
        return Chain(tuple(made))

    def __str__(self) -> str:
        if not self.kinds:
            return "no change of these rows alone is known that leaves the model as it is"
        return f"{', '.join(k.name for k in self.kinds)} (the {self.predictions} stay)"


def gauge_of(head: Head, *, ranking_only: bool = False) -> Gauge:
    """What may change while the model does not.

    softmax   Translation, Linear; with a bias InputShift and BiasShift; not Translation under a soft-cap
    sigmoid   Linear; with a bias InputShift
    dot       Linear (trained "product" or unknown) or Rotation (trained "factors"); used only to rank, Translation too
    cosine    Rotation, RowScaling
    vectors   Linear, jointly with the table that the file lacks; GloVe's, whose biases take it up, Translation
    input     Translation where the model adds another table to every row (`offset_in`); else nothing is known
    After a LayerNorm (no gain zero) also LayerNormShift.

    `ranking_only`: only the order of the scores matters (a `dot` head that ranks, a soft-capped head's argmax).
    """
    head.must_be_known("gauge_of")
    kinds: list[type[Transform]] = []
    biased = head.bias is not None
    if head.link == "softmax":
        if head.softcap is None:
            kinds += [Translation, Linear, *([InputShift, BiasShift] if biased else [])]
        else:  # c tanh(z/c) is not shifted by a shift of z: probabilities move, the order does not
            kinds += [Linear, *([InputShift] if biased else []), *([Translation] if ranking_only else [])]
    elif head.link == "sigmoid":
        kinds += [Linear, *([InputShift] if biased else [])]
    elif head.link == "dot":
        kinds += [Rotation if head.trained == "factors" else Linear, *([InputShift] if biased else [])]
        kinds += [Translation] if ranking_only else []
    elif head.link == "cosine":
        kinds += [Rotation, RowScaling]
    elif head.offset_in is not None:
        kinds += [Translation]
    elif head.link == "vectors":
        kinds += [Linear]
    if head.inputs.centred and head.inputs.gain_and_shift(head.shape[1])[0].all() and head.link in SCORES:
        kinds.append(LayerNormShift)
    why = tuple(WHY[k] for k in kinds)
    if head.link in ("vectors", "input"):
        taken = f"a vector added to all rows is taken up by {head.offset_in}"
        joint = "an invertible map of the rows is undone in the table they were trained against, which the file lacks"
        why = tuple({Translation: taken, Linear: joint}[k] for k in kinds)
    return Gauge(tuple(kinds), "rankings" if ranking_only else STAYS[head.link], why)


def offset_is_convention(head: Head) -> str:
    """In words why a vector added to all rows is convention for this head; empty where it is not known to be."""
    if head.link == "unknown" or Translation not in gauge_of(head).kinds:
        return ""
    if head.offset_in is not None:
        return f"a vector added to all rows is taken up by {head.offset_in} and changes nothing that was trained"
    once = ", once the head is untied from the input embeddings," if head.source and head.source.tied else ""
    return f"a vector added to all rows{once} changes no prediction"


def reachable(head: Head, a: Label, b: Label) -> dict[str, Reach]:
    """The cosines that each group of the head's gauge can give a pair, and "all" for the whole gauge.

    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4]], link="softmax")
    >>> str(reachable(head, 0, 1)["translation"])
    '[-1, 1]'
    """
    i, j = head.index(a), head.index(b)
    x, y = head[i].astype(np.float64), head[j].astype(np.float64)
    gauge = gauge_of(head)
    out: dict[str, Reach] = {}
    if Translation in gauge.kinds:
        out["translation"] = by_translation(x, y)
    if Linear in gauge.kinds:
        out["linear"] = by_linear_map(x, y)
    if LayerNormShift in gauge.kinds:
        out["layer-norm shift"] = _by_layer_norm(head, x, y)
    if not out:
        now = cosine(x, y)
        known = not np.isnan(now)
        return {"all": Reach(now, now, known, known, FIXED[head.link])}
    if LayerNormShift not in gauge.kinds:
        return out | {"all": next(iter(out.values()))}  # a translation reaches all that a linear map does, and more
    return out | {"all": _together(out, len(x))}


def _together(parts: dict[str, Reach], width: int) -> Reach:
    """What the whole gauge of a head after a LayerNorm can do to a pair.

    Each row may first move along 1/gain by itself, so that equal, zero and parallel rows become different ones, which
    a translation gives every cosine, and a linear map every one but -1 and 1.
    """
    shift = parts["layer-norm shift"]
    if "translation" in parts:
        why = "rows may move along 1/gain one by one, and then all by one vector, which gives this pair every cosine"
        return Reach(-1.0, 1.0, True, True, why, only_ends=width == 1)
    if "linear" not in parts:  # rotations only
        return shift
    low = shift.low_reached or (parts["linear"].low == -1 and parts["linear"].low_reached)
    high = shift.high_reached or (parts["linear"].high == 1 and parts["linear"].high_reached)
    why = "rows may move along 1/gain one by one, and then all by an invertible map"
    return Reach(-1.0, 1.0, low, high, why, only_ends=shift.only_ends)


def _by_layer_norm(head: Head, x: np.ndarray, y: np.ndarray) -> Reach:
    """Both rows may move along k = 1/gain, each by its own multiple: their cosine approaches 1 and -1 far out.

    Times gain, k is (1, ..., 1): the parts of x * gain and y * gain beside it decide, exactly. Both zero: the rows are
    multiples of k, and only -1 and 1 exist. Parallel, or opposite: 1, or -1, is reached where only they are left.
    Both multiples are free and continuous, so every value between the ends is met.
    """
    inputs: Any = head.inputs
    px, py = (_beside_ones(row, inputs.gain) for row in (x, y))
    side = _parallel(px, py)
    flat = not any(px) and not any(py)
    why = "each row may move along 1/gain by a multiple of its own"
    return Reach(-1.0, 1.0, flat or side < 0, flat or side > 0, why, only_ends=flat)


def _beside_ones(row: np.ndarray, gain: np.ndarray) -> list[Fraction]:
    """The differences of row * gain to its first entry: zero exactly for multiples of 1/gain."""
    seen = [Fraction(float(r)) * Fraction(float(g)) for r, g in zip(row, gain, strict=True)]
    return [v - seen[0] for v in seen[1:]]


def _parallel(a: list[Fraction], b: list[Fraction]) -> int:
    """1 where two vectors are positive multiples of each other, -1 where negative ones, 0 otherwise; exactly."""
    k = next((k for k, v in enumerate(a) if v), None)
    if k is None or not any(b) or not b[k]:
        return 0
    ratio = b[k] / a[k]
    return 0 if any(y != ratio * x for x, y in zip(a, b, strict=True)) else 1 if ratio > 0 else -1
