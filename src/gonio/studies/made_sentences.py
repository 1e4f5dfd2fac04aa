"""Sentences of other meaning made by rule from real ones, hundreds of each kind.

negation         "A man is riding a horse" -> "A man is not riding a horse"
numbers          "Two dogs are running" -> "Nine dogs are running"
roles            "A man is riding a horse" -> "A horse is riding a man"
strength         "Two men are ..." supports "Some men are ..." and not "All men are ..."
function words   a sentence with all its content words but the last taken out
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

AUXILIARIES = tuple("is are was were will can could would should has have had must may".split())  # noqa: SIM905
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
FUNCTION_WORDS = """
a an the of in on at to for from by with and or but not no as is are was were be been being am do does did has have had
will would can could may might must shall should it its he she they them his her their this that these those there here
who whom which what when where why how if then than so such into over under about after before between through during
out up down off again very more most some any all both each few other only own same too just also i you we us me my your
our one
"""
FUNCTION = frozenset(FUNCTION_WORDS.split())


@dataclass(frozen=True)
class Triple:
    """A sentence, one that ought to be near it, and one that ought not to be nearer."""

    sentence: str
    right: str
    wrong: str


def negated(sentence: str) -> str | None:
    """The sentence with "not" behind its first auxiliary; None where it has none, or a negation already."""
    words = sentence.split()
    low = [w.lower().strip(".,;!?\"'") for w in words]
    if {"not", "no", "never", "n't"} & set(low) or any(w.endswith("n't") for w in low):
        return None
    at = next((i for i, w in enumerate(low[:-1]) if w in AUXILIARIES), None)
    return None if at is None or at == 0 else " ".join([*words[: at + 1], "not", *words[at + 1 :]])


def renumbered(sentence: str) -> str | None:
    """The sentence with its first number changed; None where it has none."""

    def other(m: re.Match[str]) -> str:
        word = m.group(0)
        if word.isdigit():
            return str(int(word) * 3 + 7)
        new = NUMBERS[(NUMBERS.index(word.lower()) + 5) % len(NUMBERS)]
        return new.capitalize() if word[0].isupper() else new

    out, count = re.subn(rf"\b(?:{'|'.join(NUMBERS)}|\d{{1,6}})\b", other, sentence, count=1, flags=re.I)
    return out if count else None


def swapped(sentence: str) -> str | None:
    """Who does and what it is done to exchanged; None where the sentence is not "A x is doing a y"."""
    m = re.fullmatch(r"(An?|The) (\w+) (is|was) (\w+ing) (a|an|the) (\w+)(\.?)", sentence.strip())
    if m is None or m[2].lower() == m[6].lower():
        return None
    article = {"a": "A", "an": "An", "the": "The"}[m[5]]
    return f"{article} {m[6]} {m[3]} {m[4]} {m[1].lower()} {m[2]}{m[7]}"


def strengths(sentence: str) -> tuple[str, str] | None:
    """("Some x ..", "All x .."), of which the sentence supports the first only; None where it does not count x's."""
    m = re.match(rf"({'|'.join(NUMBERS)}) (\w+s|men|women|people|children)\b(.*)", sentence.strip(), flags=re.I | re.S)
    return None if m is None else (f"Some {m[2]}{m[3]}", f"All {m[2]}{m[3]}")


def mostly_function_words(sentence: str) -> str | None:
    """The sentence's function words and its last content word; None where fewer than four function words are left."""
    words = re.findall(r"[A-Za-z']+", sentence)
    content = [i for i, w in enumerate(words) if w.lower() not in FUNCTION]
    if not content:
        return None
    kept = [w for i, w in enumerate(words) if w.lower() in FUNCTION or i == content[-1]]
    return " ".join(kept) if len(kept) >= 5 and len(content) >= 3 else None


def triples(
    first: Sequence[str], second: Sequence[str], scores: Iterable[float], *, least: float = 4.0, most: int = 300
) -> dict[str, list[Triple]]:
    """Triples of the first four kinds; what ought to be near is the pair's other sentence, judged `least` or more.

    Of strength, what ought to be near is the weak hypothesis.
    """
    out: dict[str, list[Triple]] = {"negation": [], "numbers": [], "roles": [], "strength": []}
    rules = {"negation": negated, "numbers": renumbered, "roles": swapped}
    seen: set[tuple[str, str]] = set()
    for a, b, s in zip(first, second, scores, strict=True):
        for x, y in ((a, b), (b, a)):
            if s >= least and x.strip().lower() != y.strip().lower():
                for kind, rule in rules.items():
                    wrong = rule(x)
                    if wrong is not None and (kind, x) not in seen and wrong.lower() != y.strip().lower():
                        out[kind].append(Triple(x, y, wrong))
                        seen.add((kind, x))
            both = strengths(x)
            if both is not None and ("strength", x) not in seen:
                out["strength"].append(Triple(x, *both))
                seen.add(("strength", x))
    return {k: v[:: max(1, -(-len(v) // most))][:most] for k, v in out.items()}
