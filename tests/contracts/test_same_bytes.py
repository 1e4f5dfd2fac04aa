"""The same input makes the same page, byte for byte, whatever order a process's hashes give."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = """
import sys
import numpy as np
import gonio
from gonio.explorer import build
from gonio.report.junit import junit

rng = np.random.default_rng(0)
head = gonio.Head(rng.normal(size=(40, 4)), link="softmax", labels=[f"label {i}" for i in range(40)])
audit = gonio.audit(head, embeddings=rng.normal(size=(200, 4)), pairs=[("label 1", "label 2")])
check = gonio.check(rng.normal(size=(80, 5)), rng.normal(size=(20, 5)), threshold=0.5)
pages = {
    "audit": audit.to_html(), "with rows": audit.to_html(embed_rows=True), "check": check.to_html(),
    "explore": build.page(head), "audit junit": junit(audit), "check junit": junit(check),
    "cards": audit._repr_html_() + check._repr_html_(),
}
import hashlib
print({k: hashlib.sha256(v.encode()).hexdigest() for k, v in pages.items()})
"""


def sums(seed: str) -> str:
    env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", MADE], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("seeds", [("1", "2")])
def test_the_same_input_makes_the_same_pages_in_another_process(seeds):
    first, second = (sums(s) for s in seeds)
    assert first == second
