"""How alike two labels are scored over the inputs that occur: what no change of convention can move.

    covariance of logits over inputs       g_i' S g_j                    S the covariance of the embeddings
    of centred logits (softmax)            (g_i - m)' S (g_j - m)        m the mean row: a softmax does not see it

With S = R'R these are inner products of  R (g_i - m),  so nothing of size labels x inputs is formed and neighbours are
found through BLAS. An invertible map M of the rows turns S into M^-T S M^-1 and cancels; a LayerNorm's free directions
lie outside what the inputs span and cancel too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.core.states import documents_of
from gonio.similarity.bootstrap import Interval, correlation_intervals
from gonio.similarity.measures import Measure, inputs_of, register
from gonio.similarity.rows import Angle, Inner
from gonio.similarity.space import Space, root_of
from gonio.similarity.table import SimilarityTable

if TYPE_CHECKING:
    from jaxtyping import Float


class _OverInputs(Measure):
    """Logits of chosen labels over the embeddings, and a space in which their covariance is an inner product."""

    needs = "embeddings"
    centre = False
    space: Any

    def __init__(self, head: Head, embeddings: Any = None) -> None:
        super().__init__(head)
        F = inputs_of(head, embeddings, self.name)
        if head.link == "cosine":
            length = np.linalg.norm(F.astype(np.float64), axis=1, keepdims=True)
            if not length.all():
                raise GonioError(f"{self.name}: embedding {int(length.argmin())} is zero and has no cosine; drop it.")
            F = F / length
        self.F = F
        self.documents = documents_of(embeddings)
        if head.softcap is None:
            self.space = Space(head, centre=self.centre, unit=head.link == "cosine", root=root_of(F))
        else:  # a soft-cap bends the logits: their covariance is taken from the logits themselves
            self.space = SimilarityTable(head, self._all, len(F), self.name)
        n, d = head.shape
        said = []
        if len(F) <= d and head.softcap is None:
            said.append(
                f"{len(F)} inputs span at most {len(F) - 1} of {d} directions, so how labels differ in the others is "
                f"not estimated; more than {d} inputs are needed for that"
            )
        if self.centre and n == 2:
            said.append("with two labels the centred logits are each other's negatives: -1 whatever the model")
        if self.centre and head.softcap is not None:
            said.append("under a soft-cap a shift of all logits is no convention; plain logit correlation says more")
        if len(self.space.lengths()) and self.space.zero().all():
            said.append("no logit varies over these inputs, so nothing is defined")
        self.caveat = "; ".join(said)

    def _all(self, which: np.ndarray) -> Float[np.ndarray, "points some"]:
        """Soft-capped logits of some labels, centred over all labels where the measure is."""
        z = self._plain(which)
        return z - self._label_mean()[:, None] if self.centre else z

    def _plain(self, which: np.ndarray | slice) -> np.ndarray:
        rows = self.head.rows[which].astype(np.float64)
        if self.head.link == "cosine":
            length = self.head.norms[which][:, None]
            rows = rows / np.where(length > 0, length, 1)
        z = self.F.astype(np.float64) @ rows.T
        if self.head.bias is not None:
            z += self.head.bias[which]
        if self.head.softcap is not None:
            z = self.head.softcap * np.tanh(z / self.head.softcap)
        return z

    def _label_mean(self) -> Float[np.ndarray, " points"]:
        if not hasattr(self, "_mean"):
            n = self.head.shape[0]
            total = np.zeros(len(self.F))
            for s, e in spans(n, 2048):
                total += self._plain(slice(s, e)).sum(axis=1)
            self._mean = total / n
        return self._mean

    def logits(self, labels: Any) -> Float[np.ndarray, "points some"]:
        """The logits of some labels over the inputs, as the measure sees them."""
        which = self.index(labels)
        if self.head.softcap is not None:
            return self._all(which)
        z = self._plain(which)
        if self.centre:
            assert self.space.shift is not None
            z = z - (self.F.astype(np.float64) @ self.space.shift)[:, None]
            if self.head.bias is not None:
                z -= float(self.head.bias.mean())
        return z


class _Correlation(_OverInputs, Angle):
    """The correlation, over inputs, of two labels' logits."""

    def intervals(
        self, a: Any, b: Any, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
    ) -> tuple[Interval, ...]:
        """The value of each pair with a bootstrap interval: how much it hangs on which inputs were drawn."""
        i, j = self.index(a), self.index(b)
        if len(i) != len(j):
            raise GonioError(f"{self.name}: {len(i)} and {len(j)} labels were given; pairs need as many of each.")
        value = self.pairs(i, j)
        low, high = correlation_intervals(
            self.logits(i), self.logits(j), level, resamples, seed, documents=self.documents
        )
        return tuple(Interval(*x, level) for x in zip(value.tolist(), low.tolist(), high.tolist(), strict=True))


class _Covariance(_OverInputs, Inner):
    """The covariance, over inputs, of two labels' logits."""


@register
class CentredLogitCorrelation(_Correlation):
    """corr over inputs of  z_i - mean_k z_k  and  z_j - mean_k z_k:  the gauge-invariant cosine of a softmax head.

    Anything that all changes of convention leave alone is a function of the centred logits; this is the correlation
    of two of them. With two labels it is -1 always. A label whose centred logit does not vary: NaN.

    Claims: GONIO.clc, GONIO.clc2
    """

    name = "centred-logit correlation"
    invariant = frozenset("TMSRUL")
    centre = True


@register
class CentredLogitCovariance(_Covariance):
    """cov over inputs of the logits minus their mean over labels: (J W) S (J W)'."""

    name = "centred-logit covariance"
    invariant = frozenset("TMSRUL")
    centre = True


@register
class LogitCorrelation(_Correlation):
    """corr over inputs of z_i and z_j: for sigmoid and dot heads, whose logits are facts themselves.

    On a softmax head a translation moves it; use the centred one there.
    """

    name = "logit correlation"
    invariant = frozenset("MSRPUL")


@register
class LogitCovariance(_Covariance):
    """cov over inputs of z_i and z_j: g_i' S g_j."""

    name = "logit covariance"
    invariant = frozenset("MSRUL")


@register
class ProjectedBack(_OverInputs, Angle):
    """cos of two items' scores over the users: the columns of  F W' + 1 b',  projecting back to the data.

    With R the triangular factor of [F 1] it is the cosine of  R (w, b),  so nothing of size users x items is formed.
    Scores are facts of a factor model, and so is this; Steck, Ekanadham and Kallus name it as a remedy.

    Claims: GONIO.projected
    """

    name = "projected-back cosine"
    invariant = frozenset("MSRPUL")

    def __init__(self, head: Head, embeddings: Any = None) -> None:
        super().__init__(head, embeddings)
        if head.softcap is None and head.link != "cosine":
            R = np.zeros((0, head.shape[1] + 1))
            for s, e in spans(len(self.F), 8192):
                block = np.column_stack([self.F[s:e].astype(np.float64), np.ones(e - s)])
                R = np.asarray(np.linalg.qr(np.vstack([R, block]), mode="r"))
            self.space = Space(head, root=np.ascontiguousarray(R[:, :-1].T), bias_root=R[:, -1].copy())
            self.caveat = ""

    def intervals(
        self, a: Any, b: Any, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
    ) -> tuple[Interval, ...]:
        """The value of each pair with a bootstrap interval: how much it hangs on which users were drawn."""
        i, j = self.index(a), self.index(b)
        value = self.pairs(i, j)
        low, high = correlation_intervals(
            self.logits(i), self.logits(j), level, resamples, seed, centred=False, documents=self.documents
        )
        return tuple(Interval(*x, level) for x in zip(value.tolist(), low.tolist(), high.tolist(), strict=True))


def centred_logit_correlation(head: Head, embeddings: Any = None) -> CentredLogitCorrelation:
    """The correlation, over inputs, of two labels' logits minus the mean logit: what to report for a softmax head.

    >>> rng = np.random.default_rng(0)
    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]], link="softmax")
    >>> round(centred_logit_correlation(head, rng.standard_normal((1000, 2)))(0, 1), 2)
    0.77
    """
    return CentredLogitCorrelation(head, embeddings)


def logit_correlation(head: Head, embeddings: Any = None) -> LogitCorrelation:
    """The correlation, over inputs, of two labels' logits: what to report for a sigmoid or dot head."""
    return LogitCorrelation(head, embeddings)


@dataclass(frozen=True)
class SameCentredLogits:
    """Whether two softmax heads with their embeddings have the same centred logits, and by how much they differ."""

    same: bool
    difference: float


def complete(a: Head, F_a: Any, b: Head, F_b: Any, tolerance: float = 1e-6) -> SameCentredLogits:
    """Whether two softmax models agree on all given inputs, by their centred logits: a complete invariant.

    F (J W)' = F' (J W')' exactly when one model is a translation and an invertible map of the other, where both have
    full rank.

    Claims: GONIO.centred-complete
    """
    if a.shape[0] != b.shape[0]:
        raise GonioError(f"complete: the heads have {a.shape[0]} and {b.shape[0]} labels; as many are needed.")
    x, y = (h.logits(F).astype(np.float64) for h, F in ((a, np.atleast_2d(F_a)), (b, np.atleast_2d(F_b))))
    if len(x) != len(y):
        raise GonioError(f"complete: {len(x)} and {len(y)} embeddings were given; the same inputs are needed.")
    x, y = (z - z.mean(axis=1, keepdims=True) for z in (x, y))
    gap = float(np.abs(x - y).max() / max(np.abs(x).max(), np.abs(y).max(), 1e-300))
    return SameCentredLogits(gap <= tolerance, gap)
