"""Which pairs of labels can share the top, strictly above all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gonio.errors import GonioError
from gonio.head import Head, Label
from gonio.inputs import Observed, Problem
from gonio.nearest import nearest_by_cosine
from gonio.regions import ball_program, linear, observed
from gonio.regions.bulk import verify_all
from gonio.regions.certificate import Certificate, CertificateError, NeverTies, Ties, Undecided
from gonio.regions.proposals import NEVER, STAGE, STAGES, UNDECIDED, WINS
from gonio.regions.ties import TieProposals, propose_ties
from gonio.regions.win import ANSWERS, Verdict

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PROGRAMS = 2000  # undecided pairs that are put to one program each
RIVALS = 64  # of a pair that a program over a ball takes in at a time
STEPS = 8  # sizes of the way from one side of a tie to the other that are tried
VACUOUS = 2.9  # from d about 3 log n on nearly every pair of a random head can tie (FACTS 1.7: n = 60, d = 12: 97 %)


@dataclass(frozen=True, eq=False, repr=False)
class CanTie:
    """Every pair asked about: can the two share the top?

    pairs     label indices, one pair a row; the columns below have one entry each
    status    1 they can, 2 they cannot, 0 undecided (see `answers`)
    margin    how far a tie is above all others, a proven lower bound; 0 for pairs that cannot tie; for undecided ones
              about the most it can be, or infinity
    note      how informative the question is at this width
    """

    head: Head
    pairs: Int[np.ndarray, "pairs two"]
    status: Int[np.ndarray, " pairs"]
    margin: Float[np.ndarray, " pairs"]
    note: str
    interrupted: bool
    _stage: Int[np.ndarray, " pairs"]
    _proposals: TieProposals
    _proofs: dict[int, Certificate] = field(default_factory=dict)

    @property
    def answers(self) -> tuple[str, ...]:
        """yes, no or undecided for each pair."""
        return tuple(ANSWERS[int(s)] for s in self.status)

    @property
    def stage(self) -> tuple[str, ...]:
        """What settled each pair."""
        return tuple(STAGES[k] for k in self._stage)

    @property
    def share(self) -> float:
        """The share of decided pairs that can tie."""
        decided = self.status != UNDECIDED
        return float((self.status[decided] == WINS).mean()) if decided.any() else float("nan")

    def certificate(self, k: int) -> Certificate:
        """The proof of pair number k."""
        if k not in self._proofs:
            self._proofs[k] = _proof(self.head, self._proposals, k, int(self.status[k]))
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
        yes, no, rest = (int((self.status == s).sum()) for s in (WINS, NEVER, UNDECIDED))
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
    problem = head.inputs.reduce(head.W, head.bias)
    found = propose_ties(problem, asked, on_progress=on_progress)
    status = found.status.copy()
    proofs: dict[int, Certificate] = {}
    decided = np.flatnonzero(status != UNDECIDED)
    claims = [_proof(head, found, int(k), int(status[k])) for k in decided]
    seen = verify_all(head, claims)
    for j, k in enumerate(decided):
        if j in seen.refused:
            status[k] = UNDECIDED
        else:
            proofs[int(k)] = claims[j]
    margin = np.where(status == WINS, found.margin, np.where(status == NEVER, 0.0, np.inf))
    stage = np.where(status == UNDECIDED, STAGE["open"], found.stage)
    for k in np.flatnonzero(status == UNDECIDED)[: 0 if found.interrupted else PROGRAMS]:
        proof, margin[k] = _by_program(head, problem, int(asked[k, 0]), int(asked[k, 1]))
        if proof is not None:
            status[k], proofs[int(k)] = (WINS if isinstance(proof, Ties) else NEVER), proof
            stage[k] = STAGE["points" if isinstance(head.inputs, Observed) else "program"]
        else:
            proofs[int(k)] = Undecided(head.digest, int(asked[k, 0]), float(margin[k]), _why(problem))
    for x in (status, margin, stage):
        x.flags.writeable = False
    result = CanTie(head, found.pairs, status, margin, _note(head), found.interrupted, stage, found, proofs)
    if a is None:
        return result
    names = [head.labels[i] for i in asked[0]]
    question = f"can {names[0]!r} and {names[1]!r} share the top?"
    return Verdict(head, question, ANSWERS[int(status[0])], result.certificate(0), float(margin[0]), result.note)


def _indices(head: Head, pairs: Any) -> np.ndarray:
    out = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise GonioError(f"can_tie: {pair!r} is not a pair of labels.")
        i, j = head.index(pair[0]), head.index(pair[1])
        if i == j:
            raise GonioError(f"can_tie: {head.labels[i]!r} is one label; a tie needs two.")
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


def _proof(head: Head, found: TieProposals, k: int, status: int) -> Certificate:
    a, b = (int(i) for i in found.pairs[k])
    if status == WINS:
        x, y = _both_sides(head, found, k, a, b)
        return Ties(head.digest, a, b, x, y)
    if status == NEVER:
        rivals, weights, both = found.support(k)
        if isinstance(head.inputs, Observed):
            return NeverTies(head.digest, a, b, rivals[:0], weights[:0], np.zeros(0))
        return NeverTies(head.digest, a, b, rivals, weights, np.array(both))
    why = "the search was stopped" if found.interrupted else "the search left it open; ask about this pair alone"
    return Undecided(head.digest, a, np.inf, why)


def _why(problem: Problem) -> str:
    if problem.shape == "ball" or linear.can_pose(problem):
        return "the pair is within rounding of the edge between tying and not"
    return "the search left it open, and the head is too large for a linear program"


def _by_program(head: Head, problem: Problem, a: int, b: int) -> tuple[Certificate | None, float]:
    """A pair that the search left open, put to one program: the proof that verifies, or None; and the margin."""
    bound = np.inf
    for claim, _ in _claims(head, problem, a, b):
        try:
            value = claim.verify(head)
        except CertificateError:
            continue
        return claim, value if isinstance(claim, Ties) else 0.0
    return None, bound


def _claims(head: Head, problem: Problem, a: int, b: int) -> Iterator[tuple[Certificate, float]]:
    """What may prove a pair's verdict, with a bound of the margin where the program gives one."""
    apart = NeverTies(head.digest, a, b, np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    if isinstance(head.inputs, Observed):
        at = observed.tied(head, a, b, np.zeros(0, np.int64))
        yield apart if at is None else Ties(head.digest, a, b, *[head.inputs.F[at].astype(np.float64)] * 2), np.inf
    elif problem.shape == "ball":
        answer = ball_program.solve_tie(problem, partial(_lowest, a, b), a, b)
        if answer is None:
            yield apart, 0.0
            return
        most = max(0.0, answer.most)
        if answer.least > 0:
            yield Ties(head.digest, a, b, *_around(head, problem, answer.z, answer.least, a, b)), most
        both = np.array([1 - answer.share, answer.share])
        yield NeverTies(head.digest, a, b, answer.pairs[:, 1], answer.weights, both), most
        yield apart, most
    elif linear.can_pose(problem):
        yield apart, np.inf
        found = linear.solve(problem, a, b)
        if found is None:
            return
        if found.z is not None:
            scores = problem.V.astype(np.float64) @ found.z + problem.c
            others = np.delete(scores, [a, b])
            margin = float(min(scores[a], scores[b]) - others.max()) if len(others) else np.inf
            yield Ties(head.digest, a, b, *_around(head, problem, found.z, margin, a, b)), margin
        for share in (found.share, -found.share):  # the sign of an equation's multiplier is the solver's convention
            both = np.array([1 - share, share])
            yield NeverTies(head.digest, a, b, found.rivals, found.weights, both), 0.0


def _lowest(a: int, b: int, scores: np.ndarray) -> np.ndarray:
    """The highest rivals of a tie, as the pairs (a, rival)."""
    others = np.delete(np.arange(len(scores) - 1), [a, b])
    if len(others) > RIVALS:
        others = others[np.argpartition(-scores[others], RIVALS)[:RIVALS]]
    return np.column_stack([np.full(len(others), a), others])


def _both_sides(head: Head, found: TieProposals, k: int, a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """Two inputs around the proposed tie: at one a is not below b, at the other b is not below a."""
    problem = found.ground.problem
    z = found.direction(k)
    return (z, z) if problem.shape == "points" else _around(head, problem, z, float(found.margin[k]), a, b)


def _around(
    head: Head, problem: Problem, z: np.ndarray, margin: float, a: int, b: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two inputs around z: at one a is not below b, at the other b is not below a.

    The proposed z has equal scores only up to rounding, so it is moved along +-(V_a - V_b), in the coordinates that
    are free to move, by as little as tells the two apart and as far as the margin over all others allows.
    """
    z, way, room = _free(problem, z, problem.V[a].astype(np.float64) - problem.V[b])
    length = float(np.linalg.norm(way))
    if length == 0:
        return problem.lift(z), problem.lift(z)
    # No lead over a third label shrinks by more than |V_i - V_j| times the step.
    longest = 2 * float(np.sqrt(max((block.astype(np.float64) ** 2).sum(axis=1).max() for block in _blocks(problem))))
    step = min(margin / (4 * longest), room / 2, 0.01 * max(1.0, float(np.abs(z).max())))
    x = y = problem.lift(z)
    for _ in range(STEPS):
        x, y = (problem.lift(z + s * step * way / length) for s in (1, -1))
        try:
            Ties(head.digest, a, b, x, y).verify(head)
        except CertificateError:
            step /= 16
            continue
        break
    return x, y


def _blocks(problem: Problem) -> Iterator[np.ndarray]:
    for start in range(0, len(problem.V), 4096):
        yield problem.V[start : start + 4096]


def _free(problem: Problem, z: np.ndarray, way: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """z with what is on a bound exactly there, the part of `way` in coordinates free to move, and how far they are."""
    if problem.shape == "ball":
        assert problem.radius is not None
        return z, way, problem.radius * (1 - 1e-15) - float(np.linalg.norm(z))
    if problem.shape == "space":
        return z, way, np.inf
    low = np.zeros(len(z)) if problem.low is None else problem.low
    high = np.full(len(z), np.inf) if problem.high is None else problem.high
    near = 1e-12 * np.maximum(1.0, np.abs(z))
    z = np.where(z <= low + near, low, np.where(z >= high - near, high, z))
    free = (z > low) & (z < high)
    room = np.minimum(z - low, high - z)[free & (way != 0)]
    return z, np.where(free, way, 0.0), float(room.min(initial=np.inf))
