"""Which labels can win: the solver proposes, the certificate disposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from threadpoolctl import threadpool_limits

from gonio.errors import GonioError
from gonio.head import Head, Label
from gonio.inputs import Observed, Problem
from gonio.parallel import in_threads
from gonio.regions import linear
from gonio.regions.bulk import verify_all
from gonio.regions.certificate import Certificate, CertificateError, NeverWins, Undecided, Wins
from gonio.regions.margins import lifted
from gonio.regions.proposals import NEVER, STAGES, UNDECIDED, WINS, Proposals
from gonio.regions.propose import propose

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Answer = Literal["yes", "no", "undecided"]
PROGRAMS = 64  # labels left open that are put to exact arithmetic and a linear program, one each
ANSWERS: dict[int, Answer] = {WINS: "yes", NEVER: "no", UNDECIDED: "undecided"}


@dataclass(frozen=True, eq=False)
class Verdict:
    """One question, one answer, and its proof."""

    head: Head
    question: str
    answer: Answer
    certificate: Certificate
    margin: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The verdict in plain values."""
        proof = self.certificate.to_dict()
        return {
            "question": self.question,
            "answer": self.answer,
            "margin": self.margin,
            "note": self.note,
            "proof": proof,
        }

    def __repr__(self) -> str:
        return f"{self.question} {self.answer}{'; ' + self.note if self.note else ''}\n  {self.certificate!r}".rstrip()


@dataclass(frozen=True, eq=False, repr=False)
class CanWin:
    """Every label asked about: can it win?

    labels               the labels asked about, in order; the columns below have one entry each
    wins, never, undecided   label indices
    twins                groups of labels with equal row and bias: all in `never`, though argmax returns one of them
    margin               by how much a label wins at its witness (a proven lower bound); for an undecided one a proven
                         upper bound, or infinity; 0 for those that never win
    stage                which stage of the search settled it
    interrupted          the search was stopped: what had been decided by then is here
    """

    head: Head
    labels: Int[np.ndarray, " asked"]
    status: Int[np.ndarray, " asked"]
    margin: Float[np.ndarray, " asked"]
    twins: tuple[Int[np.ndarray, " members"], ...]
    interrupted: bool
    _stage: Int[np.ndarray, " asked"]
    _proposals: Proposals
    _proofs: dict[int, Certificate] = field(default_factory=dict)

    @property
    def wins(self) -> Int[np.ndarray, " wins"]:
        """The labels that can win."""
        return self.labels[self.status == WINS]

    @property
    def never(self) -> Int[np.ndarray, " never"]:
        """The labels that never win, whatever the input."""
        return self.labels[self.status == NEVER]

    @property
    def undecided(self) -> Int[np.ndarray, " undecided"]:
        """The labels of which neither is proven."""
        return self.labels[self.status == UNDECIDED]

    @property
    def stage(self) -> tuple[str, ...]:
        return tuple(STAGES[k] for k in self._stage)

    def certificate(self, label: Label) -> Certificate:
        """The proof of one label's verdict."""
        i = self.head.index(label)
        if i not in self._proofs:
            self._proofs[i] = _proof(self.head, self._proposals, i, self.status[self._proposals.position(i)])
        return self._proofs[i]

    def certificates(self, *, undecided: bool = True) -> Iterator[Certificate]:
        """The proofs of all labels, in order."""
        for i, status in zip(self.labels, self.status, strict=True):
            if undecided or status != UNDECIDED:
                yield self.certificate(int(i))

    def reason(self, label: Label) -> str:
        """In words, why a label never wins."""
        i = self.head.index(label)
        k = self._proposals.position(i)
        if self.status[k] != NEVER:
            return ""
        if STAGES[self._stage[k]] == "twin":
            group = next(g for g in self.twins if i in g)
            other = int(group[group != i][0])
            return f"twin of {self.head.labels[other]!r}: argmax returns one of them"
        if STAGES[self._stage[k]] == "dominated":
            certificate = self.certificate(i)
            assert isinstance(certificate, NeverWins)
            return f"the same row as {self.head.labels[int(certificate.rivals[0])]!r}, with a lower bias"
        return (
            "below a mean of rivals everywhere" if not isinstance(self.head.inputs, Observed) else "beaten everywhere"
        )

    def columns(self) -> dict[str, list[Any]]:
        """The result as columns, one entry a label."""
        return {
            "index": self.labels.tolist(),
            "label": [self.head.labels[i] for i in self.labels],
            "can_win": [ANSWERS[int(s)] for s in self.status],
            "margin": [float(m) for m in self.margin],
            "stage": list(self.stage),
            "norm": [float(x) for x in self.head.norms[self.labels]],
        }

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values."""
        return {
            "head": self.head.digest,
            "asked": len(self.labels),
            "wins": len(self.wins),
            "never": self.never.tolist(),
            "undecided": self.undecided.tolist(),
            "twins": [g.tolist() for g in self.twins],
            "interrupted": self.interrupted,
        }

    def __repr__(self) -> str:
        stopped = ", interrupted" if self.interrupted else ""
        return (
            f"CanWin({len(self.labels):,} labels over {self.head.inputs}{stopped})\n"
            f"  {len(self.wins):,} can win, {len(self.never):,} never win, {len(self.undecided):,} undecided"
        )


@overload
def can_win(head: Head, label: Label, *, on_progress: Callable | None = None) -> Verdict: ...
@overload
def can_win(
    head: Head, label: Sequence[Label] | np.ndarray | None = None, *, on_progress: Callable | None = None
) -> CanWin: ...
def can_win(head: Head, label: Any = None, *, on_progress: Callable | None = None) -> Verdict | CanWin:
    """Which labels can ever be strictly above all others, with proofs.

    Label i can win  iff  some input x of the head has  (w_i - w_j).x + b_i - b_j > 0  for all j != i.

    Given one label, a verdict with its certificate; given several or none (all), columns. A label that wins has an
    input at which it does; one that never does, rivals whose weighted mean is nowhere below it, which `verify` has
    accepted; of the rest nothing is proven but a bound. A soft-cap changes nothing; for the link sigmoid the winner
    is the label of the largest score.

    >>> square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1], [0.1, 0.2]], link="softmax")
    >>> can_win(square).never
    array([4])

    Claims: GRIV22.argmax
    """
    if head.link == "cosine":
        raise GonioError(
            "can_win: the link is cosine, for which a row wins at itself unless another has its direction."
        )
    single = label is not None and (isinstance(label, (str, int, np.integer)) and not isinstance(label, bool))
    if label is None:
        asked = np.arange(head.shape[0])
    else:
        several: Any = [label] if single else label
        asked = np.array([head.index(x) for x in several], dtype=np.int64)
        if not len(asked):
            raise GonioError("can_win: no label was named; name some, or none at all to ask about every label.")
        if len(np.unique(asked)) != len(asked):
            raise GonioError("can_win: a label is named twice; name each once.")
    problem = head.inputs.reduce(head.W, head.bias)
    proposals = propose(problem, labels=None if label is None else asked, on_progress=on_progress)
    status = proposals.status.copy()
    proofs: dict[int, Certificate] = {}
    # The solver proposes "never", verify disposes: what it does not accept in exact terms stays undecided.
    never = [int(i) for i in asked[status == NEVER]]
    claims = _claims(head, proposals, never)
    seen = verify_all(head, claims)
    for k, i in enumerate(never):
        if k in seen.refused:
            status[proposals.position(i)] = UNDECIDED
        else:
            proofs[i] = claims[k]
    margin = np.where(status == proposals.status, proposals.margin, np.where(status == NEVER, 0.0, np.inf))
    # And what is still open, exact arithmetic may settle on the nearest combination found, or one linear program.
    for k in np.flatnonzero(status == UNDECIDED)[: 0 if proposals.interrupted else PROGRAMS]:
        for claim in _more_claims(head, problem, proposals, int(asked[k])):
            try:
                value = claim.verify(head)
            except CertificateError:
                continue
            status[k], margin[k] = (WINS, value) if isinstance(claim, Wins) else (NEVER, 0.0)
            proofs[int(asked[k])] = claim
            break
    for a in (status, margin):
        a.flags.writeable = False
    result = CanWin(
        head,
        proposals.labels,
        status,
        margin,
        proposals.twins,
        proposals.interrupted,
        proposals.stage,
        proposals,
        proofs,
    )
    if not single:
        return result
    i = int(asked[0])
    certificate = result.certificate(i)
    margin_ = certificate.verify(head) if isinstance(certificate, Wins) else float(result.margin[0])
    question = f"can {head.labels[i]!r} win?"
    return Verdict(head, question, ANSWERS[int(status[0])], certificate, margin_, result.reason(i))


def _claims(head: Head, proposals: Proposals, labels: list[int]) -> list[Certificate]:
    """The proofs that labels never win, a thread each: they are many small matrices."""
    head.digest  # noqa: B018  computed once, before threads ask for it
    with threadpool_limits(1, "blas"):
        return in_threads(lambda i: _never(head, proposals, i), labels)


def _more_claims(head: Head, problem: Problem, proposals: Proposals, label: int) -> Iterator[Certificate]:
    """What might prove a label that the search left open, cheapest first."""
    if proposals.status[proposals.position(label)] != WINS:
        yield _never(head, proposals, label)
    if linear.can_pose(problem):
        answer = linear.solve(problem, label)
        if answer is not None and answer.z is not None:
            yield Wins(head.digest, label, lifted(head.inputs, answer.z))
        elif answer is not None:
            yield NeverWins(head.digest, label, answer.rivals, answer.weights)


def _never(head: Head, proposals: Proposals, label: int) -> NeverWins:
    rivals, weights = proposals.support(label)
    if isinstance(head.inputs, Observed):
        rivals, weights = rivals[:0], weights[:0]
    return NeverWins(head.digest, label, rivals, weights)


def _proof(head: Head, proposals: Proposals, label: int, status: int) -> Certificate:
    if status == WINS:
        return Wins(head.digest, label, lifted(head.inputs, proposals.direction(label)))
    if status == NEVER:
        return _never(head, proposals, label)
    why = "the search was stopped" if proposals.interrupted else "the label is on the edge between winning and not"
    if proposals.status[proposals.position(label)] == WINS:
        return Undecided(head.digest, label, np.inf, why)
    return Undecided.nearest(head, label, why, *proposals.support(label))
