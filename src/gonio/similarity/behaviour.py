"""How alike the model treats two labels over the inputs that occur, by its probabilities.

    log-probability correlation    corr over x of log p(i|x) and log p(j|x)
    expected log-ratio             mean over x of |log p(i|x) - log p(j|x)|
    which inputs                   Jensen-Shannon divergence, in bits, of q_i and q_j,  q_i(x) = p(i|x) / sum_x' p(i|x')

All are functions of the predictions, so no change of convention moves them. Each comes with a bootstrap interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.core.states import documents_of
from gonio.similarity.bootstrap import Interval, correlation_intervals, mean_intervals, quantiles, weights
from gonio.similarity.measures import Measure, inputs_of, register
from gonio.similarity.nearest import nearest_by
from gonio.similarity.rows import Angle
from gonio.similarity.space import Space, root_of
from gonio.similarity.table import MOST, SimilarityTable

if TYPE_CHECKING:
    from jaxtyping import Float


class Behaviour(Measure):
    """Log-probabilities of labels over the inputs."""

    needs = "embeddings"

    def __init__(self, head: Head, embeddings: Any = None) -> None:
        super().__init__(head)
        if head.link not in ("softmax", "sigmoid"):
            raise GonioError(
                f"{self.name}: the link is {head.link!r}, which gives no probabilities; use the logit correlation."
            )
        self.F = inputs_of(head, embeddings, self.name).astype(np.float64)
        self.documents = documents_of(embeddings)
        if head.link == "softmax" and head.shape[0] == 1:
            self.caveat = "one label always has probability 1"

    def _logits(self, which: np.ndarray | slice) -> np.ndarray:
        z = self.F @ self.head.rows[which].astype(np.float64).T
        if self.head.bias is not None:
            z += self.head.bias[which]
        return z if self.head.softcap is None else self.head.softcap * np.tanh(z / self.head.softcap)

    def log_partition(self) -> Float[np.ndarray, " points"]:
        """log sum_k exp z_k for each input, a block of labels at a time."""
        if not hasattr(self, "_lse"):
            total = np.full(len(self.F), -np.inf)
            for s, e in spans(self.head.shape[0], max(64, (1 << 23) // len(self.F))):
                z = self._logits(slice(s, e))
                top = z.max(axis=1)
                total = np.logaddexp(total, top + np.log(np.exp(z - top[:, None]).sum(axis=1)))
            self._lse = total
        return self._lse

    def log_probabilities(self, labels: Any) -> Float[np.ndarray, "points some"]:
        """log p(label | x) for each input."""
        z = self._logits(self.index(labels))
        if self.head.link == "sigmoid":
            return -np.logaddexp(0, -z)
        return z - self.log_partition()[:, None]

    def intervals(
        self, a: Any, b: Any, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
    ) -> tuple[Interval, ...]:
        """The value of each pair with a bootstrap interval: how much it hangs on which inputs were drawn."""
        value = self.pairs(a, b)
        x, y = self.log_probabilities(a), self.log_probabilities(b)
        low, high = self._ends(x, y, level, resamples, seed)
        return tuple(Interval(*v, level) for v in zip(value.tolist(), low.tolist(), high.tolist(), strict=True))

    def _ends(self, x, y, level, resamples, seed):
        raise NotImplementedError

    def _table(self) -> Float[np.ndarray, "labels points"]:
        n, points = self.head.shape[0], len(self.F)
        if 4 * n * points > MOST:
            raise GonioError(
                f"{self.name}: neighbours need a table of {n:,} labels x {points:,} inputs, "
                f"{4 * n * points / 1e9:.1f} GB; give at most {MOST // (4 * n):,} embeddings."
            )
        out = np.empty((n, points), np.float32)
        for s, e in spans(n, 1024):
            out[s:e] = self.log_probabilities(np.arange(s, e)).T
        return out


@register
class LogProbabilityCorrelation(Behaviour, Angle):
    """corr over inputs of log p(i|x) and log p(j|x).

    For a softmax it is the cosine of the rows (g_i, -1) under the covariance of (f(x), log Z(x)): neighbours go through
    BLAS. A label whose log-probability does not vary: NaN.
    """

    name = "log-probability correlation"
    invariant = frozenset("TMSR")

    def __init__(self, head: Head, embeddings: Any = None) -> None:
        super().__init__(head, embeddings)
        self.space: Any
        if head.link == "softmax" and head.softcap is None:
            joint = np.column_stack([self.F, self.log_partition()])
            self.space = Space(head, extra=-1.0, root=root_of(joint))
        else:
            self.space = SimilarityTable(head, self.log_probabilities, len(self.F), self.name)

    def _ends(self, x, y, level, resamples, seed):
        return correlation_intervals(x, y, level, resamples, seed, self.name, documents=self.documents)


@register
class ExpectedLogRatio(Behaviour):
    """mean over inputs of |log p(i|x) - log p(j|x)|, in nats: how far the model keeps two labels apart.

    0 exactly when the two always have one probability.
    """

    name = "expected log-ratio"
    invariant = frozenset("TMSR")
    nearer = -1

    def _pairs(self, i, j):
        several, back = np.unique(np.concatenate([i, j]), return_inverse=True)
        out = np.zeros(len(i))
        for s, e in spans(len(self.F), max(1, (1 << 24) // max(1, len(i)))):
            log_p = self._some(several, slice(s, e))
            out += np.abs(log_p[:, back[: len(i)]] - log_p[:, back[len(i) :]]).sum(axis=0)
        return out / len(self.F)

    def _some(self, which: np.ndarray, part: slice) -> np.ndarray:
        z = self.F[part] @ self.head.rows[which].astype(np.float64).T
        if self.head.bias is not None:
            z += self.head.bias[which]
        if self.head.softcap is not None:
            z = self.head.softcap * np.tanh(z / self.head.softcap)
        return z if self.head.link == "softmax" else -np.logaddexp(0, -z)  # the partition cancels in the difference

    def _ends(self, x, y, level, resamples, seed):
        return mean_intervals(np.abs(x - y), level, resamples, seed, self.name, self.documents)

    def _nearest(self, k, which):
        from scipy.spatial.distance import cdist

        V = self._table()
        return nearest_by(lambda mine, a, b: -cdist(V[mine], V[a:b], "cityblock"), len(V), k, which)[0]


@register
class WhichInputs(Behaviour):
    """Jensen-Shannon divergence, in bits, of which inputs pick one label and which pick the other.

    q_i(x) = p(i|x) / sum over the inputs. 0: the same inputs pick both; 1: no input picks both. How often a label is
    picked does not count.
    """

    name = "which inputs"
    invariant = frozenset("TMSR")
    nearer = -1

    def _pairs(self, i, j):
        out = np.empty(len(i))
        for s, e in spans(len(i), max(1, (1 << 22) // len(self.F))):
            x, y = (_over_inputs(self.log_probabilities(w[s:e])) for w in (i, j))
            out[s:e] = _jensen_shannon(x, y)
        return out

    def _ends(self, x, y, level, resamples, seed):
        w = weights(len(x), resamples, seed, self.name, self.documents)
        draws = np.empty((len(w), x.shape[1]))
        for c in range(x.shape[1]):
            p, q = np.exp(x[:, c] - x[:, c].max()), np.exp(y[:, c] - y[:, c].max())
            for s, e in spans(len(w), max(1, (1 << 20) // len(x))):
                a, b = w[s:e] * p, w[s:e] * q
                with np.errstate(invalid="ignore"):
                    a, b = a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)
                draws[s:e, c] = _jensen_shannon(a.T, b.T)
        return quantiles(draws, level, self.name)

    def _nearest(self, k, which):
        V = np.exp(self._table().astype(np.float64))
        V /= V.sum(axis=1, keepdims=True)
        half = -0.5 * _entropy_terms(V).sum(axis=1)

        def score(mine: np.ndarray, a: int, b: int) -> np.ndarray:
            out = np.empty((len(mine), b - a))
            for r, i in enumerate(mine):
                out[r] = _entropy_terms((V[i] + V[a:b]) / 2).sum(axis=1) + half[a:b] + half[i]
            return -out

        return nearest_by(score, len(V), k, which)[0]


def _over_inputs(log_p: np.ndarray) -> np.ndarray:
    p = np.exp(log_p - log_p.max(axis=0))
    return p / p.sum(axis=0)


def _entropy_terms(p: np.ndarray) -> np.ndarray:
    from scipy.special import xlogy

    return -xlogy(p, p) / np.log(2)


def _jensen_shannon(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Of the columns of p and q: H((p + q)/2) - (H(p) + H(q))/2, summed term by term so that nothing cancels late."""
    terms = _entropy_terms((p + q) / 2) - (_entropy_terms(p) + _entropy_terms(q)) / 2
    return np.clip(terms.sum(axis=0), 0, 1)
