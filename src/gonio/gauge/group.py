"""The gauge of a head: the changes its link, its inputs and its training leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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
from gonio.head import Head, Label
from gonio.inputs import AfterLayerNorm

WHY: dict[type[Transform], str] = {
    Translation: "adding one vector to all rows moves every logit alike",
    Linear: "an invertible map of the rows is undone by the inverse map of the embeddings",
    Rotation: "a rotation of rows and embeddings together changes no score",
    InputShift: "moving the embeddings by u is undone by the bias b - W u",
    BiasShift: "one number added to every bias moves every logit alike",
    RowScaling: "the length of a row does not enter a cosine, nor the sign of a score",
    LayerNormShift: "after a LayerNorm the embeddings sum to a constant over 1/gain, so rows are free along 1/gain",
}


@dataclass(frozen=True)
class Gauge:
    """A group of changes, by its generating kinds; `why` says why each leaves the predictions alone.

    `predictions` says what is left alone: "probabilities", "scores", "rankings" or "cosines".
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
        return f"{', '.join(k.name for k in self.kinds)} (the {self.predictions} stay)"


def gauge_of(head: Head, *, ranking_only: bool = False) -> Gauge:
    """What may change while the model does not.

    softmax   Translation, Linear; with a bias InputShift and BiasShift; not Translation under a soft-cap
    sigmoid   Linear; with a bias InputShift
    dot       Linear (trained "product" or unknown) or Rotation (trained "factors"); used only to rank, Translation too
    cosine    Rotation, RowScaling
    After a LayerNorm (no gain zero) also LayerNormShift.

    `ranking_only`: only the order of the scores matters (a `dot` head that ranks, a soft-capped head's argmax).
    """
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
    else:
        kinds += [Rotation, RowScaling]
    if isinstance(head.inputs, AfterLayerNorm) and head.inputs.gain.all() and head.link != "cosine":
        kinds.append(LayerNormShift)
    stays = {"softmax": "probabilities", "sigmoid": "probabilities", "dot": "scores", "cosine": "cosines"}[head.link]
    if ranking_only:
        stays = "rankings"
    return Gauge(tuple(kinds), stays, tuple(WHY[k] for k in kinds))


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
    now = cosine(x, y)
    fixed = Reach(now, now, not np.isnan(now), not np.isnan(now), "rotations and lengths leave every cosine as it is")
    if LayerNormShift in gauge.kinds:
        out["layer-norm shift"] = _by_layer_norm(head, x, y)
    if not out:
        return {"all": fixed}
    widest = max(out.values(), key=lambda r: (r.high - r.low, r.low_reached, r.high_reached, not r.only_ends))
    return out | {"all": widest}


def _by_layer_norm(head: Head, x: np.ndarray, y: np.ndarray) -> Reach:
    """Both rows may move along k = 1/gain, each by its own multiple: their cosine approaches 1 and -1 far out.

    With x, y moved to their parts orthogonal to k, the least |cos| met on the way to either end is 0 or that of the
    orthogonal parts; since both multiples are free and continuous, every value between the ends is met.
    """
    inputs: Any = head.inputs
    k = 1 / inputs.gain
    k = k / np.linalg.norm(k)
    px, py = x - (x @ k) * k, y - (y @ k) * k
    flat = [np.linalg.norm(p) <= 1e-14 * (np.linalg.norm(r) + 1e-300) for p, r in ((px, x), (py, y))]
    low = high = all(flat)
    return Reach(-1.0, 1.0, low, high, "each row may move along 1/gain by a multiple of its own", only_ends=all(flat))
