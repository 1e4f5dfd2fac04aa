"""Which pairs of labels can share the top, strictly above all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gonio.ask.loop import first_verified
from gonio.ask.verdict import Verdict
from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.readable_label import quoted
from gonio.core.status import NEVER, UNDECIDED, WINS, Answer, statuses
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import Certificate, NeverTies, Ties, Undecided
from gonio.search.proposals import STAGE, STAGES
from gonio.search.tie_program import STEPS, BothSides, claims_about, longest_row, why_open
from gonio.search.tie_search import TieProposals, propose_ties
from gonio.similarity.nearest import nearest_by_cosine

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PROGRAMS = 2000  # undecided pairs that are put to one program each
VACUOUS = 2.9  # from d about 3 log n on nearly every pair of a random head can tie


@dataclass(frozen=True, eq=False, repr=False)
class CanTie:
    """Every pair asked about: can the two share the top?

    pairs     label indices, one pair a row; the columns below have one entry each
    status    what is known of each, as a `Status` whose value is a sentence
    margin    how far a tie is above all others, a proven lower bound; 0 for pairs that cannot tie; for undecided ones
              about the most it can be, or infinity
    note      how informative the question is at this width
    """

    head: Head
    pairs: Int[np.ndarray, "pairs two"]
    codes: Int[np.ndarray, " pairs"]
    margin: Float[np.ndarray, " pairs"]
    note: str
    interrupted: bool
    _stage: Int[np.ndarray, " pairs"]
    _proposals: TieProposals
    _proofs: dict[int, Certificate] = field(default_factory=dict)

    @property
    def status(self) -> np.ndarray:
        return statuses(self.codes)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """yes, no or undecided for each pair."""
        return tuple(s.answer for s in self.status)

    @property
    def stage(self) -> tuple[str, ...]:
        """What settled each pair."""
        return tuple(STAGES[k] for k in self._stage)

    @property
    def share(self) -> float:
        """The share of decided pairs that can tie."""
        decided = self.codes != UNDECIDED
        return float((self.codes[decided] == WINS).mean()) if decided.any() else float("nan")

    def certificate(self, k: int) -> Certificate:
        """The proof of pair number k."""
        if k not in self._proofs:
            stopped = self._proposals.interrupted
            why = "the search was stopped" if stopped else "the search left it open; ask about this pair alone"
            self._proofs[k] = Undecided(self.head.digest, int(self.pairs[k, 0]), np.inf, why)
        return self._proofs[k]

    def columns(self) -> dict[str, list[Any]]:
        """The result as columns, one entry a pair."""
        first, second = self.pairs.T
        return {
            "first": [self.head.labels[i] for i in first],
            "second": [self.head.labels[i] for i in second],
            "can_tie": list(self.answers),
            "margin": [float(m) for m in self.margin],
            "stage": list(self.stage),
        }

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        yes, no, rest = (int((self.codes == s).sum()) for s in (WINS, NEVER, UNDECIDED))
        return f"CanTie({len(self):,} pairs: {yes:,} can tie, {no:,} cannot, {rest:,} undecided)\n  {self.note}"


@overload
def can_tie(head: Head, a: Label, b: Label, *, on_progress: Callable | None = None) -> Verdict: ...
@overload
def can_tie(
    head: Head, *, pairs: Any = None, nearest: int | None = None, on_progress: Callable | None = None
) -> CanTie: ...
def can_tie(
    head: Head,
    a: Label | None = None,
    b: Label | None = None,
    *,
    pairs: Any = None,
    nearest: int | None = None,
    on_progress: Callable | None = None,
) -> Verdict | CanTie:
    """Can two labels share the top, both strictly above all others?

    a and b can tie  iff  some input x has  score_a(x) = score_b(x) > score_j(x)  for all other j. Over all inputs and
    without bias: iff the segment from w_a to w_b is an edge of the hull of the rows.

    Give one pair (a, b), or `pairs` (a sequence of pairs), or `nearest=k`: every label with each of its k nearest
    neighbours by cosine. For large d almost every pair can tie, and the answer says so.

    >>> square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1]], link="softmax")
    >>> can_tie(square, 0, 1).answer, can_tie(square, 0, 3).answer
    ('yes', 'no')

    Claims: NG26.edge
    """
    head.must_score("can_tie")
    if head.link == "cosine":
        raise GonioError("can_tie: the link is cosine, whose rows are compared with each other; ask about cosines.")
    given = [x is not None for x in (a if b is None else (a, b), pairs, nearest)]
    if sum(given) != 1 or (a is None) != (b is None):
        raise GonioError("can_tie: give two labels, or pairs=, or nearest=; one of the three.")
    if head.shape[0] < 2:
        raise GonioError("can_tie: the head has one label; a tie needs two.")
    if pairs is not None:
        asked = _indices(head, pairs)
    elif nearest is not None:
        near, _ = nearest_by_cosine(head.rows, nearest)
        asked = np.column_stack([np.repeat(np.arange(len(near)), near.shape[1]), near.reshape(-1)])
        asked = np.unique(np.sort(asked, axis=1), axis=0)  # a pair found from both sides is asked once
    else:
        asked = _indices(head, [(a, b)])
    problem = head.inputs.reduce(head.W, head.bias, differences=True)
    found = propose_ties(problem, asked, on_progress=on_progress)
    status = found.status.copy()
    proofs: dict[int, Certificate] = {}
    nevers = np.flatnonzero(status == NEVER)
    proofs |= _verified(head, {int(k): _never(head, found, int(k)) for k in nevers})
    proofs |= _ties(head, found, np.flatnonzero(status == WINS))
    status[[k for k in np.flatnonzero(status != UNDECIDED) if k not in proofs]] = UNDECIDED
    margin = np.where(status == WINS, found.margin, np.where(status == NEVER, 0.0, np.inf))
    stage = np.where(status == UNDECIDED, STAGE["open"], found.stage)
    for k in np.flatnonzero(status == UNDECIDED)[: 0 if found.interrupted else PROGRAMS]:
        proof, value = first_verified(head, claims_about(head, problem, int(asked[k, 0]), int(asked[k, 1])))
        margin[k] = 0.0 if isinstance(proof, NeverTies) else value
        if proof is not None:
            status[k], proofs[int(k)] = (WINS if isinstance(proof, Ties) else NEVER), proof
            stage[k] = STAGE["points" if head.inputs.points is not None else "program"]
        else:
            proofs[int(k)] = Undecided(head.digest, int(asked[k, 0]), float(margin[k]), why_open(problem))
    for x in (status, margin, stage):
        x.flags.writeable = False
    result = CanTie(head, found.pairs, status, margin, _note(head), found.interrupted, stage, found, proofs)
    if a is None:
        return result
    names = [head.labels[i] for i in asked[0]]
    question = f"can {quoted(names[0])} and {quoted(names[1])} share the top?"
    return Verdict(head, question, result.answers[0], result.certificate(0), float(margin[0]), result.note)


def _indices(head: Head, pairs: Any) -> np.ndarray:
    out = []
    for pair in checks.listed(pairs, "can_tie", "pairs of labels"):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise GonioError(f"can_tie: {pair!r} is not a pair of labels.")
        i, j = head.index(pair[0]), head.index(pair[1])
        if i == j:
            raise GonioError(f"can_tie: {quoted(head.labels[i])} is one label; a tie needs two.")
        out.append((i, j))
    if not out:
        raise GonioError("can_tie: no pair was given.")
    return np.array(out, dtype=np.int64)


def _note(head: Head) -> str:
    n, d = head.shape
    if d < VACUOUS * np.log(max(n, 2)):
        return f"at width {d} for {n:,} labels a tie is a real restriction"
    return (
        f"at width {d} for {n:,} labels almost every two labels that can win can also tie, so a yes says little; how "
        f"alike two labels are used is told by the correlation of their centred logits over your inputs"
    )


def _never(head: Head, found: TieProposals, k: int) -> Certificate:
    a, b = (int(i) for i in found.pairs[k])
    rivals, weights, both = found.support(k)
    if head.inputs.points is not None:
        return NeverTies(head.digest, a, b, rivals[:0], weights[:0], np.zeros(0))
    return NeverTies(head.digest, a, b, rivals, weights, np.array(both))


def _ties(head: Head, found: TieProposals, which: np.ndarray) -> dict[int, Certificate]:
    """The proposed ties that two inputs around each prove; all of them are looked at together, nearer and nearer."""
    problem = found.ground.problem
    pairs = {int(k): (int(found.pairs[k, 0]), int(found.pairs[k, 1])) for k in which}
    if problem.shape == "points":
        return _verified(head, {k: Ties(head.digest, *ab, (z := found.direction(k)), z) for k, ab in pairs.items()})
    if not pairs:
        return {}
    longest = longest_row(problem)
    sides = {
        k: BothSides.of(problem, found.direction(k), float(found.margin[k]), *ab, longest) for k, ab in pairs.items()
    }
    proofs: dict[int, Certificate] = {}
    for size in range(STEPS):
        left = [k for k in pairs if k not in proofs and (size == 0 or sides[k].step.any())]
        proofs |= _verified(head, {k: Ties(head.digest, *pairs[k], *sides[k].at(size)) for k in left})
    return proofs


def _verified(head: Head, claims: dict[int, Certificate]) -> dict[int, Certificate]:
    """Those that `verify` accepts."""
    refused = verify_all(head, list(claims.values())).refused if claims else {}
    return {k: c for j, (k, c) in enumerate(claims.items()) if j not in refused}
