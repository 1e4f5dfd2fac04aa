"""The cosine dial: an equivalent head in which two labels have the cosine you ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gonio.errors import GonioError
from gonio.gauge.group import gauge_of, reachable
from gonio.gauge.meant import Meant, inputs_meant
from gonio.gauge.reach import cosine as cosine_of
from gonio.gauge.reach import plain_translation, smallest_translation
from gonio.gauge.transforms import Linear, Transform, Translation
from gonio.head import Head, Label

if TYPE_CHECKING:
    from jaxtyping import Float

U = 2.0**-53


@dataclass(frozen=True, eq=False)
class Dialled:
    """An equivalent head with the wanted cosine, and what the dialling does to its predictions.

    head             the equivalent head
    transform        what was done to the rows, and to the embeddings with them
    translation      the vector added to all rows; None where another map was used
    cosine           the cosine of the pair in the new head, as computed
    bound            proven: no probability of any label differs by more, over the inputs meant (translations only)
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
        translation, whose rounding is measured only.

        It is about the two heads in real numbers; what is measured includes the rounding of the measurement.
        """
        return _bound(self.head, self.meant) if isinstance(self.transform, Translation) else None

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
        """max |p' - p| over the measured embeddings, in float64."""
        if self.before.link not in ("softmax", "sigmoid"):
            return _largest(self.before.logits(self.points), self.head.logits(self.transform.embeddings(self.points)))
        old = self.before.probabilities(self.points)
        return _largest(old, self.head.probabilities(self.transform.embeddings(self.points)))

    @property
    def promise(self) -> str:
        """What is proven about the predictions, in words."""
        if self.bound is None:
            return f"no prediction changes but by rounding, which is measured only, over {self.over}"
        return f"no probability differs by more than {self.bound:.2g} over {self.over}"

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
            "max_probability_difference": self.max_probability_difference,
        }

    def __repr__(self) -> str:
        a, b = (self.before.labels[i] for i in self.labels)
        before = cosine_of(self.before[self.labels[0]], self.before[self.labels[1]])
        return (
            f"Dialled(cos({a!r}, {b!r}) from {before:.6f} to {self.cosine:.6f} by a {self.transform.name})\n"
            f"  {self.promise}"
        )


def _largest(old: np.ndarray, new: np.ndarray) -> float:
    return float(np.abs(old - new).max())


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
    sigmoid and dot, an invertible map of rows and embeddings: any cosine in (-1, 1).

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
        raise GonioError(f"dial: {head.labels[i]!r} is one label, whose cosine with itself is 1; give two labels.")
    if not isinstance(cosine, (int, float, np.floating)) or not -1 <= cosine <= 1:
        raise GonioError(f"dial: the cosine is {cosine!r}; a number from -1 to 1 is needed.")
    table = reachable(head, i, j)
    reach = table.get("translation") or table.get("linear") or table["all"]
    x, y = head[i].astype(np.float64), head[j].astype(np.float64)
    if cosine not in reach and cosine_of(x, y) != cosine:
        raise GonioError(
            f"dial: {head.labels[i]!r} and {head.labels[j]!r} cannot have cosine {cosine:g} in any equivalent head "
            f"of this kind: {reach.why}; what can be reached is {reach}."
        )
    transform: Transform
    if Translation in gauge_of(head).kinds:
        v = smallest_translation(x, y, cosine).v if way == "smallest" else plain_translation(x, y, cosine)
        transform = Translation(v)
    else:
        transform = Linear(linear_map(x, y, cosine))
    moved = transform.apply(head)
    meant = inputs_meant(head, embeddings, radius)
    got = cosine_of(moved[i], moved[j])
    if abs(np.arccos(np.clip(got, -1, 1)) - np.arccos(cosine)) > 1e-3:
        raise GonioError(
            f"dial: {head.labels[i]!r} and {head.labels[j]!r} differ by little more than rounding, and moving them "
            f"gave the cosine {got:.3g} instead of {cosine:g}; their difference is too small to be turned."
        )
    return Dialled(head, moved, (i, j), transform, got, meant)


def linear_map(a: np.ndarray, b: np.ndarray, target: float) -> np.ndarray:
    """An invertible M with cos(M a, M b) = target for independent a, b: M = I - QQ' + Q S Q', [a b] = Q R,
    S = [[1, c], [0, sqrt(1 - c^2)]] R^-1 (FACTS 1.6).

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
