"""What a paper says beside what gonio finds: one comparison, and a paper's worth of them with its pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Result = Literal["holds", "does not hold", "cannot be told"]


@dataclass(frozen=True)
class Printed:
    """A number that a paper or its authors' code prints, beside ours.

    tolerance        the largest absolute difference that counts as agreement; 0: it must be found exactly
    difference       ours less theirs; None where they are not single numbers
    function, test   where the number comes from, and the test that carries it
    note             in words: why they differ
    """

    claim: str
    theirs: Any
    ours: Any
    tolerance: float
    difference: float | None
    agrees: bool
    function: str
    test: str
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {k: _plain(v) for k, v in vars(self).items()}


@dataclass(frozen=True)
class Checked:
    """A claim without a number of its own: how it was checked here, what was found, and whether it holds."""

    claim: str
    how: str
    ours: Any
    result: Result
    function: str
    test: str

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {k: _plain(v) for k, v in vars(self).items()}


@dataclass(frozen=True)
class OursAlone:
    """A number that stands alone: the paper prints none to compare with, or its models and data cannot be had."""

    claim: str
    ours: Any
    why: str
    function: str
    test: str

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {k: _plain(v) for k, v in vars(self).items()}


Row = Printed | Checked | OursAlone


def number(
    claim: str, theirs: float, ours: float, *, within: float, function: str, test: str, note: str = ""
) -> Printed:
    """A number that the paper prints against ours: they agree within an absolute tolerance."""
    off = float(ours) - float(theirs)
    return Printed(claim, theirs, ours, within, off, abs(off) <= within, function, test, note)


def same(claim: str, theirs: Any, ours: Any, *, function: str, test: str, note: str = "") -> Printed:
    """Something that the paper prints and that must be found exactly."""
    off = float(ours) - float(theirs) if isinstance(theirs, (int, float)) and isinstance(ours, (int, float)) else None
    return Printed(claim, theirs, ours, 0.0, off, theirs == ours, function, test, note)


def holds(claim: str, fact: bool, ours: Any, *, function: str, test: str, how: str = "") -> Checked:
    """A claim of the paper: it holds in what was run here, or it does not."""
    result: Result = "holds" if fact else "does not hold"
    return Checked(claim, how or f"computed with {function}", ours, result, function, test)


def alone(claim: str, ours: Any, *, function: str, test: str, why: str) -> OursAlone:
    """A number of ours with nothing to compare it with, and why."""
    return OursAlone(claim, ours, why, function, test)


@dataclass(frozen=True)
class Picture:
    """A figure of a paper drawn again: a caption, and a function that draws it into a matplotlib figure."""

    name: str
    caption: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (8, 4)


@dataclass(frozen=True)
class Reproduction:
    """A paper: numbers it prints beside ours, claims that were checked, numbers of ours alone; and its pictures."""

    key: str
    title: str
    rows: tuple[Row, ...]
    pictures: tuple[Picture, ...] = field(default=())
    with_network: str = ""  # the command that would run the rest, where weights must be fetched

    @property
    def printed(self) -> tuple[Printed, ...]:
        """Numbers that the paper prints."""
        return tuple(r for r in self.rows if isinstance(r, Printed))

    @property
    def checked(self) -> tuple[Checked, ...]:
        """Claims that were checked."""
        return tuple(r for r in self.rows if isinstance(r, Checked))

    @property
    def alone(self) -> tuple[OursAlone, ...]:
        """Numbers of ours that have nothing beside them."""
        return tuple(r for r in self.rows if isinstance(r, OursAlone))

    def counts(self) -> dict[str, int]:
        """How many of each kind, and how they ended."""
        return {
            "printed numbers": len(self.printed),
            "found again": sum(r.agrees for r in self.printed),
            "claims checked": len(self.checked),
            "hold": sum(r.result == "holds" for r in self.checked),
            "do not hold": sum(r.result == "does not hold" for r in self.checked),
            "no number printed": len(self.alone),
        }

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for reproduction.json."""
        return {
            "paper": self.title,
            "counts": self.counts(),
            "printed": [r.to_dict() for r in self.printed],
            "checked": [r.to_dict() for r in self.checked],
            "alone": [r.to_dict() for r in self.alone],
            "pictures": [p.name for p in self.pictures],
            "captions": [p.caption for p in self.pictures],
            "with_network": self.with_network,
        }

    def __repr__(self) -> str:
        return f"Reproduction({self.title})\n  {summary(self.counts())}"


def summary(counts: dict[str, int]) -> str:
    """The counts in one line, without those that are none.

    >>> summary({"printed numbers": 9, "found again": 8, "claims checked": 4, "hold": 3, "do not hold": 1,
    ...          "no number printed": 2})
    '8 of 9 printed numbers found again; of 4 claims checked 3 hold, 1 does not; 2 numbers of ours alone'
    """
    printed, checked, alone = (counts[k] for k in ("printed numbers", "claims checked", "no number printed"))
    hold, no = counts["hold"], counts["do not hold"]
    said = []
    if printed:
        said.append(f"{counts['found again']} of {printed} printed numbers found again")
    if checked:
        parts = [f"{hold} hold{'s' if hold == 1 else ''}"] if hold or not no else []
        parts += [f"{no} do{'es' if no == 1 else ''} not" + ("" if hold else " hold")] if no else []
        said.append(f"of {checked} claim{'' if checked == 1 else 's'} checked {', '.join(parts)}")
    if alone:
        said.append(f"{alone} number{'' if alone == 1 else 's'} of ours alone")
    return "; ".join(said)


def _plain(v: Any) -> Any:
    if hasattr(v, "tolist"):
        return v.tolist()
    if isinstance(v, (list, tuple)):
        return [_plain(x) for x in v]
    return v
