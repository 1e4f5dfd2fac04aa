"""The numbers that a sentence names."""

from __future__ import annotations

import re


def numbers(text: str) -> list[float]:
    return [float(x.replace(",", "")) for x in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]
