"""A label as people can read it: what is blank or hidden is shown, what looks like something else has its code point.

    ' dog'       '␣dog'           a space at either end
    'a\\x1b'      'a\\x1b'          control characters, zero-width and no-break spaces, half a surrogate pair: escapes
    'а'          'а (U+0430)'     letters of another script that look like ASCII ones, alone or among ASCII letters
    'e\\u0301'    'é (U+0301)'    a combining mark behind an ASCII character

A word of another script is left alone unless all its letters look like ASCII ones. Names that tokenizers give (Ġdog,
▁dog) are shown as they are: the Ġ is part of the name.
"""

from __future__ import annotations

import unicodedata

MOST = 4000  # characters of a label or a paragraph: a name may be a megabyte long
POINTS = 4  # code points told of one label

# Letters that look like a letter of ASCII, by their code points.
_LETTERS = frozenset(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"  # Cyrillic capitals
    "\u0405\u0406\u0408\u050c\u051a\u051c"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0501\u04bb\u04cf\u051b\u051d"  # Cyrillic
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"  # Greek capitals
    "\u03bd\u03bf\u03c1\u03c5\u03f2\u03f3"  # Greek
    "\u0585\u0578\u057d\u0581\u0570\u0555\u054d"  # Armenian
    "\u0131\u0251\u0261\u0269\u01c0\u1d0f\u1d1c\u1d20\u1d21\u1d22"  # Latin beyond ASCII
)
# Signs that look like a sign of ASCII, or like nothing.
_SIGNS = frozenset(
    "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d\u2043"  # dashes
    "\u2018\u2019\u02bc\u2032\u02b9\uff07\u201c\u201d\u2033"  # quotes
    "\u2044\u2215\u2571\uff5c\u2223\u01c3\uff01\uff3f"  # slashes and bars
    "\u201a\uff0c\uff1b\u037e\uff1a\u2236\ua789\u2024\uff0e"  # stops
    "\u115f\u1160\u3164\uffa0\u2800"  # blanks
    "\u2423"  # gonio's own sign for a space
)


def printable(text: str) -> str:
    """A text as one line of plain characters: controls and direction marks are shown as escapes, the end of what is
    very long as its length.

    >>> print(printable("ok" + chr(27) + "[31m"))
    ok\\x1b[31m
    >>> printable("x" * 10**6)[-40:]
    'xxxxxxxxxxxxxxxx… (1,000,000 characters)'
    """
    if len(text) > MOST:
        text = f"{text[:MOST]}… ({len(text):,} characters)"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def readable(label: str) -> str:
    """A label as one line in which nothing is hidden.

    >>> readable(" dog"), readable("dog"), readable("p\\u0430y"), readable("собака")
    ('␣dog', 'dog', 'pаy (U+0430)', 'собака')
    """
    odd = look_alikes(label[:MOST])
    lead = len(label) - len(label.lstrip(" "))
    trail = len(label) - len(label.rstrip(" ")) if lead < len(label) else 0
    shown = printable("␣" * lead + label[lead : len(label) - trail] + "␣" * trail)
    if not odd:
        return shown
    points = ", ".join(f"U+{ord(c):04X}" for c in odd[:POINTS]) + (", ..." if len(odd) > POINTS else "")
    return f"{shown} ({points})"


def quoted(label: str) -> str:
    """A label in quotes, readable.

    >>> quoted(" dog"), quoted("it's")
    ("'␣dog'", '"it\\'s"')
    """
    mark = '"' if "'" in label and '"' not in label else "'"
    return f"{mark}{readable(label)}{mark}"


def look_alikes(label: str) -> list[str]:
    """The printable characters of a label that can be taken for others, each once."""
    if label.isascii():
        return []
    letters = [c for c in label if c.isalpha()]
    # A script's own words are no riddle; a word all of whose letters look like ASCII ones, or one of two scripts, is.
    hidden = all(c.isascii() or _letter(c) for c in letters)
    mixed = any(c.isascii() for c in letters)
    out = []
    for i, c in enumerate(label):
        if c.isascii() or not c.isprintable():
            continue
        mark = unicodedata.category(c) in ("Mn", "Me")
        combined = mark and (i == 0 or label[i - 1].isascii() or label[i - 1] in out)
        if c in _SIGNS or (_letter(c) and (hidden or mixed)) or combined:
            out.append(c)
    return list(dict.fromkeys(out))


def _letter(c: str) -> bool:
    """Whether a letter or digit beyond ASCII looks like one of ASCII: by the list, or as a styled form of it."""
    if c in _LETTERS:
        return True
    plain = unicodedata.normalize("NFKC", c)
    return len(plain) == 1 and plain != c and plain.isascii() and plain.isalnum() and c.isalnum()
