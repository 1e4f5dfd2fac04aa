"""The equivalent head in which the cosine of two rows is the correlation of their (centred) logits over some states.

With S the covariance of the states about their mean m, J W the rows less their mean (a softmax does not see it) and
S = Q diag(lambda) Q' on the r directions in which states vary,

    rows    A = J W Q diag(lambda)^1/2          f' = diag(lambda)^-1/2 Q' (f - m)
    bias    b' = J (b + W m)                    A f' + b' = J (W f + b)   for every f that the inputs allow

so A A' is the covariance of the centred logits, and its cosines are their correlations: any store of vectors that
compares by cosine then answers the question that the model answers. Rows of sigmoid, dot and soft-capped heads are
facts themselves and are not centred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.inputs import AllInputs
from gonio.core.states import States, must_fit

if TYPE_CHECKING:
    from jaxtyping import Float

LEAST = 1e-9  # of the largest variance: directions below it are rounding


@dataclass(frozen=True, eq=False, repr=False)
class Canonicalised:
    """A head whose plain cosine is the (centred-)logit correlation over the states that it was made with.

    head     the equivalent head, of width r
    map      f' = map (f - mean): what its inputs are made of
    mean     of the states
    centred  whether the mean row was taken away (softmax)
    off      the largest difference of a centred logit seen between the two heads, over the states
    """

    before: Head
    head: Head
    map: Float[np.ndarray, "rank dim"]
    mean: Float[np.ndarray, " dim"]
    centred: bool
    states: int
    off: float

    def embeddings(self, F: Any) -> Float[np.ndarray, "points rank"]:
        """The inputs of the new head that stand for some of the old one."""
        f = checks.embeddings(F, self.before.shape[1], "canonicalise").astype(np.float64)
        return (f - self.mean) @ self.map.T

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {
            "before": self.before.digest,
            "head": self.head.digest,
            "labels": self.head.shape[0],
            "width": self.head.shape[1],
            "states": self.states,
            "centred": self.centred,
            "largest_logit_difference": self.off,
        }

    def __repr__(self) -> str:
        n, r = self.head.shape
        what = "centred-logit" if self.centred else "logit"
        return (
            f"Canonicalised({n:,} labels x {r})\n"
            f"  the cosine of two rows is their {what} correlation over {self.states:,} states"
        )


def canonicalise(head: Head, embeddings: Any) -> Canonicalised:
    """The equivalent head in which the cosine of rows equals the (centred-)logit correlation over these states.

    >>> rng = np.random.default_rng(0)
    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]], link="softmax")
    >>> canonicalise(head, rng.standard_normal((1000, 2))).head.shape
    (5, 2)

    Claims: GONIO.canonicalise
    """
    head.must_score("canonicalise")
    if head.link == "cosine":
        raise GonioError("canonicalise: the link is cosine, so the cosine of rows is already what was trained.")
    if isinstance(embeddings, States):
        must_fit(embeddings, head, "canonicalise")
    d = head.shape[1]
    F = checks.embeddings(embeddings, d, "canonicalise").astype(np.float64)
    allowed = _free_directions(head)
    if len(F) <= allowed:
        raise GonioError(
            f"canonicalise: {len(F):,} states were given and the inputs vary in {allowed} directions; give more than "
            f"that, or logits in the others are lost."
        )
    mean = F.mean(axis=0)
    _, size, axes = np.linalg.svd((F - mean) / np.sqrt(len(F)), full_matrices=False)
    r = min(allowed, len(size))
    if not size[r - 1] > LEAST * size[0]:
        span = int((size > LEAST * size[0]).sum())
        raise GonioError(
            f"canonicalise: the states vary in {span} directions and the inputs may in {allowed}; how labels differ in "
            f"the others would be lost. Give states of more varied text."
        )
    Q, scale = axes[:r].T, size[:r]
    W = head.W.astype(np.float64)
    centred = head.link == "softmax" and head.softcap is None
    if centred:
        W = W - W.mean(axis=0)
    bias = W @ mean + (0.0 if head.bias is None else head.bias - (head.bias.mean() if centred else 0.0))
    new = Head(
        (W @ Q) * scale,
        bias,
        link=head.link,
        labels=head.labels if head.named else None,
        inputs=AllInputs(),
        trained=head.trained,
        softcap=head.softcap,
    )
    to = Q.T / scale[:, None]
    out = Canonicalised(head, new, to, mean, centred, len(F), 0.0)
    some = F[np.unique(np.linspace(0, len(F) - 1, 64).astype(int))]
    a, b = head.logits(some), new.logits(out.embeddings(some))
    if centred:
        a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    off = float(np.abs(a - b).max())
    if not off <= 1e-6 * max(1.0, float(np.abs(a).max())):
        raise GonioError(
            f"canonicalise: the logits of the new head are {off:.2g} off; the states are too nearly degenerate to map."
        )
    return Canonicalised(head, new, to, mean, centred, len(F), off)


def _free_directions(head: Head) -> int:
    """In how many directions the inputs of a head can vary."""
    d = head.shape[1]
    if not head.inputs.centred:
        gain = getattr(head.inputs, "gain", None)
        return d if gain is None else int((np.asarray(gain) != 0).sum())
    gain = head.inputs.gain_and_shift(d)[0]
    live = int((np.asarray(gain) != 0).sum())
    return live - 1 if live == d else live


def root_of_states(
    F: Float[np.ndarray, "points dim"],
) -> tuple[Float[np.ndarray, "dim dim"], Float[np.ndarray, "dim dim"]]:
    """(S^1/2, S^-1/2) of the covariance of states about their mean, both symmetric."""
    F = F.astype(np.float64)
    F = F - F.mean(axis=0)
    value, axes = np.linalg.eigh(F.T @ F / len(F))
    if not value[0] > LEAST**2 * value[-1] or len(F) <= F.shape[1]:
        raise GonioError(
            f"canonicalise: {len(F):,} states do not vary in all {F.shape[1]} directions; give states of more text."
        )
    return (axes * np.sqrt(value)) @ axes.T, (axes / np.sqrt(value)) @ axes.T
