"""Roles exchanged by rule: who does what to whom in captions, what acts on what in abstracts.

who did it     "A man is riding a horse", "... rides a horse"  -> "A horse is riding a man"
by whom        "A ball is kicked by a boy"         -> "A boy is kicked by a ball"
effect         "the effect of A on B"              -> "the effect of B on A", and in other words "the effect on B of A"
way            "from the A to the B"               -> "from the B to the A", and "to the B from the A"
cause          "the A due to B"                    -> "the B due to A", and "the A caused by B"

The last three bring a wording of the same meaning with them, of nearly the same words: only their roles differ.
"""

from __future__ import annotations

import re

DETERMINER = r"(?:an?|the|some|two|three|four|five|his|her|their|another)"
# words that end a noun phrase: what follows is no part of it
ENDS = (
    "in on at with near while for by into from through over under along next outside inside during as and to behind "
    "off across around up down"
)
STOPPING = (
    "in on at with for by into from through over under as to is are was were has have had can may be which that when "
    "using due including obtained calculated parallel normal where if but"
)
STOPS = frozenset(STOPPING.split())
GOES_ON = frozenset(("from", "to", "due", "with", "and", "or", "on"))  # a phrase that one of these follows is not whole
PLURAL = re.compile(r"^(?:two|three|four|five|some) ", re.I)
PHRASE = rf"{DETERMINER}(?: [a-z-]+){{1,3}}?"
CLAUSE = re.compile(
    rf"({PHRASE}) (is|are|was|were) ([a-z]+ing)((?: (?:on|at|to|into|in|through|over|up|down|off))?) ({PHRASE})"
    rf"((?: (?:{ENDS.replace(' ', '|')})\b.*|,.*)?\.?)",
    re.I | re.S,
)
PASSIVE = re.compile(
    rf"({PHRASE}) ((?:is|are|was|were)(?: being)?) ([a-z]+ed|[a-z]+en|held|led|cut|hit) by ({PHRASE})"
    rf"((?: (?:{ENDS.replace(' ', '|')})\b.*|,.*)?\.?)",
    re.I | re.S,
)
SIMPLE = re.compile(
    rf"({PHRASE}) ([a-z]+[^su']s)((?: (?:on|at|into|in|through|over|down))?) ({PHRASE})"
    rf"((?: (?:{ENDS.replace(' ', '|')})\b.*|,.*)?\.?)",
    re.I | re.S,
)
ACTS = re.compile(r"\b(effects?|influence|dependence) of ((?:[a-z-]+ ){1,5})on ((?:[a-z-]+ ?){1,6})")
GOES = re.compile(r"\bfrom ((?:an?|the)(?: [a-z-]+){1,4}) to ((?:an?|the)(?: [a-z-]+){1,6})")
CAUSED = re.compile(r"\bthe ((?:[a-z-]+ ){1,3})due to ((?:[a-z-]+ ?){1,6})")


def exchanged(sentence: str) -> str | None:
    """A caption with who does and what it is done to exchanged; None where no rule reads it."""
    s = sentence.strip()
    if m := CLAUSE.fullmatch(s):
        a, verb, doing, by, b, rest = m.groups()
        middle = f"{verb} {doing}{by}"
    elif m := PASSIVE.fullmatch(s):
        a, verb, done, b, rest = m.groups()
        middle = f"{verb} {done} by"
    elif m := SIMPLE.fullmatch(s):
        a, does, by, b, rest = m.groups()
        middle = f"{does}{by}"
    else:
        return None
    if {*ENDS.split(), "of", "is", "are", "who", "that"} & {*a.lower().split(), *b.lower().split()}:
        return None
    if a.split()[-1].lower() == b.split()[-1].lower() or re.search(r"\w{2}ing\b", f"{a} {b}"):
        return None
    if bool(PLURAL.match(a)) != bool(PLURAL.match(b)) or _many(a) != _many(b):
        return None
    return f"{b[0].upper()}{b[1:]} {middle} {a[0].lower()}{a[1:]}{rest}"


def acting(sentence: str) -> tuple[str, str] | None:
    """(the same in other words, roles exchanged) of a sentence on an effect or a way; None where no rule reads it."""
    s = sentence.strip()
    if (m := ACTS.search(s)) and (b := _phrase(m[3])) is not None and _plain(a := m[2].strip()):
        before, after = s[: m.start(2)], s[m.start(3) + len(b) :]
        if a != b and after[:1] != ",":
            return f"{s[: m.start()]}{m[1]} on {b} of {a}{after}", f"{before}{b} on {a}{after}"
    if (m := GOES.search(s)) and (b := _phrase(m[2])) is not None and _plain(a := m[1]):
        after = s[m.start(2) + len(b) :]
        if a != b and after[:1] != ",":
            return f"{s[: m.start()]}to {b} from {a}{after}", f"{s[: m.start()]}from {b} to {a}{after}"
    if (m := CAUSED.search(s)) and (b := _phrase(m[2])) is not None and _plain(a := m[1].strip()):
        before, after, bare = s[: m.start()], s[m.start(2) + len(b) :], re.sub(r"^(?:the|an?) ", "", b)
        if a != bare and after[:1] != "," and not {"the", "a", "an", "of"} & set(a.split()):
            return f"{before}the {a} caused by {b}{after}", f"{before}the {bare} due to the {a}{after}"
    return None


def _phrase(words: str) -> str | None:
    """The words up to the first that ends a noun phrase; None where that leaves none, or an "and" may go either way."""
    out: list[str] = []
    for w in words.split():
        if w in GOES_ON:
            return None
        if w in STOPS:
            break
        out.append(w)
    if not out or len(out) > 5 or out[-1] in ("of", "the", "a", "an"):
        return None
    return " ".join(out)


def _many(phrase: str) -> bool:
    """Whether a phrase ends in what looks like a plural."""
    return re.search(r"[^s]s$|(?:men|people|children)$", phrase) is not None


def _plain(phrase: str) -> bool:
    """Whether a phrase has no word that begins another part of the sentence."""
    return not (STOPS | {"on"}) & set(phrase.split())
