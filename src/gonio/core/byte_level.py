"""How a byte-level tokenizer writes bytes as characters: one character a byte, none of them blank.

The printable bytes of Latin-1 (! to ~, ¡ to ¬, ® to ÿ) stand for themselves; the others, in order, are the characters
from U+0100 on. So a space is Ġ, a newline Ċ, and é, two bytes in UTF-8, is Ã©.
"""

from __future__ import annotations

_PLAIN = frozenset((*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)))
_OTHERS = [b for b in range(256) if b not in _PLAIN]
CHARACTERS: tuple[str, ...] = tuple(chr(b if b in _PLAIN else 256 + _OTHERS.index(b)) for b in range(256))
_BYTES = {c: b for b, c in enumerate(CHARACTERS)}


def to_byte_level(raw: bytes) -> str:
    """The characters that stand for these bytes.

    >>> to_byte_level(" café\\n".encode())
    'ĠcafÃ©Ċ'
    """
    return "".join(CHARACTERS[b] for b in raw)


def from_byte_level(text: str) -> bytes | None:
    """The bytes that these characters stand for; None where one of them stands for none.

    >>> from_byte_level("Ġdog"), from_byte_level("日")
    (b' dog', None)
    """
    found = [_BYTES.get(c) for c in text]
    return None if None in found else bytes(b for b in found if b is not None)
