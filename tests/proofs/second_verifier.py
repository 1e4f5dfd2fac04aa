"""tools/check_proof.py as tests use it, and heads over every kind of inputs with proofs of every kind about them."""

from __future__ import annotations

import functools
import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import gonio
from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Head, Nonnegative, Observed
from gonio.files.write.exact_head import save_exact
from gonio.proofs.proof_file import save

TOOL = Path(__file__).parents[2] / "tools" / "check_proof.py"
spec = importlib.util.spec_from_file_location("check_proof", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def run(*arguments):
    """The tool in a Python that sees neither gonio nor any other package."""
    command = [sys.executable, "-I", "-S", str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def refused(head, certificates, folder):
    """Why the tool refuses each certificate, None where it does not; by way of both files."""
    save(folder / "p.npz", certificates)
    theirs = tool.Head(str(save_exact(head, folder / "p.head.npz")))
    proof = tool.read(str(folder / "p.npz"), "gonio proof 2")
    out = []
    for _, kind, fields in tool.certificates(proof):
        try:
            out.append(theirs.check(proof["head"], kind, fields))
        except tool.Refused as e:
            out.append(str(e))
    return out


D = 4
GAIN, SHIFT = np.float32([0.5, 1.25, 2, 0.7]), np.float32([0.3, -0.4, 0.1, 0.9])
INPUTS = {
    "all": AllInputs(),
    "nonnegative": Nonnegative(),
    "box": Box(-1, 1),
    "half-open box": Box([-1, -0.2785, -np.inf, 0], [1, np.inf, 0.5, np.inf]),
    "RMSNorm": AfterRMSNorm(GAIN),
    "RMSNorm with a dead coordinate": AfterRMSNorm(GAIN * [1, 0, 1, 1]),
    "LayerNorm": AfterLayerNorm(GAIN),
    "LayerNorm with shift": AfterLayerNorm(GAIN, SHIFT),
    "LayerNorm with a dead coordinate": AfterLayerNorm(GAIN * [1, 1, 0, 1], SHIFT),
    "observed": Observed(np.random.default_rng(1).standard_normal((40, D))),
}
CASES = [(name, biased) for name in INPUTS for biased in (False, True)]


def head_of(name, biased):
    """Twelve labels of width four; 0 lies among the others, 10 and 11 are equal."""
    rng = np.random.default_rng(3)
    W = rng.standard_normal((12, D)).astype(np.float32)
    W[0] = W[1:10].mean(axis=0)
    W[11] = W[10]
    b = (0.1 * rng.standard_normal(12)).astype(np.float32)
    b[11], b[0] = b[10], b.min()
    return Head(W, b if biased else None, link="softmax", inputs=INPUTS[name])


def proofs_of(head):
    """What gonio answers, and proves, about wins, ties, rankings, top sets and label sets."""
    out = list(gonio.can_win(head).certificates())
    pairs = [(10, 11), (0, 7), *((i, i + k) for i in range(1, 8) for k in (1, 2))]
    ties = gonio.can_tie(head, pairs=pairs)
    out += [ties.certificate(k) for k in range(len(pairs))]
    orders = ([1, 2, 3, 4, 5], [0, 1, 2], [5, 6], [8, 7, 6, 5, 4, 3, 2, 1], [1, 2])
    out += [gonio.can_rank(head, order).certificate for order in orders]
    out += [gonio.can_top(head, order).certificate for order in orders[1:3]]
    scores = head.replace(link="sigmoid")
    labels = [
        gonio.can_label(scores, on=on, off=off).certificate for on, off in (([1, 2], [3]), ([1, 3, 5, 7, 9], [0, 2, 4]))
    ]
    out += [replace(c, head=head.digest) for c in labels]  # scores do not hang on the link
    return [c for c in out if c.kind not in ("undecided", "open")]


@functools.cache
def proved(name, biased):
    head = head_of(name, biased)
    return head, proofs_of(head)
