"""One finding: what was found about this model, what it means, why it is so, and how to check it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from gonio.core.head import Head
from gonio.core.readable_label import quoted

LONG = 40  # characters of a label's name in a sentence
LONGEST = 200  # of one that somebody may be expected to type

State = Literal["fact", "convention", "fine", "warning", "open"]

SECTIONS = {
    "answer": "The answer",
    "head": "What this head is",
    "cosine": "What a cosine can tell here",
    "possible": "What is possible",
    "instead": "What to use instead",
    "odd": "What else is odd",
    "open": "What was not decided",
}

TABLE_SECTIONS = {
    "rows": "Rows that are wrong",
    "meaning": "What a score means here",
    "shape": "Lengths and offset",
    "hubs": "Hubs",
    "judged": "Judged quality",
    "drift": "Drift",
    "open": "What was not decided",
}

STATES: dict[State, str] = {
    "fact": "determined by the model",
    "convention": "not determined: another value describes the same model",
    "fine": "looked at, nothing to worry about",
    "warning": "worth acting on",
    "open": "not decided",
}


def short(label: str) -> str:
    """A label's name in quotes, cut where it is long.

    >>> short("dog"), len(short("x" * 500))
    ("'dog'", 42)
    """
    return quoted(label if len(label) <= LONG else label[: LONG - 1] + "…")


def typed_label(head: Head, row: int) -> str:
    """A label as a command line takes it: its quoted name, or its number where the name is not one row's alone."""
    name = head.labels[row]
    plain = (
        head.named
        and 0 < len(name) <= LONGEST
        and name.isprintable()
        and not name.startswith(("-", "#"))
        and head.labels.count(name) == 1
    )
    return shlex.quote(name) if plain else f"'#{row}'"


def counted(count: int, word: str) -> str:
    """A number with its noun.

    >>> counted(1, "group"), counted(1200, "group")
    ('1 group', '1,200 groups')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def sentence(text: str) -> str:
    """The words with a capital and a full stop.

    >>> sentence("the entry `link` of the file")
    'The entry `link` of the file.'
    """
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def plainly(value: float, digits: int = 4) -> str:
    """A cosine or share with so many decimals, and more where fewer would print a value that it does not have.

    >>> plainly(0.58333), plainly(0.999998), plainly(1.0), plainly(-0.99996)
    ('0.5833', '0.999998', '1.0000', '-0.99996')
    """
    if value != value or abs(value) >= 1:
        return f"{value:.{digits}f}"
    if abs(value) < 0.5 * 10**-digits:
        return f"{0:.{digits}f}"  # no minus zero
    while digits < 17 and abs(float(f"{value:.{digits}f}")) >= 1:
        digits += 1
    return f"{value:.{digits}f}"


@dataclass(frozen=True)
class Finding:
    """What one question found.

    key          stable name, for --fail-on and for programs
    section      one of SECTIONS, or of TABLE_SECTIONS for a table of embeddings
    title        the finding in one line
    state        fact, convention, fine, warning or open
    value        the number (or text) found
    says         what it means, in plain words
    threshold    the value from which it is a warning, where there is one
    theorem      key in docs/theorems.toml of what makes it so, or empty
    verify       a command or call that checks it, or empty
    data         details: lists of labels, tables
    """

    key: str
    section: str
    title: str
    state: State
    value: float | int | str | None
    says: str
    threshold: float | None = None
    theorem: str = ""
    verify: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.section in SECTIONS or self.section in TABLE_SECTIONS
        assert self.state in STATES
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))

    def __reduce__(self):  # a read-only view of a dict cannot be pickled
        return Finding, tuple(dict(v) if isinstance(v, Mapping) else v for v in vars(self).values())

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in vars(self).items()}
