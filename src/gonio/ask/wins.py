"""Which labels can win: the search proposes, a certificate or the lemma of own directions proves, `verify` disposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gonio.ask.candidates import Candidates, candidates_of
from gonio.ask.loop import first_verified
from gonio.ask.proof_blocks import margins_of_wins, never_by_spread, never_claim, proven_never, win_claim
from gonio.ask.surface import Surface, surface_of
from gonio.ask.verdict import Verdict
from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head, Label
from gonio.core.inputs import Problem
from gonio.core.parallel import in_threads, spans
from gonio.core.readable_label import quoted
from gonio.core.renderers import rendered
from gonio.core.status import NEVER, SHARED, UNDECIDED, WINS, Answer, Status, statuses
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import Certificate, NeverWins, Undecided, Wins
from gonio.proofs.own_direction import OwnDirections
from gonio.search import linear
from gonio.search.proposals import STAGE, STAGES, Proposals
from gonio.search.propose import propose

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PROGRAMS = 64  # labels left open that are put to exact arithmetic and a linear program, one each
CHUNK = 4096  # wins that are verified together
UNSHOWN = (
    "it wins in its own direction, but no input of floats was found that shows it",
    "it never wins, but no mean of few rivals was found that shows it",
)


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
    status               what is known of each, as a `Status` whose value is a sentence
    stage                which stage of the search settled it
    interrupted          the search was stopped: what had been decided by then is here
    """

    head: Head
    labels: Int[np.ndarray, " asked"]
    codes: Int[np.ndarray, " asked"]
    interrupted: bool
    _bound: Float[np.ndarray, " asked"]
    _candidates: Candidates
    _proposals: Proposals
    _proofs: dict[int, Certificate] = field(default_factory=dict)

    @cached_property
    def status(self) -> np.ndarray:
        return statuses(self.codes)

    @property
    def wins(self) -> Int[np.ndarray, " wins"]:
        """The labels that can win by themselves."""
        return self.labels[self.codes == WINS]

    @property
    def never(self) -> Int[np.ndarray, " never"]:
        """The labels that never reach the top, not even together with their equals, whatever the input."""
        return self.labels[self.codes == NEVER]

    @property
    def shared(self) -> Int[np.ndarray, " shared"]:
        """The labels that can reach the top only together with others whose scores are equal everywhere."""
        return self.labels[self.codes == SHARED]

    @property
    def undecided(self) -> Int[np.ndarray, " undecided"]:
        """The labels of which neither is proven."""
        return self.labels[self.codes == UNDECIDED]

    @property
    def tops(self) -> Int[np.ndarray, " tops"]:
        """The labels that can reach the top, alone or with their equals."""
        return self.labels[(self.codes == WINS) | (self.codes == SHARED)]

    @cached_property
    def twins(self) -> tuple[Twins, ...]:
        """The groups of equal labels of which one was asked about, by first member."""
        status = dict(zip(self.labels.tolist(), self.status, strict=True))
        asked = ((g, [status[i] for i in g.tolist() if i in status]) for g in self.head.twins)
        return tuple(Twins(g, found[0].answer) for g, found in asked if found)

    @property
    def stage(self) -> tuple[str, ...]:
        """What settled each label: a stage of the search, or a program for what that left open."""
        late = (self._proposals.status[self._places] == UNDECIDED) & (self.codes != UNDECIDED)
        return tuple(STAGES[k] for k in np.where(late, STAGE["program"], self._proposals.stage[self._places]))

    @cached_property
    def _places(self) -> np.ndarray:
        """Where the candidate of each label stands among the proposals."""
        where = np.zeros(len(self._candidates.rows), np.int64)
        where[self._proposals.labels] = np.arange(len(self._proposals.labels))
        return where[self._candidates.place[self.labels]]

    @property
    def least_margin(self) -> Float[np.ndarray, " asked"]:
        """What the search proved of each margin on its way; `margin` looks again and proves more."""
        return self._bound

    @cached_property
    def margin(self) -> Float[np.ndarray, " asked"]:
        out = self._bound.copy()
        place = self._candidates.place[self.labels]
        top = np.flatnonzero((self.codes == WINS) | (self.codes == SHARED))
        top = top[self._proposals.status[self._places[top]] == WINS]  # of what a program has shown the bound stands
        first = {int(c): int(self.labels[k]) for k, c in zip(top[::-1], place[top[::-1]], strict=True)}
        proven = margins_of_wins(self.head, self._candidates, self._proposals, np.array([*first.values()], np.int64))
        margins = dict(zip(first, proven.tolist(), strict=True))
        for k in top:
            out[k] = max(float(out[k]), margins[int(place[k])])
        out.flags.writeable = False
        return out

    @cached_property
    def surface(self) -> Surface:
        """After a norm: how far out, as a share of the largest length, each label that reaches the top does so."""

        def witnesses() -> dict[int, np.ndarray]:
            inputs = {int(i): self.certificate(int(i)) for i in self.tops}
            return {i: c.x for i, c in inputs.items() if isinstance(c, Wins)}

        return surface_of(self.head, self._candidates, self.tops, witnesses)

    def certificate(self, label: Label) -> Certificate:
        """The proof of one label's verdict, verified."""
        i = self.head.index(label)
        if i not in self._proofs:
            if i not in self.labels:
                raise GonioError(f"can_win: label {i} was not asked about; ask for it, or for all labels.")
            self._prove([i])
        return self._proofs[i]

    def certificates(self, *, undecided: bool = True) -> Iterator[Certificate]:
        """The proofs of all labels, in order, each verified."""
        wanted = self.labels if undecided else self.labels[self.codes != UNDECIDED]
        for a, b in spans(len(wanted), CHUNK):
            self._prove(wanted[a:b].tolist())
            yield from (self._proofs[int(i)] for i in wanted[a:b])

    def _prove(self, labels: list[int]) -> None:
        """Make the proofs of some labels. What has not passed `verify` as it stands passes it here."""
        code = dict(zip(self.labels.tolist(), self.codes.tolist(), strict=True))
        fresh = [i for i in labels if i not in self._proofs]
        made = in_threads(
            lambda i: self._known(i) or _proof(self.head, self._candidates, self._proposals, i, code[i]), fresh
        )
        claims = [c for c in made if isinstance(c, (Wins, NeverWins))]
        seen = verify_all(self.head, claims)
        refused = {claims[k].label: claims[k] for k in seen.refused}
        for i, c in zip(fresh, made, strict=True):
            self._proofs[i] = self._shown_otherwise(refused[i]) if i in refused else c

    def _shown_otherwise(self, claim: Wins | NeverWins) -> Certificate:
        """In place of a refused proof: for a label that never wins, the weights that proved it, if they hold."""
        if isinstance(claim, NeverWins):
            rivals, weights = self._proposals.spread_weights(int(self._candidates.place[claim.label]))
            wide = replace(claim, rivals=self._candidates.rows[rivals], weights=weights)
            if first_verified(self.head, [(wide, 0.0)])[0]:
                return wide
        return Undecided(self.head.digest, claim.label, np.inf, UNSHOWN[isinstance(claim, NeverWins)])

    def _known(self, label: int) -> Certificate | None:
        """The proof of the label's candidate, where one was made on the way, as one about this label."""
        proof = self._proofs.get(int(self._candidates.rows[self._candidates.place[label]]))
        if isinstance(proof, Wins):
            return replace(proof, label=label, equals=self.head.equals(label))
        return replace(proof, label=label) if isinstance(proof, NeverWins) else None

    def reason(self, label: Label) -> str:
        """In words, why a label never wins, or with whom it shares the top."""
        i = self.head.index(label)
        k = int(np.flatnonzero(self.labels == i)[0])
        if self.codes[k] == SHARED:
            others = [quoted(self.head.labels[j]) for j in self.head.equals(i)]
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            return f"only together with {', '.join(others[:3])}{more}, whose scores are equal everywhere"
        if self.codes[k] != NEVER:
            return ""
        if self.head.inputs.points is not None:
            return "at each of the observed embeddings another label is not below it"
        if self.stage[k] == "dominated":
            certificate, far = self.certificate(i), self._proposals.ground.far
            assert isinstance(certificate, NeverWins)
            rival = int(certificate.rivals[0])
            if rival == self._candidates.rows[far.top] and self._candidates.place[i] in far.labels:
                return f"so far below {quoted(self.head.labels[rival])} by its bias that no input makes up for it"
            return f"the same row as {quoted(self.head.labels[rival])}, with a lower bias"
        return "at every input some mean of the others is not below it"

    def columns(self) -> dict[str, list[Any]]:
        """The result as columns, one entry a label."""
        return {
            "index": self.labels.tolist(),
            "label": [self.head.labels[i] for i in self.labels],
            "can_win": ["with equals" if s is Status.SHARED else s.answer for s in self.status],
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

    def _repr_html_(self) -> str:
        return rendered(self, "card")

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

    Given one label, a verdict with its certificate; given several or none (all), columns. That a label wins is proven
    by the lemma of own directions (`proofs.own_direction`) or by an input at which it does; that it never does, by
    rivals whose weighted mean is nowhere below it. `verify` has accepted each input and each mean; of the rest nothing
    is proven but a bound. A soft-cap changes nothing; for the link sigmoid the winner
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
    head.digest  # noqa: B018  what all proofs are about: as the rows are now
    single = label is not None and (isinstance(label, (str, int, np.integer)) and not isinstance(label, bool))
    asked = _asked(head, [label] if single else label)
    candidates = candidates_of(head)
    problem = candidates.reduced(head.inputs.reduce(head.W, head.bias, differences=True))
    places = candidates.place[asked]
    own = OwnDirections(problem)
    proposals = propose(problem, labels=None if label is None else np.unique(places), own=own, on_progress=on_progress)
    codes, bound, proofs = _disposed(head, candidates, problem, proposals, own)
    at = np.searchsorted(proposals.labels, places)
    codes, bound = codes[at], bound[at]
    codes[(codes == WINS) & candidates.repeated[places]] = SHARED
    for a in (codes, bound):
        a.flags.writeable = False
    result = CanWin(head, asked, codes, proposals.interrupted, bound, candidates, proposals, proofs)
    return _verdict(result) if single else result


def _verdict(result: CanWin) -> Verdict:
    """The verdict on the one label asked about."""
    head, i = result.head, int(result.labels[0])
    certificate = result.certificate(i)
    unshown = isinstance(certificate, Undecided)
    answer: Answer = "undecided" if unshown else result.status[0].answer
    return Verdict(
        head, f"can {quoted(head.labels[i])} win?", answer, certificate, float(result.margin[0]), result.reason(i)
    )


def _asked(head: Head, several: Any) -> np.ndarray:
    if several is None:
        return np.arange(head.shape[0])
    asked = np.array([head.index(x) for x in checks.listed(several, "can_win", "labels")], dtype=np.int64)
    if not len(asked):
        raise GonioError("can_win: no label was named; name some, or none at all to ask about every label.")
    if len(np.unique(asked)) != len(asked):
        raise GonioError("can_win: a label is named twice; name each once.")
    return asked


def _disposed(
    head: Head, candidates: Candidates, problem: Problem, proposals: Proposals, own: OwnDirections
) -> tuple[np.ndarray, np.ndarray, dict[int, Certificate]]:
    """Code and bound of each candidate asked about, and the proofs made on the way, by label.

    Wins that the lemma proves stand. Of the other proposals `verify` accepts each input and each mean, or they are
    undecided; and what is open, exact arithmetic may settle on the nearest combination found, or one linear program.
    """
    codes, bound = proposals.status.copy(), proposals.margin.copy()
    proofs: dict[int, Certificate] = {}

    def dispose(at: np.ndarray, claims: list[Any]) -> None:
        seen = verify_all(head, claims)
        for k, (place, claim) in enumerate(zip(at, claims, strict=True)):
            if k in seen.refused:
                codes[place], bound[place] = UNDECIDED, np.inf
            elif isinstance(claim, Wins):
                bound[place] = float(seen.bounds[k])  # the proof itself is made again when it is asked for
            else:
                proofs[claim.label] = claim

    by_spread = never_by_spread(head, candidates, proposals)
    never = np.flatnonzero((codes == NEVER) & ~np.isin(proposals.labels, by_spread))
    for claim, place, good in proven_never(head, candidates, proposals, never):
        if good:
            proofs[claim.label] = claim
        else:
            codes[place], bound[place] = UNDECIDED, np.inf
    shown = np.flatnonzero((codes == WINS) & ~own.proven[proposals.labels])
    for a, b in spans(len(shown), CHUNK):
        which = proposals.labels[shown[a:b]]
        dispose(shown[a:b], [win_claim(head, candidates, proposals, int(c), int(candidates.rows[c])) for c in which])
    for at in np.flatnonzero(codes == UNDECIDED)[: 0 if proposals.interrupted else PROGRAMS]:
        more = _more_claims(head, candidates, problem, proposals, int(proposals.labels[at]))
        claim, value = first_verified(head, ((c, np.inf) for c in more))
        if claim is not None:
            codes[at], bound[at] = (WINS, value) if isinstance(claim, Wins) else (NEVER, 0.0)
            proofs[int(candidates.rows[proposals.labels[at]])] = claim
    return codes, bound, proofs


def _more_claims(
    head: Head, candidates: Candidates, problem: Problem, proposals: Proposals, which: int
) -> Iterator[Wins | NeverWins]:
    """What might prove a candidate that the search left open, cheapest first."""
    label = int(candidates.rows[which])
    if proposals.status[proposals.position(which)] != WINS:
        yield never_claim(head, candidates, proposals, which)
    if linear.can_pose(problem):
        for answer in linear.answers(problem, which):
            if answer.z is not None:
                yield Wins(head.digest, label, head.inputs.lift(answer.z), head.equals(label))
            if len(answer.rivals):
                yield NeverWins(head.digest, label, candidates.rows[answer.rivals], answer.weights)


def _proof(head: Head, candidates: Candidates, proposals: Proposals, label: int, code: int) -> Certificate:
    which = int(candidates.place[label])
    if code in (WINS, SHARED):
        return win_claim(head, candidates, proposals, which, label)
    if code == NEVER:
        return replace(never_claim(head, candidates, proposals, which), label=label)
    why = "the search was stopped" if proposals.interrupted else "the label is on the edge between winning and not"
    if proposals.status[proposals.position(which)] == WINS:
        return Undecided(head.digest, label, np.inf, why)
    rivals, weights = proposals.support(which)
    return Undecided.nearest(head, label, why, candidates.rows[rivals], weights)
