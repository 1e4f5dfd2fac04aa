"""Labels that another settles by itself: an equal row with an equal bias (twins) or with a higher one (dominated)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gonio.core.inputs import Problem
from gonio.core.row_table import RowTable, groups_of_equal


class Equal(NamedTuple):
    """Groups of twins, and for each settled label the rival that is at least as high everywhere."""

    twins: tuple[np.ndarray, ...]
    twin_of: dict[int, int]
    below: dict[int, int]


def equal_rows(problem: Problem) -> Equal:
    """Twins (by value, -0.0 = 0.0) and dominated labels. Neither can ever be strictly highest."""
    V = problem.V.view()
    V.flags.writeable = False  # so that the rows are shared, not copied
    twins: list[np.ndarray] = []
    twin_of: dict[int, int] = {}
    below: dict[int, int] = {}
    for group in groups_of_equal(RowTable(V)):
        c = problem.c[group]
        best = int(group[np.argmax(c)])
        below |= {int(i): best for i in group[c < c.max()]}
        for value in np.unique(c):
            same = group[c == value]
            if len(same) > 1:
                same.flags.writeable = False
                twins.append(same)
                twin_of |= {int(i): int(same[0] if i != same[0] else same[1]) for i in same}
    return Equal(tuple(sorted(twins, key=lambda g: int(g[0]))), twin_of, below)
