"""Hypotheses by strength: for a sentence, a weaker one that it supports and a stronger one that it does not.

counts        "Two men are ..."        -> "Some men are ..." / "All men are ..."
how many      "several/many/most X"    -> "some X" / "all X"
how often     "often/usually ..."      -> "sometimes ..." / "always ..."
how sure      "may ..."                -> "might ..." / "must ..."
how shown     "... indicate that"      -> "... suggest that" / "... prove that"
"""

from __future__ import annotations

import re

COUNTED = re.compile(
    r"(two|three|four|five|six|seven|eight|nine|ten) ([a-z]+s|men|women|people|children)\b(.*)", re.I | re.S
)
# pattern -> (weaker, stronger); the first that is found is used
SCALES = {
    r"most of (?=the |these |those )": ("some of ", "all of "),
    r"(?:several|many)(?= (?:[a-z-]+ )?[a-z]+s\b)": ("some", "all"),
    r"(?:often|usually|generally|frequently)": ("sometimes", "always"),
    r"may(?= (?:be|have|also|well)\b)": ("might", "must"),
    r"(?:indicates)(?= that\b)": ("suggests", "proves"),
    r"(?:indicate)(?= that\b)": ("suggest", "prove"),
    r"(?:indicated)(?= that\b)": ("suggested", "proved"),
}


# "the several", "so many", "not usually", "there are many": the rules would make no sense
BEHIND = "the these those so as how of too a an its not very more most less"
BE = "is are was were be been"
NOT_BEHIND = {"some": frozenset(f"{BEHIND} {BE}".split()), "other": frozenset(BEHIND.split())}
NEGATED = re.compile(r"\b(?:not|no|never|nor|neither|without|cannot)\b|n['’]t\b", re.I)
TIMES = re.compile(r"(?:[a-z-]+ )?(?:years|times|days|hours|months|weeks|decades|ways|minutes|others)\b", re.I)


def strengths(sentence: str) -> tuple[str, str] | None:
    """(weaker, stronger), of which the sentence supports the first only; None where no rule reads it."""
    s = sentence.strip()
    if NEGATED.search(s):
        return None
    if (m := COUNTED.match(s)) and not TIMES.match(m[2]):
        return _put(s, m, 1, "some"), _put(s, m, 1, "all")
    for pattern, (weak, strong) in SCALES.items():
        if (m := re.search(rf"\b{pattern}", s, re.I)) and _fits(s, m, weak):
            return _put(s, m, 0, weak), _put(s, m, 0, strong)
    return None


def _fits(s: str, m: re.Match[str], weak: str) -> bool:
    """Whether the words around a match leave sense to both hypotheses."""
    before = s[: m.start()].lower().split()[-1:]
    if weak == "some" and TIMES.match(s[m.end() :].strip()):
        return False
    return not NOT_BEHIND["some" if weak == "some" else "other"] & set(before)


def _put(s: str, m: re.Match[str], part: int, word: str) -> str:
    word = word.capitalize() if m[part][0].isupper() else word
    return s[: m.start(part)] + word + s[m.end(part) :]
