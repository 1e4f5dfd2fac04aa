"""What a paper says beside what gonio finds: one comparison, and a paper's worth of them with its pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["agrees", "differs", "cannot be compared"]


@dataclass(frozen=True)
class Comparison:
    """One claim of a paper: their number, ours, and whether they agree.

    function, test   where the number comes from, and the test that carries it
    note             in words: why they differ, or what stands in for what cannot be had
    """

    claim: str
    theirs: Any
    ours: Any
    verdict: Verdict
    function: str
    test: str
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {k: _plain(v) for k, v in vars(self).items()}


def number(
    claim: str, theirs: float, ours: float, *, within: float, function: str, test: str, note: str = ""
) -> Comparison:
    """A number of the paper against ours: they agree within an absolute tolerance."""
    fine = abs(float(ours) - float(theirs)) <= within
    return Comparison(claim, theirs, ours, "agrees" if fine else "differs", function, test, note)


def same(claim: str, theirs: Any, ours: Any, *, function: str, test: str, note: str = "") -> Comparison:
    """Something of the paper that must be found exactly."""
    return Comparison(claim, theirs, ours, "agrees" if theirs == ours else "differs", function, test, note)


def holds(claim: str, fact: bool, ours: Any, *, function: str, test: str, note: str = "") -> Comparison:
    """A statement of the paper without a number: it holds in what was run here, or it does not."""
    return Comparison(claim, "stated", ours, "agrees" if fact else "differs", function, test, note)


def beyond(claim: str, theirs: Any, ours: Any, *, function: str, test: str, note: str) -> Comparison:
    """A number that cannot be compared, with what stands in for it and why."""
    return Comparison(claim, theirs, ours, "cannot be compared", function, test, note)


@dataclass(frozen=True)
class Picture:
    """A figure of a paper drawn again: a caption, and a function that draws it into a matplotlib figure."""

    name: str
    caption: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (8, 4)


@dataclass(frozen=True)
class Reproduction:
    """A paper: its comparisons and pictures."""

    key: str
    title: str
    comparisons: tuple[Comparison, ...]
    pictures: tuple[Picture, ...] = field(default=())
    with_network: str = ""  # the command that would run the rest, where weights must be fetched

    def count(self, verdict: Verdict) -> int:
        """How many comparisons ended so."""
        return sum(c.verdict == verdict for c in self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for reproduction.json."""
        return {
            "paper": self.title,
            "comparisons": [c.to_dict() for c in self.comparisons],
            "pictures": [p.name for p in self.pictures],
            "with_network": self.with_network,
        }

    def __repr__(self) -> str:
        return (
            f"Reproduction({self.title})\n"
            f"  {self.count('agrees')} agree, {self.count('differs')} differ, "
            f"{self.count('cannot be compared')} cannot be compared"
        )


def _plain(v: Any) -> Any:
    if hasattr(v, "tolist"):
        return v.tolist()
    if isinstance(v, (list, tuple)):
        return [_plain(x) for x in v]
    return v
