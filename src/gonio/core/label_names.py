"""Labels found as people write them: by name, by number, and in the spellings that tokenizers have for one text.

A token's name is how its tokenizer writes it: " dog" is Ġdog in a byte-level vocabulary and ▁dog in one of
SentencePiece, a newline is Ċ or <0x0A>, é is Ã© or é. The rule, first match first:

    #12           the row of that number, whatever a label is called
    exact         the label of that very name
    same text     the label that is the same text in another spelling
    with a space  the label that is the text behind one more space, at the start of a word (`find` only)

Two matches of one rank are an error that lists them; nothing is taken whose text is another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from gonio.core.byte_level import from_byte_level, to_byte_level
from gonio.core.errors import LabelError
from gonio.core.readable_label import quoted

WORD_STARTS = ("Ġ", "▁", "##", "Ċ")  # how tokenizers mark a leading space, a word's inside, a leading newline
NUMBER = re.compile(r"#([0-9]{1,18})")
BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class FoundLabel:
    """The row that a text was taken for; whether the text is its number or very name; the rows of other spellings."""

    row: int
    exact: bool
    others: tuple[int, ...] = ()


def readings(text: str) -> list[bytes]:
    """The texts that somebody may mean who types this, as bytes: itself first.

    >>> readings("▁dog"), readings("<0x0A>")[1:]
    ([b'\\xe2\\x96\\x81dog', b' dog'], [b'\\n'])
    """
    out = [_utf8(text)]
    byte = BYTE.fullmatch(text)
    if byte:
        out.append(bytes([int(byte[1], 16)]))
    if text.startswith("␣"):  # as gonio shows a leading space
        rest = text.lstrip("␣")
        out.append(_utf8(" " * (len(text) - len(rest)) + rest))
    if text.startswith("▁"):
        out.append(_utf8(text.replace("▁", " ")))
    if text.startswith(("Ġ", "Ċ")):
        raw = from_byte_level(text)
        if raw is not None and _text(raw) is not None:
            out.append(raw)
    return out


class LabelNames:
    """The names of a head's rows, and how a text finds one of them."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels

    @cached_property
    def positions(self) -> dict[str, int]:
        """Name to row; a name that occurs twice is marked by -1."""
        where: dict[str, int] = {}
        for i, name in enumerate(self.labels):
            where[name] = -1 if name in where else i
        return where

    @cached_property
    def marks(self) -> frozenset[str]:
        """Which spellings the names show: Ġ for byte-level ones, ▁ for SentencePiece's."""
        first = {name[:1] for name in self.labels}
        return frozenset(mark for mark, starts in (("Ġ", "ĠĊ"), ("▁", "▁")) if first & set(starts))

    def index(self, text: str) -> int:
        """The row of a label by its number (#12), its name, or its text in another spelling."""
        return self._found(text, with_space=False).row

    def find(self, text: str) -> FoundLabel:
        """As `index`, and a word without its space finds the label that begins with one; with what else it could be."""
        return self._found(text, with_space=True)

    def _found(self, text: str, *, with_space: bool) -> FoundLabel:
        number = NUMBER.fullmatch(text)
        if number:
            return FoundLabel(self._in_range(int(number[1])), True)
        exact = self._rows(text)
        if len(exact) > 1:
            raise LabelError(
                f"Head: {len(exact)} labels are called {quoted(text)} (rows {', '.join(map(str, exact[:5]))}"
                f"{', ...' if len(exact) > 5 else ''}); name one by its number."
            )
        same = self._all_rows(self.same_text(text))
        spaced = self._all_rows(self.behind_a_space(text)) if with_space else []
        if exact:
            return FoundLabel(exact[0], True, (*same, *(i for i in spaced if i not in same)))
        for candidates in (same, spaced):
            if len(candidates) > 1:
                raise LabelError(
                    f"Head: no label is called {quoted(text)}, and {len(candidates)} may be meant: "
                    f"{self.told(candidates)}; name one as it stands here, or by its number."
                )
            if candidates:
                return FoundLabel(candidates[0], False)
        near = self._near(text)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the head has labels 0 to {len(self.labels) - 1}."
        raise LabelError(f"Head: no label is called {quoted(text)}; {hint}")

    def told(self, rows: Sequence[int], most: int = 5) -> str:
        """Labels with their numbers.

        >>> LabelNames(["dog", " dog"]).told([0, 1])
        "'dog' (#0), '␣dog' (#1)"
        """
        shown = ", ".join(f"{quoted(self.labels[i])} (#{i})" for i in rows[:most])
        return shown + (f" and {len(rows) - most:,} more" if len(rows) > most else "")

    def same_text(self, text: str) -> list[str]:
        """The names, other than the text itself, that stand for it in the spellings of this vocabulary."""
        return self._present((x for raw in readings(text) for x in self._spellings(raw)), text)

    def behind_a_space(self, text: str) -> list[str]:
        """The names that stand for the text behind one more space; where no name shows spaces, for it without one."""
        if not self.marks and text[:1] in (" ", "␣"):
            return self._present([text[1:]], text)
        if text[:1].isspace() or text.startswith(("Ġ", "▁", "Ċ", "␣")) or BYTE.fullmatch(text):
            return []
        return self._present(self._spellings(_utf8(" " + text)), text)

    def _spellings(self, raw: bytes) -> Iterable[str]:
        text = _text(raw)
        if text is not None:
            yield text
            if "▁" in self.marks:
                yield text.replace(" ", "▁")
        if "Ġ" in self.marks:
            yield to_byte_level(raw)
        if len(raw) == 1:
            yield f"<0x{raw[0]:02X}>"

    def _present(self, names: Iterable[str], but: str) -> list[str]:
        return list(dict.fromkeys(x for x in names if x in self.positions and x != but))

    def _rows(self, name: str) -> list[int]:
        at = self.positions.get(name)
        if at is None:
            return []
        return [at] if at >= 0 else [i for i, other in enumerate(self.labels) if other == name]

    def _all_rows(self, names: Sequence[str]) -> list[int]:
        return sorted({i for name in names for i in self._rows(name)})

    def _in_range(self, row: int) -> int:
        if 0 <= row < len(self.labels):
            return row
        raise LabelError(f"Head: label {row} is out of range; the head has labels 0 to {len(self.labels) - 1}.")

    def _near(self, text: str) -> list[str]:
        """Names that may have been meant, with their rows."""
        import difflib

        core = text.strip().casefold()
        names = [m + text.lstrip() for m in (*WORD_STARTS, "") if self.positions.get(m + text.lstrip(), -1) >= 0]
        if not names and core:
            names = [x for x in self.labels if x.lstrip("".join(WORD_STARTS) + " ").casefold() == core]
        if not names:
            alike = [x for x in self.labels if abs(len(x) - len(text)) <= 2 and x]
            names = difflib.get_close_matches(text, alike, n=3, cutoff=0.6)
        return [f"{quoted(self.labels[i])} (#{i})" for i in self._all_rows(list(dict.fromkeys(names)))[:3]]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
