"""What every study gives back: its question, numbers with intervals, and a verdict that could have come out otherwise.

A verdict is a function of the numbers alone, so that whoever has them can say it again. A number that is counted or
computed exactly has no interval; one that hangs on a sample has one of 95 %, and `how` says over what.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gonio.core.errors import GonioError
from gonio.diagnostics.result import Result, called


@dataclass(frozen=True)
class Measured:
    """One number of a study: its name, its value, its interval where it hangs on a sample, and how it was had."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    how: str = ""

    def words(self, digits: int = 3) -> str:
        """The number as it is printed.

        >>> Measured("share", 0.25, 0.2, 0.31).words()
        '0.250 (0.200 to 0.310)'
        """
        value = _number(self.value, digits)
        if self.low is None or self.high is None:
            return value
        return f"{value} ({_number(self.low, digits)} to {_number(self.high, digits)})"

    def above(self, x: float) -> bool:
        """Whether the whole interval, or the exact value, lies above x."""
        return (self.value if self.low is None else self.low) > x

    def below(self, x: float) -> bool:
        """Whether the whole interval, or the exact value, lies below x."""
        return (self.value if self.high is None else self.high) < x


def _number(x: float, digits: int) -> str:
    if x != x:
        return "undefined"
    if float(x).is_integer() and abs(x) >= 10:
        return f"{x:,.0f}"
    return f"{x:.{digits}f}" if abs(x) < 1000 else f"{x:,.0f}"


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult(Result):
    """A study that was run.

    about      on what it was run
    measured   its numbers
    verdict    the answer in a sentence that the numbers decide
    against    where it came out against what the source says or suggests; empty where it did not
    limits     what this run cannot show
    """

    study: str
    question: str
    about: str
    measured: tuple[Measured, ...]
    verdict: str
    against: str = ""
    limits: str = ""
    seed: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Measured:
        return called(self.measured, name, f"study {self.study}")

    def lines(self) -> tuple[str, str]:
        return f"{self.study}: {self.about}", self.verdict

    def explain(self) -> str:
        """The question, the verdict, what was against the source, what it cannot show."""
        said = [self.question, self.verdict, self.against and f"Against the source: {self.against}", self.limits]
        return " ".join(x for x in said if x)


def text(results: tuple[StudyResult, ...]) -> str:
    """What `gonio study` prints: what came out against the source first, then the verdict, then the numbers."""
    out = []
    for r in results:
        out += [f"{r.study}: {r.about}", f"  question   {r.question}"]
        if r.against:
            out.append(f"  against    {r.against}")
        out.append(f"  verdict    {r.verdict}")
        wide = max((len(m.name) for m in r.measured), default=0)
        out += [f"    {m.name:<{wide}}  {m.words()}" + (f"  ({m.how})" if m.how else "") for m in r.measured]
        if r.limits:
            out.append(f"  limits     {r.limits}")
        out.append("")
    return "\n".join(out).rstrip()


def enough(found: int, wanted: int, who: str, what: str) -> None:
    """Complain where there are too few of something for a study."""
    if found < wanted:
        raise GonioError(f"study {who}: {found:,} {what} were found; at least {wanted:,} are needed.")
