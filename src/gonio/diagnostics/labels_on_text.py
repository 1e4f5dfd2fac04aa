"""What a model did on a text, label by label: who was on top, who was among the k likeliest, the largest probability.

Possible is proven over all inputs, seen is counted over the states of one text. Between the two stands what more text
would show. With N states, n_j winners that won exactly j times and t times as much text to come:

    n_1 / N                         chance that the next position shows a new winner (Good, Turing)
    - sum_j (-t)^j n_j              new winners expected in t N more positions, t <= 1 (Good, Toulmin)
    share of positions whose winner won in no other document     the same chance for a position of another document

Intervals leave out one document at a time (jackknife): to draw documents again would repeat some, and turn winners seen
once into winners seen twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.blas_pool import BlasPool
from gonio.core.compiled import njit
from gonio.core.correlations import spearman
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.core.states import LEAST_DOCUMENTS, States

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ROWS = 128  # states whose logits are held at once by each thread
GROUPS = 100  # documents, or groups of them, that are left out one at a time


@dataclass(frozen=True)
class Estimate:
    """A number from the text, with its interval where there are enough documents."""

    value: float
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, float | None]:
        """The three numbers."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def words(self, form: str = "{:.2g}") -> str:
        """The value, and the interval behind it."""
        if self.low is None or self.high is None:
            return form.format(self.value)
        return f"{form.format(self.value)} ({form.format(self.low)} to {form.format(self.high)})"


@dataclass(frozen=True, eq=False, repr=False)
class SeenLabels:
    """What was seen of each label over some states of a softmax head.

    winners    the label on top at each state; of equal scores the first
    top        how often each label was on top
    among      how often it was among the `k` likeliest
    largest    its largest probability
    """

    head: Head
    k: int
    winners: Int[np.ndarray, " points"]
    top: Int[np.ndarray, " labels"]
    among: Int[np.ndarray, " labels"]
    largest: Float[np.ndarray, " labels"]
    documents: Int[np.ndarray, " points"] | None
    tokens: Int[np.ndarray, " points"] | None

    def __post_init__(self) -> None:
        for a in (self.winners, self.top, self.among, self.largest):
            a.flags.writeable = False

    @property
    def never_on_top(self) -> Int[np.ndarray, " some"]:
        """The labels that were on top nowhere."""
        return np.flatnonzero(self.top == 0)

    @cached_property
    def next_is_new(self) -> Estimate:
        """The chance that the next position shows a winner that was not seen: n_1 / N."""
        return self._estimate(lambda w, d: float((_counts(w) == 1).sum() / len(w)))

    @cached_property
    def new_in_another_document(self) -> Estimate | None:
        """The same chance for a position of another document; None where documents are not known."""
        if self.documents is None or len(np.unique(self.documents)) < 2:
            return None
        return self._estimate(_only_here)

    @cached_property
    def twice_the_text(self) -> Estimate:
        """How many more winners as much text again is expected to show."""
        return self._estimate(lambda w, d: _good_toulmin(w))

    @cached_property
    def frequency(self) -> Int[np.ndarray, " labels"] | None:
        """How often each label was read in the text; None where the tokens are not known."""
        if self.tokens is None or not (known := self.tokens[self.tokens >= 0]).size:
            return None
        if known.max() >= self.head.shape[0]:
            return None
        return np.bincount(known, minlength=self.head.shape[0])

    @cached_property
    def skewness(self) -> float:
        """The third standardised moment of how often labels are among the likeliest."""
        from scipy.stats import skew

        return float(skew(self.among)) if np.ptp(self.among) else 0.0

    @cached_property
    def follows_frequency(self) -> float | None:
        """Spearman's correlation of `among` with the frequency in the text, over labels that have either."""
        if self.frequency is None:
            return None
        either = (self.among > 0) | (self.frequency > 0)
        if either.sum() < 3 or not np.ptp(self.among[either]) or not np.ptp(self.frequency[either]):
            return None
        return float(spearman(self.among[either].astype(float), self.frequency[either].astype(float)))

    def _estimate(self, of: Any) -> Estimate:
        """A number, and 1.96 standard errors to both sides by leaving out one document, or one group of them."""
        value = of(self.winners, self.documents)
        if self.documents is None:
            return Estimate(value, None, None)
        place = np.unique(self.documents, return_inverse=True)[1]
        many = int(place.max()) + 1
        if many < LEAST_DOCUMENTS:
            return Estimate(value, None, None)
        groups = min(many, GROUPS)
        group = np.random.default_rng(0).permutation(many)[place] % groups
        left = np.array([of(self.winners[group != g], self.documents[group != g]) for g in range(groups)])
        spread = 1.96 * float(np.sqrt((groups - 1) / groups * ((left - left.mean()) ** 2).sum()))
        return Estimate(value, max(0.0, value - spread), value + spread)

    def columns(self) -> dict[str, list[Any]]:
        """One row a label."""
        out: dict[str, list[Any]] = {
            "label": list(self.head.labels),
            "on_top": self.top.tolist(),
            f"among_{self.k}_likeliest": self.among.tolist(),
            "largest_probability": self.largest.tolist(),
        }
        return out | ({} if self.frequency is None else {"in_text": self.frequency.tolist()})

    def __repr__(self) -> str:
        n = self.head.shape[0]
        return (
            f"SeenLabels({len(self.winners):,} states, {n:,} labels)\n"
            f"  {n - len(self.never_on_top):,} were on top somewhere; the next position shows a new one with chance "
            f"{self.next_is_new.words()}"
        )


def seen_labels(head: Head, embeddings: Any, k: int = 10) -> SeenLabels:
    """Who was on top, who was among the k likeliest, and how likely each label ever was, over some states.

    >>> head = Head([[1.0, 0], [0, 1], [-1, -1]], link="softmax")
    >>> seen_labels(head, [[2.0, 0], [3, 1], [0, 1]], k=1).top
    array([2, 1, 0])
    """
    if head.link != "softmax":
        raise GonioError(f"seen_labels: the link is {head.link!r}; it counts winners of a softmax head.")
    F = checks.embeddings(embeddings, head.shape[1], "seen_labels")
    n = head.shape[0]
    k = max(1, min(int(k), n))
    W = np.ascontiguousarray(head.W.astype(F.dtype, copy=False))
    bias = None if head.bias is None else head.bias.astype(F.dtype)
    winners = np.empty(len(F), np.int64)

    def block(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        s, e = span
        z = F[s:e] @ W.T
        if bias is not None:
            z += bias
        if head.softcap is not None:
            z = head.softcap * np.tanh(z / head.softcap)
        among, best = np.zeros(n, np.int64), np.full(n, -np.inf)
        tally(np.ascontiguousarray(z), k, winners[s:e], among, best)
        return among, best

    among, best = np.zeros(n, np.int64), np.full(n, -np.inf)
    with BlasPool() as pool:
        size = pool.size * 4
        cut = list(spans(len(F), ROWS))
        for start in range(0, len(cut), size):
            for counted, likely in pool.run(block, cut[start : start + size]):
                among += counted
                np.maximum(best, likely, out=best)
    states = embeddings if isinstance(embeddings, States) else None
    return SeenLabels(
        head,
        k,
        winners,
        np.bincount(winners, minlength=n),
        among,
        np.exp(best),
        None if states is None else states.documents,
        None if states is None else states.tokens,
    )


@njit(cache=True, nogil=True)
def tally(z: np.ndarray, k: int, winners: np.ndarray, among: np.ndarray, best: np.ndarray) -> None:
    """Of each row of scores: its largest, its k largest (the first of equal ones), and every log-probability."""
    rows, n = z.shape
    kept, at = np.empty(k), np.empty(k, np.int64)
    for r in range(rows):
        row = z[r]
        have = 0
        for j in range(n):
            v = row[j]
            if have == k and not v > kept[k - 1]:
                continue
            place = have if have < k else k - 1
            have = min(have + 1, k)
            while place > 0 and v > kept[place - 1]:
                kept[place], at[place] = kept[place - 1], at[place - 1]
                place -= 1
            kept[place], at[place] = v, j
        winners[r] = at[0]
        for c in range(k):
            among[at[c]] += 1
        total = 0.0
        for j in range(n):
            total += np.exp(row[j] - kept[0])
        log_total = kept[0] + np.log(total)
        for j in range(n):
            best[j] = max(best[j], row[j] - log_total)


def _counts(winners: np.ndarray) -> np.ndarray:
    return np.unique(winners, return_counts=True)[1]


def _good_toulmin(winners: np.ndarray) -> float:
    """- sum_j (-1)^j n_j:  winners that as much text again would add."""
    times, many = np.unique(_counts(winners), return_counts=True)
    return float(max(0.0, (many * np.where(times % 2, 1.0, -1.0)).sum()))


def _only_here(winners: np.ndarray, documents: np.ndarray) -> float:
    """The share of positions whose winner won in their document alone."""
    pairs = np.unique(np.column_stack([winners, documents]), axis=0)
    labels, in_documents = np.unique(pairs[:, 0], return_counts=True)
    return float(np.isin(winners, labels[in_documents == 1]).mean())
