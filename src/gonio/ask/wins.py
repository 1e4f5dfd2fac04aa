"""Which labels can win: the solver proposes, the certificate disposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from threadpoolctl import threadpool_limits

from gonio.ask.candidates import Candidates, candidates_of
from gonio.ask.surface import Surface, surface_of
from gonio.ask.verdict import Answer, Verdict
from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.inputs import Observed, Problem
from gonio.core.parallel import in_threads
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import Certificate, CertificateError, NeverWins, Undecided, Wins
from gonio.proofs.margins import lifted
from gonio.search import linear
from gonio.search.proposals import NEVER, STAGES, UNDECIDED, WINS, Proposals
from gonio.search.propose import propose

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PROGRAMS = 64  # labels left open that are put to exact arithmetic and a linear program, one each
SHARED = 3  # a label that reaches the top only together with its equals, beside WINS, NEVER and UNDECIDED
ANSWERS: dict[int, Answer] = {WINS: "yes", SHARED: "yes", NEVER: "no", UNDECIDED: "undecided"}


@dataclass(frozen=True, eq=False)
class Twins:
    """Labels whose scores are equal at every input: one candidate.

    labels       the members, in order
    can_be_top   whether some input puts the group strictly above all other labels
    """

    labels: Int[np.ndarray, " members"]
    can_be_top: Answer

    def __len__(self) -> int:
        return len(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """In plain values."""
        return {"labels": self.labels.tolist(), "can_be_top": self.can_be_top}


@dataclass(frozen=True, eq=False, repr=False)
class CanWin:
    """Every label asked about: can it win?

    labels               the labels asked about, in order; the columns below have one entry each
    wins, never, shared, undecided   label indices, disjoint, all labels asked about in one of them
    shared               labels that can reach the top, but only together with their equals (twins)
    twins                groups of labels with equal scores everywhere, each with whether it can reach the top
    margin               by how much a label wins at its witness, a proven lower bound (one product for all of them);
                         for an undecided one a proven upper bound, or infinity; 0 for those that never win
    stage                which stage of the search settled it
    interrupted          the search was stopped: what had been decided by then is here
    """

    head: Head
    labels: Int[np.ndarray, " asked"]
    status: Int[np.ndarray, " asked"]
    interrupted: bool
    _bound: Float[np.ndarray, " asked"]
    _candidates: Candidates
    _proposals: Proposals
    _proofs: dict[int, Certificate] = field(default_factory=dict)

    @property
    def wins(self) -> Int[np.ndarray, " wins"]:
        """The labels that can win by themselves."""
        return self.labels[self.status == WINS]

    @property
    def never(self) -> Int[np.ndarray, " never"]:
        """The labels that never reach the top, not even together with their equals, whatever the input."""
        return self.labels[self.status == NEVER]

    @property
    def shared(self) -> Int[np.ndarray, " shared"]:
        """The labels that can reach the top only together with others whose scores are equal everywhere."""
        return self.labels[self.status == SHARED]

    @property
    def undecided(self) -> Int[np.ndarray, " undecided"]:
        """The labels of which neither is proven."""
        return self.labels[self.status == UNDECIDED]

    @property
    def tops(self) -> Int[np.ndarray, " tops"]:
        """The labels that can reach the top, alone or with their equals."""
        return self.labels[(self.status == WINS) | (self.status == SHARED)]

    @cached_property
    def twins(self) -> tuple[Twins, ...]:
        """The groups of equal labels of which one was asked about, by first member."""
        status = dict(zip(self.labels.tolist(), self.status.tolist(), strict=True))
        asked = ((g, [status[i] for i in g.tolist() if i in status]) for g in self.head.twins)
        return tuple(Twins(g, ANSWERS[found[0]]) for g, found in asked if found)

    @property
    def stage(self) -> tuple[str, ...]:
        return tuple(STAGES[k] for k in self._proposals.stage[self._places])

    @cached_property
    def _places(self) -> np.ndarray:
        """Where the candidate of each label stands among the proposals."""
        where = np.zeros(len(self._candidates.rows), np.int64)
        where[self._proposals.labels] = np.arange(len(self._proposals.labels))
        return where[self._candidates.place[self.labels]]

    @cached_property
    def margin(self) -> Float[np.ndarray, " asked"]:
        out = self._bound.copy()
        first = {int(c): k for k, c in reversed(list(enumerate(self._candidates.place[self.labels])))}
        top = [k for k in first.values() if self.status[k] in (WINS, SHARED)]
        seen = verify_all(self.head, [self.certificate(int(self.labels[k])) for k in top])
        of = dict(zip((int(self._candidates.place[self.labels[k]]) for k in top), seen.bounds, strict=True))
        for k in np.flatnonzero((self.status == WINS) | (self.status == SHARED)):
            proven = of[int(self._candidates.place[self.labels[k]])]
            out[k] = out[k] if np.isnan(proven) else max(float(proven), float(out[k]))
        out.flags.writeable = False
        return out

    @cached_property
    def surface(self) -> Surface:
        """After a norm: how far out, as a share of the largest length, each label that reaches the top does so."""
        inputs = {int(i): self.certificate(int(i)) for i in self.tops}
        return surface_of(self.head, self._candidates, {i: c.x for i, c in inputs.items() if isinstance(c, Wins)})

    def certificate(self, label: Label) -> Certificate:
        """The proof of one label's verdict."""
        i = self.head.index(label)
        if i not in self._proofs:
            at = np.flatnonzero(self.labels == i)
            if not len(at):
                raise GonioError(f"can_win: label {i} was not asked about; ask for it, or for all labels.")
            self._proofs[i] = _proof(self.head, self._candidates, self._proposals, i, int(self.status[at[0]]))
        return self._proofs[i]

    def certificates(self, *, undecided: bool = True) -> Iterator[Certificate]:
        """The proofs of all labels, in order."""
        for i, status in zip(self.labels, self.status, strict=True):
            if undecided or status != UNDECIDED:
                yield self.certificate(int(i))

    def reason(self, label: Label) -> str:
        """In words, why a label never wins, or with whom it shares the top."""
        i = self.head.index(label)
        k = int(np.flatnonzero(self.labels == i)[0])
        if self.status[k] == SHARED:
            others = [repr(self.head.labels[j]) for j in self.head.equals(i)]
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            return f"only together with {', '.join(others[:3])}{more}, whose scores are equal everywhere"
        if self.status[k] != NEVER:
            return ""
        if self.stage[k] == "dominated":
            certificate = self.certificate(i)
            assert isinstance(certificate, NeverWins)
            return f"the same row as {self.head.labels[int(certificate.rivals[0])]!r}, with a lower bias"
        if isinstance(self.head.inputs, Observed):
            return "at each of the observed embeddings another label is not below it"
        return "at every input some mean of the others is not below it"

    def columns(self) -> dict[str, list[Any]]:
        """The result as columns, one entry a label."""
        words: dict[int, str] = ANSWERS | {SHARED: "with equals"}  # type: ignore[operator]
        return {
            "index": self.labels.tolist(),
            "label": [self.head.labels[i] for i in self.labels],
            "can_win": [words[int(s)] for s in self.status],
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
            "shared": self.shared.tolist(),
            "undecided": self.undecided.tolist(),
            "twins": [g.to_dict() for g in self.twins],
            "interrupted": self.interrupted,
        }

    def __repr__(self) -> str:
        stopped = ", interrupted" if self.interrupted else ""
        shared = f"{len(self.shared):,} only with equals, " if len(self.shared) else ""
        return (
            f"CanWin({len(self.labels):,} labels over {self.head.inputs}{stopped})\n"
            f"  {len(self.wins):,} can win, {shared}{len(self.never):,} never win, {len(self.undecided):,} undecided"
        )


@overload
def can_win(head: Head, label: Label, *, on_progress: Callable | None = None) -> Verdict: ...
@overload
def can_win(
    head: Head, label: Sequence[Label] | np.ndarray | None = None, *, on_progress: Callable | None = None
) -> CanWin: ...
def can_win(head: Head, label: Any = None, *, on_progress: Callable | None = None) -> Verdict | CanWin:
    """Which labels can ever be strictly above all others, with proofs.

    Label i can win  iff  some input x has  (w_i - w_j).x + b_i - b_j > 0  for all labels j that are not its equals.

    Labels whose scores are equal at every input are one candidate: they reach the top together or never.

    Given one label, a verdict with its certificate; given several or none (all), columns. A label that wins has an
    input at which it does; one that never does, rivals whose weighted mean is nowhere below it, which `verify` has
    accepted; of the rest nothing is proven but a bound. A soft-cap changes nothing; for the link sigmoid the winner
    is the label of the largest score.

    >>> square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1], [0.1, 0.2]], link="softmax")
    >>> can_win(square).never
    array([4])

    Claims: GRIV22.argmax
    """
    head.must_score("can_win")
    if head.link == "cosine":
        raise GonioError(
            "can_win: the link is cosine, for which a row wins at itself unless another has its direction."
        )
    single = label is not None and (isinstance(label, (str, int, np.integer)) and not isinstance(label, bool))
    asked = _asked(head, [label] if single else label)
    candidates = candidates_of(head)
    problem = candidates.reduced(head.inputs.reduce(head.W, head.bias))
    places = candidates.place[asked]
    proposals = propose(problem, labels=None if label is None else np.unique(places), on_progress=on_progress)
    status, bound, proofs = _disposed(head, candidates, problem, proposals)
    at = np.searchsorted(proposals.labels, places)
    status, bound = status[at], bound[at]
    status[(status == WINS) & candidates.repeated[places]] = SHARED
    for a in (status, bound):
        a.flags.writeable = False
    result = CanWin(head, asked, status, proposals.interrupted, bound, candidates, proposals, proofs)
    if not single:
        return result
    i = int(asked[0])
    certificate = result.certificate(i)
    margin = certificate.verify(head) if isinstance(certificate, Wins) else float(bound[0])
    question = f"can {head.labels[i]!r} win?"
    return Verdict(head, question, ANSWERS[int(status[0])], certificate, margin, result.reason(i))


def _asked(head: Head, several: Any) -> np.ndarray:
    if several is None:
        return np.arange(head.shape[0])
    asked = np.array([head.index(x) for x in several], dtype=np.int64)
    if not len(asked):
        raise GonioError("can_win: no label was named; name some, or none at all to ask about every label.")
    if len(np.unique(asked)) != len(asked):
        raise GonioError("can_win: a label is named twice; name each once.")
    return asked


def _disposed(
    head: Head, candidates: Candidates, problem: Problem, proposals: Proposals
) -> tuple[np.ndarray, np.ndarray, dict[int, Certificate]]:
    """Status and bound of each candidate asked about, and the proofs made on the way, by label.

    The solver proposes "never", `verify` disposes: what it does not accept stays undecided. And what is open, exact
    arithmetic may settle on the nearest combination found, or one linear program.
    """
    status = proposals.status.copy()
    proofs: dict[int, Certificate] = {}
    never = np.flatnonzero(status == NEVER)
    claims = _claims(head, candidates, proposals, proposals.labels[never])
    refused = verify_all(head, claims).refused
    for k, (at, claim) in enumerate(zip(never, claims, strict=True)):
        if k in refused:
            status[at] = UNDECIDED
        else:
            proofs[claim.label] = claim
    bound = np.where(status == proposals.status, proposals.margin, np.where(status == NEVER, 0.0, np.inf))
    for at in np.flatnonzero(status == UNDECIDED)[: 0 if proposals.interrupted else PROGRAMS]:
        for claim in _more_claims(head, candidates, problem, proposals, int(proposals.labels[at])):
            try:
                value = claim.verify(head)
            except CertificateError:
                continue
            status[at], bound[at] = (WINS, value) if isinstance(claim, Wins) else (NEVER, 0.0)
            proofs[claim.label] = claim
            break
    return status, bound, proofs


def _claims(head: Head, candidates: Candidates, proposals: Proposals, which: np.ndarray) -> list[NeverWins]:
    """The proofs that candidates never win, a thread each: they are many small matrices."""
    head.digest  # noqa: B018  computed once, before threads ask for it
    head.equals(0)
    with threadpool_limits(1, "blas"):
        return in_threads(lambda c: _never(head, candidates, proposals, int(c)), which.tolist())


def _more_claims(
    head: Head, candidates: Candidates, problem: Problem, proposals: Proposals, which: int
) -> Iterator[Wins | NeverWins]:
    """What might prove a candidate that the search left open, cheapest first."""
    label = int(candidates.rows[which])
    if proposals.status[proposals.position(which)] != WINS:
        yield _never(head, candidates, proposals, which)
    if linear.can_pose(problem):
        answer = linear.solve(problem, which)
        if answer is not None and answer.z is not None:
            yield Wins(head.digest, label, lifted(head.inputs, answer.z), head.equals(label))
        elif answer is not None:
            yield NeverWins(head.digest, label, candidates.rows[answer.rivals], answer.weights)


def _never(head: Head, candidates: Candidates, proposals: Proposals, which: int) -> NeverWins:
    rivals, weights = proposals.support(which)
    if isinstance(head.inputs, Observed):
        rivals, weights = rivals[:0], weights[:0]
    return NeverWins(head.digest, int(candidates.rows[which]), candidates.rows[rivals], weights)


def _proof(head: Head, candidates: Candidates, proposals: Proposals, label: int, status: int) -> Certificate:
    which = int(candidates.place[label])
    if status in (WINS, SHARED):
        return Wins(head.digest, label, lifted(head.inputs, proposals.direction(which)), head.equals(label))
    if status == NEVER:
        return replace(_never(head, candidates, proposals, which), label=label)
    why = "the search was stopped" if proposals.interrupted else "the label is on the edge between winning and not"
    if proposals.status[proposals.position(which)] == WINS:
        return Undecided(head.digest, label, np.inf, why)
    rivals, weights = proposals.support(which)
    return Undecided.nearest(head, label, why, candidates.rows[rivals], weights)
