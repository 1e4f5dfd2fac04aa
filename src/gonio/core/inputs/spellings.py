"""Inputs from what a caller writes: the objects themselves, or their spelling as text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.inputs.base import Inputs
from gonio.core.inputs.sets import AllInputs, Box, Nonnegative, Observed

SPELLINGS = "all, nonnegative, box:LOW,HIGH, observed:FILE.npy"


def parse(text: str) -> Inputs:
    """The inputs that a command line or a file names: all, nonnegative, box:LOW,HIGH or observed:FILE.npy.

    >>> print(parse("box:-0.2785,inf"))
    box -0.2785 <= x <= inf
    """
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
    if kind == "observed" and rest:
        try:
            return Observed(np.load(rest, allow_pickle=False))
        except (OSError, ValueError, EOFError) as e:
            if isinstance(e, GonioError):
                raise
            raise GonioError(f"inputs: {rest} cannot be read as a .npy array ({e}).") from None
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
