"""numba's `njit`, whose cache on the disk is done without where no folder can take it.

numba keeps compiled code beside the module, or else in the user's cache folder (or in $NUMBA_CACHE_DIR), and refuses to
go on where it may write to neither: a read-only image without a home. There the code is compiled anew in each process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Any], Any]:
    """A decorator that compiles a function, as numba's does."""

    def compiled(function: Any) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:  # "cannot cache function: no locator available"
            if not options.get("cache"):
                raise
            without: dict[str, Any] = {k: v for k, v in options.items() if k != "cache"}
            return numba.njit(**without)(function)

    return compiled
