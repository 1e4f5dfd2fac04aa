"""The cosine dial: an equivalent head in which two labels have the cosine you ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.parallel import spans
from gonio.core.printed_bounds import at_most
from gonio.core.readable_label import quoted
from gonio.core.renderers import rendered
from gonio.gauge.bounding_inputs import Meant, inputs_meant
from gonio.gauge.group import SCORES, gauge_of, reachable
from gonio.gauge.reach import cosine as cosine_of
from gonio.gauge.reach import dependent, plain_translation, smallest_translation
from gonio.gauge.transforms import LayerNormShift, Linear, Transform, Translation

if TYPE_CHECKING:
    from jaxtyping import Float

U = 2.0**-53
CELLS = 1 << 24  # probabilities that are held at once


@dataclass(frozen=True, eq=False)
class Dialled:
    """An equivalent head with the wanted cosine, and what the dialling does to its predictions.

    head             the equivalent head
    transform        what was done to the rows, and to the embeddings with them
    translation      the vector added to all rows; None where another map was used
    cosine           the cosine of the pair in the new head, as computed
    bound            proven: no probability of any label differs by more, over the inputs meant (softmax translations)
    over             those inputs, in words
    max_probability_difference   the largest difference measured, on given or drawn embeddings of those inputs
    """

    before: Head
    head: Head
    labels: tuple[int, int]
    transform: Transform
    cosine: float
    meant: Meant

    @cached_property
    def bound(self) -> float | None:
        """Proven: no probability of any label differs by more, over the inputs meant; None for other maps than a
        translation, whose rounding is measured only, and for tables that are no head.

        It is about the two heads in real numbers; what is measured includes the rounding of the measurement.
        """
        softmax = self.before.link == "softmax"
        return _bound(self.head, self.meant) if softmax and isinstance(self.transform, Translation) else None

    @property
    def over(self) -> str:
        return self.meant.words

    @property
    def points(self) -> Float[np.ndarray, "points dim"]:
        """The embeddings the difference is measured on."""
        return self.meant.points

    @property
    def translation(self) -> Float[np.ndarray, " dim"] | None:
        return self.transform.v if isinstance(self.transform, Translation) else None

    @cached_property
    def max_probability_difference(self) -> float:
        """max |p' - p| over the measured embeddings, in float64; of scores for the link dot; NaN without a head."""
        if self.before.link not in SCORES:
            return float("nan")
        return largest_difference(self.before, self.points, self.head, self.transform.embeddings(self.points))

    @property
    def promise(self) -> str:
        """What is proven about the predictions, in words."""
        if self.before.link == "input":
            return f"with {self.before.offset_in} moved the opposite way the model's outputs differ by rounding only"
        if self.before.link == "vectors":
            other = self.before.offset_in or "the table that the file lacks"
            return f"with a matching change of {other} the trained dot products differ by rounding only"
        if self.bound is None:
            return f"no prediction changes but by rounding, which is measured only, over {self.over}"
        return f"no probability differs by more than {at_most(self.bound, 2)} over {self.over}"

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values."""
        v = self.translation
        return {
            "labels": [self.before.labels[i] for i in self.labels],
            "cosine_before": cosine_of(self.before[self.labels[0]], self.before[self.labels[1]]),
            "cosine": self.cosine,
            "translation": None if v is None else v.tolist(),
            "bound": self.bound,
            "over": self.over,
            "max_probability_difference": None if np.isnan(off := self.max_probability_difference) else off,
        }

    def _repr_html_(self) -> str:
        return rendered(self, "card")

    def __repr__(self) -> str:
        a, b = (self.before.labels[i] for i in self.labels)
        before = cosine_of(self.before[self.labels[0]], self.before[self.labels[1]])
        return (
            f"Dialled(cos({quoted(a)}, {quoted(b)}) from {before:.6f} to {self.cosine:.6f} by a "
            f"{self.transform.name})\n"
            f"  {self.promise}"
        )


def largest_difference(a: Head, F: np.ndarray, b: Head, G: np.ndarray) -> float:
    """The largest difference of a probability (of a score, where there are none) at the same inputs, in blocks."""
    some = max(1, CELLS // a.shape[0])
    of = "probabilities" if a.link in ("softmax", "sigmoid") else "logits"
    parts = ((getattr(a, of)(F[s:e]), getattr(b, of)(G[s:e])) for s, e in spans(len(F), some))
    return max(float(np.abs(p - q).max()) for p, q in parts)


def dial(
    head: Head,
    a: Label,
    b: Label,
    *,
    cosine: float,
    way: Literal["smallest", "plain"] = "smallest",
    embeddings: Any = None,
    radius: float | None = None,
) -> Dialled:
    """An equivalent head in which labels a and b have the given cosine.

    softmax: one vector is added to all rows (Theorem 3.4): any cosine in [-1, 1]. Under a soft-cap, and for the links
    sigmoid and dot, an invertible map of rows and embeddings: any cosine in (-1, 1). After a LayerNorm, rows that these
    cannot turn are first moved along 1/gain. Input embeddings to which another table is added, and GloVe's vectors:
    one vector for all rows; word2vec's: an invertible map.

    Parameters
    ----------
    cosine : the cosine wanted, from -1 to 1
    way : "smallest" takes the shortest translation, "plain" the papers' (Lemmas 3.2 and 3.3)
    embeddings : the inputs over which the difference is bounded and measured
    radius : bound it over all |x| <= radius instead
        By default the head's own bounded inputs; where they are unbounded, all |x| <= sqrt(d).

    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4]], link="softmax")
    >>> dial(head, 0, 1, cosine=-1).translation
    array([-0.75, -0.75])

    Claims: NG26.T3.4
    """
    if way not in ("smallest", "plain"):
        raise GonioError(f"dial: way is {way!r}; choose 'smallest' or 'plain'.")
    i, j = head.index(a), head.index(b)
    if i == j:
        raise GonioError(
            f"dial: {quoted(head.labels[i])} is one label, whose cosine with itself is 1; give two labels."
        )
    if not isinstance(cosine, (int, float, np.floating)) or not -1 <= cosine <= 1:
        raise GonioError(f"dial: the cosine is {cosine!r}; a number from -1 to 1 is needed.")
    reach = reachable(head, i, j)["all"]
    x, y = head[i].astype(np.float64), head[j].astype(np.float64)
    if cosine not in reach and cosine_of(x, y) != cosine:
        raise GonioError(
            f"dial: {quoted(head.labels[i])} and {quoted(head.labels[j])} cannot have cosine {cosine:g} in any "
            f"equivalent head that is known: {reach.why}; what can be reached is {reach}."
        )
    transform = _transform(head, i, j, float(cosine), way)
    moved = transform.apply(head)
    meant = inputs_meant(head, embeddings, radius)
    got = cosine_of(moved[i], moved[j])
    if abs(np.arccos(np.clip(got, -1, 1)) - np.arccos(cosine)) > 1e-3:
        raise GonioError(
            f"dial: {quoted(head.labels[i])} and {quoted(head.labels[j])} differ by little more than rounding, and "
            f"moving them gave the cosine {got:.3g} instead of {cosine:g}; their difference is too small to be turned."
        )
    return Dialled(head, moved, (i, j), transform, got, meant)


def _transform(head: Head, i: int, j: int, cosine: float, way: str) -> Transform:
    """The change of the head that gives two labels the cosine, where it can be reached."""
    x, y = head[i].astype(np.float64), head[j].astype(np.float64)
    kinds = gauge_of(head).kinds
    if cosine_of(x, y) == cosine:
        return Translation(np.zeros(len(x))) if Translation in kinds else Linear(np.eye(len(x)))
    apart = None  # a step that makes rows different or independent which the other steps cannot tell apart
    if LayerNormShift in kinds:
        apart = _apart_after_layer_norm(head, i, j, cosine, Translation in kinds)
        if apart is not None:
            moved = apart.apply(head)
            x, y = moved[i].astype(np.float64), moved[j].astype(np.float64)
            if abs(cosine) == 1 and Translation not in kinds:
                return apart
    if Translation in kinds:
        v = smallest_translation(x, y, cosine).v if way == "smallest" else plain_translation(x, y, cosine)
        last: Transform = Translation(v)
    else:
        last = Linear(linear_map(x, y, cosine))
    return last if apart is None else apart.then(last)


def _apart_after_layer_norm(head: Head, i: int, j: int, cosine: float, translates: bool) -> LayerNormShift | None:
    """Moves along 1/gain for rows that a translation (equal ones) or a linear map (dependent ones) cannot turn."""
    inputs: Any = head.inputs
    x, y = head[i].astype(np.float64), head[j].astype(np.float64)
    k = 1 / inputs.gain
    a = np.zeros(head.shape[0])
    size = max(float(np.linalg.norm(x)), float(np.linalg.norm(y)), 1.0) / float(np.linalg.norm(k))
    if translates:
        if not np.array_equal(x, y):
            return None
        a[i] = size
        return LayerNormShift(a)
    if abs(cosine) == 1:  # what is left beside 1/gain is parallel, or nothing is and both become multiples of it
        a[i], a[j] = -(x @ k) / (k @ k), -(y @ k) / (k @ k)
        if reach_of_flat(head, i, j):
            a[i], a[j] = a[i] + size, a[j] + cosine * size
        return LayerNormShift(a)
    if not dependent(x, y):
        return None
    a[i if np.linalg.norm(x) <= np.linalg.norm(y) else j] = size
    return LayerNormShift(a)


def reach_of_flat(head: Head, i: int, j: int) -> bool:
    """Whether both rows are multiples of 1/gain, so that only the cosines -1 and 1 exist."""
    return reachable(head, i, j)["layer-norm shift"].only_ends


def linear_map(a: np.ndarray, b: np.ndarray, target: float) -> np.ndarray:
    """An invertible M with cos(M a, M b) = target for independent a, b: M = I - QQ' + Q S Q', [a b] = Q R,
    S = [[1, c], [0, sqrt(1 - c^2)]] R^-1.

    The images of a and b are given their old lengths, so that M stays as near the identity as it can.

    Claims: GONIO.1.6
    """
    if cosine_of(a, b) == target:
        return np.eye(len(a))
    Q, R = np.linalg.qr(np.column_stack([a, b]))
    lengths = np.diag([np.linalg.norm(a), np.linalg.norm(b)])
    wanted = np.array([[1, target], [0, np.sqrt((1 - target) * (1 + target))]]) @ lengths
    S = wanted @ np.linalg.inv(R)
    return np.eye(len(a)) - Q @ Q.T + Q @ S @ Q.T


def _bound(moved: Head, meant: Meant) -> float:
    """The proven bound tanh(eps / 2) on every difference of probabilities.

    eps bounds what rounding did to the logits beyond their common shift: each entry of the new rows is one rounded sum
    w + v, off by at most u |w + v|.

    Claims: GONIO.bound
    """
    eps = max(float(meant.sup(U * np.abs(block)).max()) for _, block in moved.blocks())
    return float(np.tanh(eps * (1 + 1e-9) / 2))
