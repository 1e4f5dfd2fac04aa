"""How the kernels of this folder are compiled, and the two numbers that their rounding bounds use."""

from __future__ import annotations

from typing import Any

# Contraction to fused multiply-add rounds once instead of twice, so every bound holds with and without it.
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "nsz"}, "error_model": "numpy"}
# A step inside a kernel: it allocates nothing, so it need not count references to the arrays of the named tuples it is
# given (which would double its time), and it is compiled into its caller.
INNER: Any = {**OPTIONS, "forceinline": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
UNIT_ROUNDOFF = 2.0**-53
DOUBTFUL = 1e-13  # a sum this small against its terms may have the wrong sign: some hundred roundings
