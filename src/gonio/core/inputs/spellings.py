"""Inputs from what a caller writes: the objects themselves, or their spelling as text."""

from __future__ import annotations

import re
from typing import Any

from gonio.core.errors import GonioError
from gonio.core.inputs.base import Inputs
from gonio.core.inputs.sets import AllInputs, Box, Nonnegative, Observed

SPELLINGS = "all, nonnegative, box:LOW,HIGH, observed:FILE.npy"


def parse(text: str) -> Inputs:
    """The inputs that a command line or a file names: all, nonnegative, box:LOW,HIGH or observed:FILE.npy.

    >>> print(parse("box:-0.2785,inf"))
    box -0.2785 <= x <= inf
    """
    named = _file_named(text)
    if named is not None:
        from gonio.core.npy_file import read_npy

        return Observed(read_npy(named, "inputs"))
    return _plain(text)


def without_files(text: str) -> Inputs | None:
    """The inputs that a file from elsewhere names; None where it names a file, which is never opened for it."""
    return None if _file_named(text) is not None else _plain(text)


def _file_named(text: str) -> str | None:
    """The file of observed:FILE."""
    kind, _, rest = text.strip().partition(":")
    return rest if kind.strip() == "observed" and rest else None


def _plain(text: str) -> Inputs:
    """The inputs of a text that names no file; nothing is ever opened here."""
    kind, _, rest = text.strip().partition(":")
    if kind == "all" and not rest:
        return AllInputs()
    if kind == "nonnegative" and not rest:
        return Nonnegative()
    if kind == "box" and re.fullmatch(r"[^,]+,[^,]+", rest):
        try:
            low, high = (float(v) for v in rest.split(","))
        except ValueError:
            pass
        else:
            return Box(low, high)
    raise GonioError(f"inputs: {text!r} is not understood; write one of {SPELLINGS}.")


def of(x: Any) -> Inputs:
    """`x` as inputs: one of the classes of `sets`, or its spelling as text; None is all inputs."""
    if x is None:
        return AllInputs()
    if isinstance(x, Inputs):
        return x
    if isinstance(x, str):
        return parse(x)
    raise GonioError(
        f"inputs: a {type(x).__name__} was given; pass AllInputs(), Nonnegative(), Box(low, high), "
        f"AfterRMSNorm(gain), AfterLayerNorm(gain, shift), Observed(F), or one of the texts {SPELLINGS}."
    )
