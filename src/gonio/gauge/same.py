"""Are two heads one model? Recover the change that takes one to the other, or say how far they are apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio import check
from gonio.errors import GonioError
from gonio.gauge.fit import Fit, Rows, fit, rounding_of
from gonio.gauge.transforms import Rotation, Transform
from gonio.head import Head
from gonio.inputs import AfterLayerNorm
from gonio.parallel import in_threads, spans

if TYPE_CHECKING:
    from jaxtyping import Int

SAFETY = 6.0  # an error of a row may be this many times what rounding explains and still count as rounding
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

    For softmax heads, is  W_b = W_a M' + 1 v'  for an invertible M and a v? With J the centring of rows, the least
    squares problem  J W_b ~ J W_a M'  is solved on the common labels, matched by name where both have names. Biases are
    compared up to an input shift and a constant. For sigmoid and dot heads the same without v and J.

    `embeddings = (F_a, F_b)`, the two models' embeddings of the same inputs, brings the predictions in: then the
    question is whether they agree.

    A "yes" without embeddings means that the heads can produce the same predictions, not that the models do. Where the
    differences of rows have rank n - 1, any two heads are related (FACTS 1.7g) and the answer is None.

    Claims: GONIO.complete, GONIO.1.7g
    """
    if a.link != b.link:
        return _verdict(False, f"the links differ: {a.link} and {b.link}", None, np.inf, 0.0, 0)
    if (a.softcap is None) != (b.softcap is None) or (a.softcap or 0) != (b.softcap or 0):
        return _verdict(False, f"the soft-caps differ: {a.softcap} and {b.softcap}", None, np.inf, 0.0, 0)
    ia, ib, how = _common(a, b)
    if a.link == "cosine" or (a.link == "dot" and a.trained == b.trained == "factors"):
        return _by_rotation(a, b, ia, ib, how)
    shifts = a.link == "softmax" and a.softcap is None
    found = fit(a, b, ia, ib, shifts)
    n = len(ia)
    if embeddings is not None:
        return _with_predictions(a, b, ia, ib, embeddings, found, n)
    full = n - 1 if shifts else n
    if found.rank_a >= full and found.rank_b >= full:
        reason = (
            f"the {'differences of rows' if shifts else 'rows'} have rank {found.rank_a} for {n} labels: any two such "
            f"heads are related, so only embeddings can tell"
        )
        return _verdict(None, reason, found.transform, found.residual, found.rounding, n, ia[found.worst()])
    if found.rounding > HOPELESS:
        reason = f"rounding alone explains {found.rounding:.2g} of the rows, so nothing can be told from them ({how})"
        return _verdict(None, reason, found.transform, found.residual, found.rounding, n, ia[found.worst()])
    if found.worst_row > SAFETY and _both_after_layer_norm(a, b):
        # Rows are free along 1/gain there (LayerNormShift): compare what meets the normalised embeddings.
        inner = same_model(_seen(a), _seen(b))
        if inner.same:
            return replace(inner, reason=f"seen through their LayerNorms: {inner.reason}")
    if found.worst_row <= SAFETY and found.rank_a == found.rank_b:
        kinds = "an invertible map" + (" and a translation" if shifts else "")
        reason = (
            f"{kinds} of the rows takes one to the other to rounding, so they can produce the same predictions ({how})"
        )
        return _verdict(True, reason, found.transform, found.residual, found.rounding, n)
    if found.rank_a != found.rank_b:
        if not found.clear:
            reason = (
                f"the ranks are {found.rank_a} and {found.rank_b}, give or take rounding; it cannot be told ({how})"
            )
            return _verdict(None, reason, found.transform, found.residual, found.rounding, n, ia[found.worst()])
        reason = f"the rows have rank {found.rank_a} and {found.rank_b}, which no invertible map changes ({how})"
        return _verdict(False, reason, found.transform, found.residual, found.rounding, n, ia[found.worst()])
    reason = (
        f"the best map leaves {found.residual:.2g} of the rows where rounding explains {found.rounding:.2g}; of one "
        f"label {found.worst_row:.2g} times what rounding does ({how})"
    )
    return _verdict(False, reason, found.transform, found.residual, found.rounding, n, ia[found.worst()])


def _both_after_layer_norm(a: Head, b: Head) -> bool:
    return isinstance(a.inputs, AfterLayerNorm) and isinstance(b.inputs, AfterLayerNorm)


def _seen(head: Head) -> Head:
    """The part of a head that meets the normalised embeddings, as a head over all inputs."""
    problem = head.inputs.reduce(head.W.astype(np.float64), head.bias)
    return head.replace(W=problem.V, bias=problem.c, inputs=None)


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


def _with_predictions(a, b, ia, ib, embeddings, found: Fit, n: int) -> SameModel:
    """Compare what the two models predict for the same inputs, over the common labels."""
    try:
        fa, fb = embeddings
    except (TypeError, ValueError):
        raise GonioError(
            "same_model: embeddings must be a pair (F_a, F_b), the two models' embeddings of the same inputs."
        ) from None
    Fa, Fb = check.embeddings(fa, a.shape[1], "same_model"), check.embeddings(fb, b.shape[1], "same_model")
    if len(Fa) != len(Fb):
        raise GonioError(f"same_model: {len(Fa)} and {len(Fb)} embeddings were given; both need one row an input.")
    za, zb = a.logits(Fa.astype(np.float64))[:, ia], b.logits(Fb.astype(np.float64))[:, ib]
    if a.link == "softmax":
        za, zb = (z - z.mean(axis=1, keepdims=True) for z in (za, zb))
        pa, pb = (np.exp(z - z.max(axis=1, keepdims=True)) for z in (za, zb))
        pa, pb = (p / p.sum(axis=1, keepdims=True) for p in (pa, pb))
    elif a.link == "sigmoid":
        pa, pb = 1 / (1 + np.exp(-np.clip(za, -700, 700))), 1 / (1 + np.exp(-np.clip(zb, -700, 700)))
    else:
        pa, pb = za, zb
    largest = float(np.abs(pa - pb).max())
    size = _rms(za) or 1.0
    off = _rms(za - zb) / size
    # An entry rounded by u of its size moves a logit by about u |w| |f|.
    sizes = (rounding_of(h) * _rms(h.norms) * _rms(np.linalg.norm(F, axis=1)) for h, F in ((a, Fa), (b, Fb)))
    level = SAFETY * sum(sizes) / size
    what = "centred logits" if a.link == "softmax" else "logits"
    reason = (
        f"over {len(Fa):,} inputs the {what} differ by {off:.2g} of their size, a prediction by {largest:.2g} at most"
    )
    if level > HOPELESS:
        reason += f"; rounding alone explains {level:.2g}, so nothing can be told"
        return _verdict(None, reason, found.transform, off, level, n, None, largest)
    errors = np.sqrt(((za - zb) ** 2).mean(axis=0))
    worst = None if off <= level else ia[np.argsort(-errors)[:10]]
    return _verdict(off <= level, reason, found.transform, off, level, n, worst, largest)


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt((x.astype(np.float64) ** 2).mean()))


def _by_rotation(a: Head, b: Head, ia: np.ndarray, ib: np.ndarray, how: str) -> SameModel:
    """Heads fixed up to a rotation (and, for the link cosine, up to lengths): orthogonal Procrustes."""
    if a.shape[1] != b.shape[1]:
        reason = f"the widths differ: {a.shape[1]} and {b.shape[1]}; pad the narrower with zeros to compare"
        return _verdict(False, reason, None, np.inf, 0.0, len(ia))
    zero = np.zeros(a.shape[1])
    size = 1.0 if a.link == "cosine" else _rms(b.norms[ib]) or 1.0

    def rows(h: Head, which: np.ndarray, span: tuple[int, int]) -> np.ndarray:
        block = Rows(h, which, zero, 1.0).block(span)
        if a.link != "cosine":
            return block / size
        return block / np.maximum(h.norms[which[span[0] : span[1]]], 1e-300)[:, None]

    parts = in_threads(lambda s: rows(a, ia, s).T @ rows(b, ib, s), spans(len(ia), 4096))
    U, _, Vt = np.linalg.svd(np.sum(parts, axis=0))
    Q = U @ Vt
    errors = np.concatenate(
        in_threads(lambda s: np.linalg.norm(rows(b, ib, s) - rows(a, ia, s) @ Q, axis=1), spans(len(ia), 4096))
    )
    residual, rounding = _rms(errors), rounding_of(a) + rounding_of(b)
    same = residual <= SAFETY * rounding
    what = "unit rows" if a.link == "cosine" else "rows"
    reason = f"{'a' if same else 'no'} rotation takes the {what} of one to those of the other ({how})"
    return _verdict(
        same, reason, Rotation(Q.T), residual, rounding, len(ia), None if same else ia[np.argsort(-errors)[:10]]
    )
