"""word2vec as a sigmoid classifier, beside a softmax model of the same text.

    SGNS      - log s(u_c.v_w) - sum over k noise words n of log s(- u_n.v_w)       (Mikolov et al. 2013)
    softmax   - log softmax_c(u.v_w)

Both read a word w through v_w and score context words c by u_c. The head is U; v_w are the embeddings that reach it. Of
SGNS it is a sigmoid head: each context word is a yes or no, and the set of words answered yes is a label set. Of the
softmax it is a softmax head, to all of whose rows any vector may be added.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.compiled import njit
from gonio.core.correlations import spearman
from gonio.core.directions import cosines_of
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.inputs import Observed
from gonio.diagnostics.result import Result, axes
from gonio.gauge import gauge_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SURE = 1e-7  # a set counts as possible where every score has its sign by this much of the row's length


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as word numbers, one array a line, and how often each word occurs."""

    words: tuple[str, ...]
    counts: Int[np.ndarray, " words"]
    lines: tuple[np.ndarray, ...]

    def pairs(self, window: int = 5) -> tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]:
        """All (word, context word) pairs at most `window` apart in a line."""
        left, right = [], []
        for line in self.lines:
            for k in range(1, min(window, len(line) - 1) + 1):
                left += [line[:-k], line[k:]]
                right += [line[k:], line[:-k]]
        if not left:
            raise GonioError("Corpus: no line has two known words; a longer text or a smaller least count is needed.")
        return np.concatenate(left), np.concatenate(right)

    def together(self, window: int = 5) -> Float[np.ndarray, "words words"]:
        """How often each two words stand within a window of each other."""
        n = len(self.words)
        w, c = self.pairs(window)
        return np.bincount(w * n + c, minlength=n * n).reshape(n, n).astype(np.float64)


def read_corpus(text: str, *, least: int = 5, most: int = 3000) -> Corpus:
    """The words of a text that occur at least `least` times (the `most` most frequent), lines as they are."""
    lines = [re.findall(r"[^\W\d_]+", line.lower()) for line in text.splitlines()]
    counts = Counter(w for line in lines for w in line)
    kept = [w for w, c in sorted(counts.items(), key=lambda x: (-x[1], x[0])) if c >= least][:most]
    if len(kept) < 3:
        raise GonioError(f"read_corpus: {len(kept)} words occur {least} times or more; at least 3 are needed.")
    at = {w: i for i, w in enumerate(kept)}
    numbers = tuple(np.array([at[w] for w in line if w in at], np.int64) for line in lines)
    return Corpus(tuple(kept), np.array([counts[w] for w in kept]), tuple(x for x in numbers if len(x) > 1))


@njit(cache=True)
def _sgns(V, U, words, contexts, noise, negatives, rate, seed):
    np.random.seed(seed)
    d, total = V.shape[1], len(words)
    step = np.zeros(d)
    for t in range(total):
        lr = rate * max(1e-4, 1 - t / total)
        v = V[words[t]]
        step[:] = 0
        for k in range(negatives + 1):
            c = contexts[t] if k == 0 else noise[np.random.randint(0, len(noise))]
            if k > 0 and c == contexts[t]:
                continue
            u = U[c]
            s = 0.0
            for i in range(d):
                s += u[i] * v[i]
            g = ((1.0 if k == 0 else 0.0) - 1 / (1 + np.exp(-s))) * lr
            for i in range(d):
                step[i] += g * u[i]
                u[i] += g * v[i]
        for i in range(d):
            v[i] += step[i]


def train_sgns(
    corpus: Corpus,
    *,
    dim: int = 32,
    window: int = 5,
    negatives: int = 5,
    epochs: int = 10,
    rate: float = 0.05,
    seed: int = 0,
) -> Head:
    """Skip-gram with negative sampling; the sigmoid head of context words, with the word vectors as its inputs."""
    rng = np.random.default_rng(seed)
    w, c = corpus.pairs(window)
    n = len(corpus.words)
    V = (rng.random((n, dim)) - 0.5) / dim
    U = np.zeros((n, dim))
    share = corpus.counts**0.75
    noise = rng.choice(n, 1_000_000, p=share / share.sum())
    order = np.concatenate([rng.permutation(len(w)) for _ in range(epochs)])
    _sgns(V, U, w[order], c[order], noise, negatives, rate, seed)
    return Head(U, link="sigmoid", labels=corpus.words, inputs=Observed(V))


def train_softmax(
    corpus: Corpus, *, dim: int = 32, window: int = 5, steps: int = 120, rate: float = 0.05, seed: int = 0
) -> Head:
    """The same model with a full softmax over contexts, by Adam on all pairs at once; its head and inputs."""
    rng = np.random.default_rng(seed)
    N = corpus.together(window)
    share = N.sum(axis=1, keepdims=True) / N.sum()
    P = N / np.maximum(N.sum(axis=1, keepdims=True), 1)
    n = len(P)
    parts = [0.1 * rng.standard_normal((n, dim)), 0.1 * rng.standard_normal((n, dim))]
    first, second = [np.zeros_like(x) for x in parts], [np.zeros_like(x) for x in parts]
    weight = share * n  # frequent words count more, on a scale where Adam's steps are of one size
    for t in range(1, steps + 1):
        V, U = parts
        Z = V @ U.T
        Z -= Z.max(axis=1, keepdims=True)
        np.exp(Z, out=Z)
        Z /= Z.sum(axis=1, keepdims=True)
        Z -= P
        Z *= weight
        for k, g in enumerate((Z @ U, Z.T @ V)):
            first[k] = 0.9 * first[k] + 0.1 * g
            second[k] = 0.999 * second[k] + 0.001 * g * g
            m, s = first[k] / (1 - 0.9**t), second[k] / (1 - 0.999**t)
            parts[k] = parts[k] - rate * m / (np.sqrt(s) + 1e-8)
    return Head(parts[1], link="softmax", labels=corpus.words, inputs=Observed(parts[0]))


@dataclass(frozen=True)
class WordModel:
    """What one model's cosines have to do with what stands together.

    cosine          Spearman of the cosine of two context words' rows with the log of how often they stand together
    words           the same of the cosines of the words' own vectors
    score           of the score u_c.v_w itself
    forms           `cosine` in random equivalent heads: lowest and highest
    loss            mean loss a pair, in nats
    """

    link: str
    cosine: float
    words: float
    score: float
    forms: tuple[float, float]
    loss: float


@dataclass(frozen=True, eq=False, repr=False)
class WordModels(Result):
    """SGNS beside a softmax on one text.

    possible         share of sets of two words standing together often that the sigmoid head can answer, and no other
    possible_random  the same of two words drawn at random
    predicted        share of both kinds (together, random) whose two words some word of the vocabulary scores above 0
    cosines          mean cosine of both kinds
    """

    sgns: WordModel
    softmax: WordModel
    possible: float
    possible_random: float
    undecided: int
    predicted: tuple[float, float]
    cosines: tuple[float, float]
    words: int
    pairs: int
    sets: int

    def lines(self) -> tuple[str, str]:
        return (
            f"{self.words:,} words, {self.pairs:,} pairs; sets of two possible: together {100 * self.possible:.0f}%, "
            f"random {100 * self.possible_random:.0f}%",
            f"cosine against co-occurrence: SGNS {self.sgns.cosine:.3f} (equivalent heads {self.sgns.forms[0]:.2f} to "
            f"{self.sgns.forms[1]:.2f}), softmax {self.softmax.cosine:.3f} ({self.softmax.forms[0]:.2f} to "
            f"{self.softmax.forms[1]:.2f})",
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        return (
            f"SGNS answers yes or no for each context word, so it is a sigmoid head. Of {self.sets} pairs of words "
            f"that often stand together it can answer just these two for {100 * self.possible:.0f}%, of random pairs "
            f"for {100 * self.possible_random:.0f}%; some word of the vocabulary scores both above 0 for "
            f"{100 * self.predicted[0]:.0f}% and {100 * self.predicted[1]:.0f}%. Their mean cosines are "
            f"{self.cosines[0]:.2f} and {self.cosines[1]:.2f}. Over all pairs the cosine goes with how often "
            f"words stand together by {self.sgns.cosine:.2f} (Spearman), the score "
            f"by {self.sgns.score:.2f}; in the softmax "
            f"model by {self.softmax.cosine:.2f} and {self.softmax.score:.2f}. In equivalent heads the cosine's runs "
            f"from {self.sgns.forms[0]:.2f} to {self.sgns.forms[1]:.2f} (SGNS) and {self.softmax.forms[0]:.2f} to "
            f"{self.softmax.forms[1]:.2f} (softmax)."
        )

    def plot(self, ax: Any = None) -> Any:
        """How cosines and scores go with co-occurrence, with the range over equivalent heads."""
        ax = axes(ax)
        for i, m in enumerate((self.sgns, self.softmax)):
            ax.plot([i, i], m.forms, color="#c0392b", alpha=0.4, linewidth=6, solid_capstyle="butt")
            ax.scatter([i, i + 0.25], [m.cosine, m.score], c=["#1f6f8b", "0.4"], zorder=3)
            ax.annotate("score", (i + 0.25, m.score), textcoords="offset points", xytext=(6, -3), fontsize=8)
        ax.set_xticks([0, 1], ["SGNS (sigmoid)", "softmax"])
        ax.set_xlim(-0.5, 1.7)
        ax.set_ylabel("Spearman with log co-occurrence")
        ax.set_title("points: cosine; bars: its range over equivalent heads", fontsize=10)
        return ax


def word_models(
    corpus: Corpus, *, dim: int = 32, window: int = 5, epochs: int = 10, steps: int = 120, sets: int = 40, seed: int = 0
) -> WordModels:
    """Train both models on one text and hold their cosines against what stands together."""
    rng = np.random.default_rng(seed)
    N = corpus.together(window)
    n = len(N)
    i, j = np.triu_indices(n, 1)
    met = N[i, j] > 0
    sg = train_sgns(corpus, dim=dim, window=window, epochs=epochs, seed=seed)
    so = train_softmax(corpus, dim=dim, window=window, steps=steps, seed=seed)
    a, b = i[met], j[met]
    often = np.log(N[a, b])
    models = [_judge(h, a, b, often, N, corpus, rng) for h in (sg, so)]
    # Pairs that stand together more often than their frequencies say, among words that are not the most frequent.
    lift = N[a, b] * N.sum() / (N.sum(axis=1)[a] * N.sum(axis=1)[b])
    good = np.flatnonzero(N[a, b] >= min(5, N[a, b].max()))
    best = good[np.argsort(-lift[good], kind="stable")[:sets]]
    together = np.column_stack([a[best], b[best]])
    first = rng.integers(0, n, len(best))
    random = np.column_stack([first, (first + rng.integers(1, n, len(best))) % n])
    answers = [[can_answer(sg.W, p) for p in group] for group in (together, random)]
    scores = sg.inputs.F @ sg.W.T  # type: ignore[attr-defined]
    return WordModels(
        models[0],
        models[1],
        float(np.mean([x is True for x in answers[0]])),
        float(np.mean([x is True for x in answers[1]])),
        sum(x is None for group in answers for x in group),
        tuple(float(np.mean([((scores[:, p] > 0).all(axis=1)).any() for p in g])) for g in (together, random)),  # type: ignore[arg-type]
        tuple(float(cosines_of(sg.W, g[:, 0], g[:, 1]).mean()) for g in (together, random)),  # type: ignore[arg-type]
        n,
        int(N.sum()),
        len(best),
    )


def can_answer(W: np.ndarray, active: Any) -> bool | None:
    """Whether some input scores the `active` rows above 0 and all others below; None where rounding hides the answer.

    max r  with  s_i w_i.x >= |w_i| r,  |x_i| <= 1,  then the signs of W x are looked at.
    """
    from scipy.optimize import linprog

    length = np.linalg.norm(W, axis=1)
    if (length == 0).any():
        return False
    sign = -np.ones(len(W))
    sign[np.asarray(active)] = 1
    unit = W * (sign / length)[:, None]
    d = W.shape[1]
    found = linprog(
        np.r_[np.zeros(d), -1.0],
        A_ub=np.column_stack([-unit, np.ones(len(W))]),
        b_ub=np.zeros(len(W)),
        bounds=[(-1, 1)] * d + [(None, 1)],
        method="highs",
    )
    if found.status != 0:
        return None
    if (unit @ found.x[:d] > SURE).all():
        return True
    return False if found.x[d] <= SURE / 10 else None


def _judge(head: Head, i, j, often, N, corpus: Corpus, rng: np.random.Generator) -> WordModel:
    V = head.inputs.F  # type: ignore[attr-defined]
    scores = V @ head.W.T
    both = np.maximum(scores[i, j], scores[j, i])
    forms = [spearman(cosines_of(gauge_of(head).random(head, rng).apply(head).W, i, j), often) for _ in range(3)]
    return WordModel(
        head.link,
        spearman(cosines_of(head.W, i, j), often),
        spearman(cosines_of(V, i, j), often),
        spearman(both, often),
        (min(forms), max(forms)),
        _loss(head.link, scores, N, corpus),
    )


def _loss(link: str, Z: np.ndarray, N: np.ndarray, corpus: Corpus, negatives: int = 5) -> float:
    """The mean loss a pair; of SGNS with the noise words' part in expectation."""
    total = N.sum()
    if link == "softmax":
        top = Z.max(axis=1, keepdims=True)
        log_p = Z - top - np.log(np.exp(Z - top).sum(axis=1, keepdims=True))
        return float(-(N * log_p).sum() / total)
    share = corpus.counts**0.75
    share = share / share.sum()
    noise = N.sum(axis=1) @ (np.logaddexp(0, Z) @ share)
    return float(((N * np.logaddexp(0, -Z)).sum() + negatives * noise) / total)
