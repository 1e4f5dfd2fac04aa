"""The proofs of many labels in blocks, as tasks: claims are made from what the search left and verified on the spot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.ask.candidates import Candidates
from gonio.core.head import Head
from gonio.core.parallel import in_threads, one_blas_thread, spans
from gonio.core.tasks import run
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import NeverWins, Wins
from gonio.proofs.shared_support import LABELS, SharedRivals
from gonio.search.positive_means import PositiveMean, Spread
from gonio.search.proposals import Proposals

if TYPE_CHECKING:
    from jaxtyping import Float, Int

NEVERS, WINNERS = 2048, 1024  # labels of one block


@dataclass(frozen=True, eq=False)
class Claims:
    """What a block of proofs needs: the head, and what the search left about its candidates."""

    head: Head
    candidates: Candidates
    proposals: Proposals


def never_claim(head: Head, candidates: Candidates, proposals: Proposals, which: int) -> NeverWins:
    """The proof that a candidate never wins, from what the search left; not verified."""
    rivals, weights = proposals.support(which)
    if head.inputs.points is not None:
        rivals, weights = rivals[:0], weights[:0]
    return NeverWins(head.digest, int(candidates.rows[which]), candidates.rows[rivals], weights)


def win_claim(head: Head, candidates: Candidates, proposals: Proposals, which: int, label: int) -> Wins:
    """The input at which a candidate wins, from what the search left; not verified."""
    return Wins(head.digest, label, head.inputs.lift(proposals.direction(which)), head.equals(label))


class SpreadClaims:
    """What proving labels by weights spread over the same rows needs; the inverse of each mean is made once."""

    def __init__(self, head: Head, candidates: Candidates, spread: tuple[Spread, ...]) -> None:
        self.head, self.candidates, self.spread = head, candidates, spread
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        return {"head": self.head, "candidates": self.candidates, "spread": self.spread}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.made: dict[PositiveMean, SharedRivals] = {}
        self.one_at_a_time = Lock()

    def rivals_of(self, mean: PositiveMean) -> SharedRivals:
        with self.one_at_a_time:
            if mean not in self.made:
                rows = self.candidates.rows[mean.rivals]
                self.made[mean] = SharedRivals(self.head, rows, mean.shares[: len(mean.rivals)])
            return self.made[mean]


def never_by_spread(head: Head, candidates: Candidates, proposals: Proposals) -> Int[np.ndarray, " proven"]:
    """The candidates proven never to win by weights spread over the same rows for all of them (`SharedRivals`)."""
    shared = SpreadClaims(head, candidates, proposals.spread)
    parts = [(k, *s) for k, found in enumerate(proposals.spread) for s in spans(len(found.labels), LABELS)]
    key = (head.digest, proposals.labels, proposals.stage, proposals.margin)
    return np.concatenate([np.zeros(0, np.int64), *run("proofs of many", _spread_block, shared, parts, key=key)])


def _spread_block(shared: SpreadClaims, at: tuple[int, int, int]) -> Int[np.ndarray, " proven"]:
    """The candidates of one block that are proven never to win."""
    found, part = shared.spread[at[0]], slice(*at[1:])
    labels, own = shared.candidates.rows[found.labels[part]], shared.candidates.rows[found.own[part]]
    with one_blas_thread():
        good = shared.rivals_of(found.mean).never_above(labels, found.weights(part), own, found.own_weights[part])
    return found.labels[part][good]


def proven_never(
    head: Head, candidates: Candidates, proposals: Proposals, places: Int[np.ndarray, " never"]
) -> Iterator[tuple[NeverWins, int, bool]]:
    """The proofs that candidates never win, their places among the proposals, and whether `verify` accepts them."""
    shared = Claims(head, candidates, replace(proposals, inputs={}, _polished={}))
    blocks = [places[a:b] for a, b in spans(len(places), NEVERS)]
    key = (head.digest, proposals.labels, proposals.stage, proposals.margin)
    for block, found in zip(blocks, run("proofs", _never_block, shared, blocks, key=key, wide=True), strict=True):
        rivals, weights = (np.split(a, np.cumsum(found[0])[:-1]) for a in found[1:3])
        for place, r, w, good in zip(block.tolist(), rivals, weights, found[3].tolist(), strict=True):
            label = int(candidates.rows[proposals.labels[place]])
            yield NeverWins(head.digest, label, r, w), place, good


def _never_block(shared: Claims, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """How many rivals each label has, all rivals, all weights, and which proofs are good."""
    head, proposals = shared.head, shared.proposals
    head.digest  # noqa: B018  computed once, before threads ask for it
    head.equals(0)
    which = proposals.labels[places].tolist()
    claims = in_threads(lambda c: never_claim(head, shared.candidates, proposals, int(c)), which)
    refused = verify_all(head, claims).refused
    good = np.array([k not in refused for k in range(len(claims))], bool)
    rivals, weights = np.concatenate([c.rivals for c in claims]), np.concatenate([c.weights for c in claims])
    return np.array([len(c.rivals) for c in claims], np.int64), rivals, weights, good


def margins_of_wins(
    head: Head, candidates: Candidates, proposals: Proposals, labels: Int[np.ndarray, " labels"]
) -> Float[np.ndarray, " labels"]:
    """By how much labels win at their inputs, a proven lower bound; 0 where no input of floats shows it."""
    shared = Claims(head, candidates, replace(proposals, combined={}, spread=(), _polished={}))
    key = (head.digest, proposals.labels, proposals.stage, proposals.margin)
    parts = run("margins", _margin_block, shared, [labels[a:b] for a, b in spans(len(labels), WINNERS)], key=key)
    return np.concatenate([np.zeros(0), *parts])


def _margin_block(shared: Claims, labels: np.ndarray) -> Float[np.ndarray, " labels"]:
    head, candidates = shared.head, shared.candidates
    made = [win_claim(head, candidates, shared.proposals, int(candidates.place[i]), i) for i in labels.tolist()]
    return np.nan_to_num(verify_all(head, made).bounds, nan=0.0, posinf=np.inf)
