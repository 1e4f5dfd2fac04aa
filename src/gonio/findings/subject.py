"""What an audit is about: the head, what the user gave with it, and what several questions look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.readable_label import quoted
from gonio.core.states import States, must_fit
from gonio.diagnostics.duplicates import LISTED
from gonio.diagnostics.labels_on_text import SeenLabels, seen_labels
from gonio.gauge import gauge_of
from gonio.gauge.transforms import Chain, Transform
from gonio.similarity.nearest import nearest_by_cosine

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ASKED = 200  # labels whose neighbour lists are followed through the gauge
GAUGES = 3  # random equivalent heads
SOME = 256  # embeddings on which two equivalent heads are compared


def is_factor_model(head: Head) -> bool:
    """Whether the head holds items that are scored by given users."""
    return head.inputs.points is not None and head.link in ("dot", "cosine") and head.shape[0] > 1


def word_of(head: Head) -> str:
    """What a row is called: a label, or an item of a factor model."""
    return "item" if is_factor_model(head) else "label"


@dataclass(frozen=True, eq=False)
class Subject:
    """The head and what came with it."""

    head: Head
    embeddings: np.ndarray | None
    frequencies: np.ndarray | None
    pairs: tuple[tuple[int, int], ...]
    label_sets: tuple[tuple[int, ...], ...] | None
    k: int
    seed: int
    popularity: np.ndarray | None = None
    states: States | None = None
    kept: dict[str, Any] = field(default_factory=dict)  # what questions found of every label, for the table of labels

    @classmethod
    def of(
        cls,
        head: Head,
        embeddings: Any = None,
        frequencies: Any = None,
        pairs: Any = None,
        label_sets: Any = None,
        k: int = 10,
        seed: int = 0,
        popularity: Any = None,
    ) -> Subject:
        """The subject, once everything given has been judged."""
        n = head.shape[0]
        if embeddings is None and head.inputs.points is not None:
            embeddings = head.inputs.points  # a factor model comes with its users
        states = embeddings if isinstance(embeddings, States) else None
        if states is not None:
            must_fit(states, head, "audit")
        F = None if embeddings is None else checks.embeddings(embeddings, head.shape[1], "audit")
        if frequencies is not None:
            if isinstance(frequencies, dict):
                frequencies = [frequencies.get(x, np.nan) for x in head.labels]
            f = checks.array(frequencies, "audit", "frequencies").astype(np.float64).reshape(-1)
            if len(f) != n:
                raise GonioError(f"audit: {len(f)} frequencies were given for {n} labels; one a label is needed.")
            if (f < 0).any():
                raise GonioError("audit: a frequency is negative; counts or shares from 0 on are needed.")
            frequencies = f
        asked = tuple(_pair(head, p) for p in pairs) if pairs is not None else ()
        sets = None
        if label_sets is not None:
            sets = tuple(tuple(sorted({head.index(x) for x in s})) for s in label_sets)
        if popularity is not None:
            popularity = checks.vector(popularity, "audit", "popularity", n, per="item")
        # A list of all other labels tells nothing: with few labels lists are half as long as they could be.
        return cls(head, F, frequencies, asked, sets, max(1, min(k, (n - 1) // 2)), seed, popularity, states)

    @property
    def word(self) -> str:
        """What a row is called."""
        return word_of(self.head)

    @property
    def inputs_word(self) -> str:
        """What an input is called: a factor model's are users."""
        return "user" if is_factor_model(self.head) else "embedding"

    @property
    def points(self) -> States | np.ndarray | None:
        """The embeddings, with where each came from where that is known."""
        return self.embeddings if self.states is None else self.states

    @property
    def some_embeddings(self) -> np.ndarray | None:
        """A few hundred of the embeddings, evenly spaced: enough to see that nothing changes."""
        if self.embeddings is None or len(self.embeddings) <= SOME:
            return self.embeddings
        return self.embeddings[np.linspace(0, len(self.embeddings) - 1, SOME).astype(int)]

    @cached_property
    def asked(self) -> Int[np.ndarray, " asked"]:
        """The labels whose neighbours are looked at: those of the user's pairs, and others drawn at random."""
        n = self.head.shape[0]
        named = list(dict.fromkeys(i for p in self.pairs for i in p))
        alive = np.setdiff1d(np.flatnonzero(self.head.norms > 0), np.concatenate([self.head.padded, named]).astype(int))
        rng = np.random.default_rng([self.seed, n])
        more = rng.choice(alive, min(len(alive), max(0, ASKED - len(named))), replace=False)
        return np.concatenate([np.array(named, np.int64), np.sort(more)]).astype(np.int64)

    @cached_property
    def lists(self) -> tuple[Int[np.ndarray, "labels near"], Float[np.ndarray, "labels near"]]:
        """Every label's nearest by cosine, and their cosines: the one look at all pairs."""
        return nearest_by_cosine(self.head.rows, min(max(self.k, LISTED), self.head.shape[0] - 1))

    @cached_property
    def cosine_neighbours(self) -> tuple[Int[np.ndarray, "asked near"], Float[np.ndarray, "asked near"]]:
        """The nearest labels by cosine of the rows as they are, and their cosines."""
        return nearest_by_cosine(self.head.rows, self.k, self.asked)

    @cached_property
    def seen(self) -> SeenLabels | None:
        """What the labels did over the embeddings; None where none were given, or no label is chosen."""
        if self.embeddings is None or self.head.link != "softmax" or self.head.inputs.points is not None:
            return None
        return seen_labels(self.head, self.points, min(10, max(1, self.head.shape[0] // 2)))

    @cached_property
    def pair(self) -> tuple[int, int] | None:
        """The user's first pair, or the most similar one among the labels asked about that is not a twin."""
        if self.pairs:
            return self.pairs[0]
        if self.head.shape[0] < 2 or not len(self.asked):
            return None
        near, value = self.cosine_neighbours
        order = np.argsort(-value[:, 0], kind="stable")
        for i in order:
            if value[i, 0] < 1 - 1e-6:
                return int(self.asked[i]), int(near[i, 0])
        return int(self.asked[order[0]]), int(near[order[0], 0])

    @cached_property
    def moves(self) -> tuple[Transform, ...]:
        """Random members of the head's gauge: equivalent heads of the same size."""
        rng = np.random.default_rng([self.seed, 7])
        gauge = gauge_of(self.head)
        return tuple(gauge.random(self.head, rng) for _ in range(GAUGES))

    def survivors(self, head: Head) -> Float[np.ndarray, " asked"]:
        """For each label asked about, the share of its nearest labels that it keeps in an equivalent head."""
        near = self.cosine_neighbours[0]
        again, _ = nearest_by_cosine(head.rows, self.k, self.asked)
        return np.array([len(np.intersect1d(a, b)) / self.k for a, b in zip(near, again, strict=True)])

    def moved(self, which: int) -> Head:
        """An equivalent head, moved by a random member of the gauge."""
        move = self.moves[which]
        assert isinstance(move, Chain)
        return move.apply(self.head)

    def name(self, i: int) -> str:
        """The name of a label."""
        return self.head.labels[i]


def _pair(head: Head, pair: Any) -> tuple[int, int]:
    if isinstance(pair, str) or len(pair) != 2:
        raise GonioError(f"audit: {pair!r} is not a pair of labels.")
    a, b = (head.index(x) for x in pair)
    if a == b:
        raise GonioError(f"audit: {quoted(head.labels[a])} is one label; a pair needs two.")
    return a, b
