"""What is known of a label or a pair: one word for it, and the code under which arrays keep it."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import numpy as np

Answer = Literal["yes", "no", "undecided"]
UNDECIDED, WINS, NEVER, SHARED = range(4)  # in arrays of codes; `Status` lists them in this order


class Status(Enum):
    """Can it be on top? The value is the sentence to print."""

    UNDECIDED = "neither is proven"
    WINS = "some input puts it strictly on top"
    NEVER = "no input puts it on top"
    SHARED = "it reaches the top only together with labels whose scores are equal everywhere"

    @property
    def answer(self) -> Answer:
        """The status as a yes or no."""
        return _ANSWERS[self]


_ANSWERS: dict[Status, Answer] = {
    Status.UNDECIDED: "undecided",
    Status.WINS: "yes",
    Status.NEVER: "no",
    Status.SHARED: "yes",
}
_BY_CODE = np.array(list(Status), dtype=object)


def statuses(codes: np.ndarray) -> np.ndarray:
    """The statuses that codes stand for, as an array of objects."""
    return _BY_CODE[codes]
