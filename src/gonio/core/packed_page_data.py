"""Tables that a page carries: numbers as bytes, deflated, in letters that end no element. `unpack.js` reads them.

A whole number takes as many bytes as the largest needs; any other its four leading digits (0.05138 = 5138 / 10^5) in
two bytes and the power of ten in a third. The bytes of one place lie together, which deflates best.
"""

from __future__ import annotations

import base64
import json
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of the 85 letters three mean something to HTML: others stand for them.
SAFE = str.maketrans("&<>", ".,:")


class Packed:
    """Numbers laid behind each other; what `whole`, `decimal` and `raw` return goes into the data of `text`."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def whole(self, values: Sequence[int | None]) -> dict[str, Any]:
        """Whole numbers from 0 on; None stands for what is not known.

        >>> Packed().whole([3, None, 300])
        {'whole': 2, 'count': 3, 'at': 0}
        """
        known = np.array([-1 if v is None else v for v in values], np.int64)
        width = 1
        while len(known) and known.max() >= 256**width - 1:  # the largest of all stands for None
            width += 1
        return {"whole": width, "count": len(known), "at": self._lay(known, width)}

    def decimal(self, values: Sequence[float | int | None]) -> dict[str, Any]:
        """Any numbers to four digits; what these would falsify (1 for a cosine below it) is kept as it is.

        >>> Packed().decimal([0.5, 0.999999])
        {'decimal': 2, 'at': 0, 'as_is': [[1, 0.999999]]}
        """
        x = np.array([np.nan if v is None else v for v in values], np.float64)
        size = np.abs(x)
        with np.errstate(all="ignore"):
            power = np.where(size > 0, np.floor(np.log10(size)) - 3, 0)
            power = np.where((x == np.rint(x)) & (size < 30_000), 0, power)
            digits = np.rint(x / 10.0**power)
            wrong = ((np.abs(digits * 10.0**power) >= 1) & (size < 1)) | (np.abs(power) > 100)
            wrong |= (x == np.rint(x)) & (size >= 30_000)
        wrong &= np.isfinite(x)
        lost = wrong | ~np.isfinite(x)
        digits[lost], power[lost] = -(2**15), 0
        at = self._lay(digits.astype(np.int64), 2)
        self._lay(power.astype(np.int64), 1)
        spec: dict[str, Any] = {"decimal": len(x), "at": at}
        kept = [[i, values[i]] for i in np.flatnonzero(wrong).tolist()]
        return {**spec, "as_is": kept} if kept else spec

    def raw(self, data: bytes) -> dict[str, Any]:
        """Bytes as they are."""
        at = self.size
        self.parts.append(data)
        self.size += len(data)
        return {"raw": len(data), "at": at}

    def text(self, data: Any) -> str:
        """The data, with everything laid so far, as text for a script element.

        >>> Packed().text([1]).isascii()
        True
        """
        head = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")
        small = zlib.compress(len(head).to_bytes(4, "little") + head + b"".join(self.parts), 9)
        return f"{len(small)} {base64.b85encode(small, pad=True).decode('ascii').translate(SAFE)}"

    def _lay(self, x: np.ndarray, width: int) -> int:
        """The lowest bytes of all numbers, then the next."""
        planes = x.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].T
        return self.raw(np.ascontiguousarray(planes).tobytes())["at"]


def unpack_script() -> str:
    """The script that reads what was packed."""
    return (files("gonio.core") / "unpack.js").read_text(encoding="utf-8")
