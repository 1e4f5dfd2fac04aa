"""Processors that round and add in another order: no verdict contradicts another, and each one's proofs verify elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.cluster import made

# Kernels of an older processor for BLAS, plain ones for numpy, code for any x86-64 by numba: no fused multiply-add.
OLDER = {
    "OPENBLAS_CORETYPE": "Sandybridge",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
    "NUMBA_CPU_NAME": "x86-64",
    "NUMBA_CPU_FEATURES": "+sse,+sse2",
}


def gonio(*arguments: str, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "gonio", *arguments], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["all", "nonnegative", "box:-1,1"])
def test_verdicts_of_an_older_processor_agree_and_its_proofs_verify_here(tmp_path, inputs):
    W = made.head(1500, 24).W
    W = np.vstack([W, 0.3 * W[:200] + 0.3 * W[200:400] + 0.3 * W[400:600]])  # some that cannot win
    np.savez(tmp_path / "head.npz", W=W.astype(np.float32))
    model, older = str(tmp_path / "head.npz"), OLDER | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    ask = ("can-win", model, "--link", "softmax", "--inputs", inputs, "--json", "-", "--proof")
    here = json.loads(gonio(*ask, str(tmp_path / "here.npz")))
    there = json.loads(gonio(*ask, str(tmp_path / "there.npz"), **older))
    never = [set(x["never"]) for x in (here, there)]
    wins = [set(range(len(W))) - set(x["never"]) - set(x["undecided"]) for x in (here, there)]
    assert never[0]
    assert not never[0] & wins[1]
    assert not never[1] & wins[0]
    assert ", 0 are refused" in gonio(
        "verify", model, "--link", "softmax", "--inputs", inputs, str(tmp_path / "there.npz")
    )
    assert ", 0 are refused" in gonio(
        "verify", model, "--link", "softmax", "--inputs", inputs, str(tmp_path / "here.npz"), **older
    )
