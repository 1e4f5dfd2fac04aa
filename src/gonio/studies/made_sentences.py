"""Sentences of other meaning made by rule from real ones, hundreds of each kind.

negation         "A man is riding a horse" -> "A man is not riding a horse"
numbers          "Two dogs are running" -> "Nine dogs are running"
roles            "A man is riding a horse" -> "A horse is riding a man" (`made_roles`)
strength         "Two men are ..." supports "Some men are ..." and not "All men are ..." (`made_strengths`)
function words   a sentence with all its content words but the last taken out
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gonio.studies.made_roles import acting, exchanged
from gonio.studies.made_strengths import strengths

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
    rules = {"negation": negated, "numbers": renumbered, "roles": exchanged}
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
    return {k: _some(v, most) for k, v in out.items()}


def abstract_triples(sentences: Iterable[str], *, most: int = 300) -> dict[str, list[Triple]]:
    """Triples of roles and of strength from sentences without a judged paraphrase: rules make what ought to be near."""
    once = list(dict.fromkeys(x.strip() for x in sentences))
    rules = {"roles in abstracts": acting, "strength in abstracts": strengths}
    made = {k: [Triple(x, *both) for x in once if (both := rule(x)) is not None] for k, rule in rules.items()}
    return {k: _some(v, most) for k, v in made.items()}


def _some(found: list[Triple], most: int) -> list[Triple]:
    """At most so many, drawn at even odds with a fixed seed, in their order."""
    if len(found) <= most:
        return found
    kept = np.random.default_rng(0).choice(len(found), most, replace=False)
    return [found[i] for i in sorted(kept)]
