"""The assertions for users' test suites: what passes is proven, what fails names labels, reason and proof."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gonio import GonioError, Head, gauge
from gonio.testing import (
    assert_every_label_can_win,
    assert_neighbours_kept,
    assert_no_padded_wins,
    assert_same_model,
    kept_proofs,
)

ROOT = Path(__file__).parents[2]
SQUARE = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])


def named(W, link="softmax", **more) -> Head:
    return Head(np.array(W, dtype=float), link=link, labels=[f"label {i}" for i in range(len(W))], **more)


def said(assertion, *given, **options) -> str:
    with pytest.raises(AssertionError) as failed:
        assertion(*given, **options)
    return str(failed.value)


def test_corners_of_a_square_can_win_and_its_centre_cannot():
    assert_every_label_can_win(named(SQUARE))
    inside = named([*SQUARE, [0.25, 0.25]])
    told = said(assert_every_label_can_win, inside)
    assert "1 of 5 labels can never win: 'label 4'." in told
    assert "'label 4': a mean of other labels is never below it: " in told
    assert "(verified)" in told
    assert "--gonio-proofs" in told
    assert_every_label_can_win(inside, but=["label 4"])


def test_a_label_that_shares_the_top_fails_unless_that_is_allowed():
    twins = named([*SQUARE, [1.0, 0]])
    told = said(assert_every_label_can_win, twins)
    assert "2 of 5 labels can be on top only with equal rows" in told
    assert "'label 0', 'label 4'" in told
    assert_every_label_can_win(twins, with_equals=True)


def test_padded_rows_inside_pass_and_outside_fail():
    head = named([*SQUARE, [0.25, 0.25], [2.0, 2.0]])
    assert_no_padded_wins(head, padded=["label 4"])
    assert_no_padded_wins(head, padded=[])
    told = said(assert_no_padded_wins, head, padded=["label 4", "label 5"])
    assert "1 of 2 padded rows can be on top: 'label 5'." in told
    assert "'label 5': there is an input at which it leads by at least " in told
    assert "gonio pad" in told
    with pytest.raises(GonioError, match="nothing in the model tells"):
        assert_no_padded_wins(head)


def test_the_same_model_passes_and_another_fails_with_its_worst_labels():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(40, 4))
    moved = gauge.Translation(np.array([3.0, 1, 2, -1])).apply(named(W))
    assert_same_model(named(W), moved)
    W[7] = -W[7]
    assert "the models are not the same" in said(assert_same_model, named(W), moved)
    assert "'label 7'" in said(assert_same_model, named(W), moved)
    few = named(rng.normal(size=(3, 4))), named(rng.normal(size=(3, 4)))
    assert "cannot be told" in said(assert_same_model, *few)


def test_neighbours_of_a_rotated_table_are_kept_and_of_another_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    Q = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    assert_neighbours_kept(X @ Q, X, at_least=1.0)
    told = said(assert_neighbours_kept, rng.normal(size=(300, 8)), X)
    assert "is kept, 0.9 is wanted, over 300 of 300 common documents. Moved most: " in told
    assert "estimated" in said(assert_neighbours_kept, rng.normal(size=(300, 8)), X, sample=50)
    with pytest.raises(GonioError, match="a share from 0 to 1"):
        assert_neighbours_kept(X, X, at_least=90)
    with pytest.raises(GonioError, match="there are cosine"):
        assert_neighbours_kept(X, X, metric="angle")


def test_a_model_is_whatever_load_takes(tmp_path):
    np.savez(tmp_path / "m.npz", W=SQUARE)
    assert_every_label_can_win(tmp_path / "m.npz", link="softmax")


def test_proofs_of_failures_are_kept_and_checked_without_gonio(tmp_path):
    kept_proofs.keep_in(tmp_path / "proofs")
    try:
        told = said(assert_every_label_can_win, named([*SQUARE, [0.25, 0.25]]))
    finally:
        kept_proofs.keep_in(None)
    path = next(p for p in (tmp_path / "proofs").glob("never-wins-*.npz") if ".head" not in p.name)
    assert f"1 proofs are in {path}" in told
    done = subprocess.run([sys.executable, ROOT / "tools" / "check_proof.py", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_plugin_takes_the_folder_and_the_message_names_the_proof(tmp_path):
    (tmp_path / "test_head.py").write_text(
        "import numpy as np\nfrom gonio import Head\nfrom gonio.testing import assert_every_label_can_win\n"
        "def test_it():\n    W = np.array([[1.0, 0], [0, 1], [-1, -1], [0, 0]])\n"
        "    assert_every_label_can_win(Head(W, link='softmax', labels=list('abcd')))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]  # the plugin is there by being installed
    done = subprocess.run(
        [*command, "--gonio-proofs", "proofs", "test_head.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "AssertionError: 1 of 4 labels can never win: 'd'." in done.stdout
    assert "'d': a mean of other labels is never below it" in done.stdout
    assert len(list((tmp_path / "proofs").glob("*.npz"))) == 2


def test_the_plugin_imports_nothing_heavy():
    code = "import sys, gonio.pytest_plugin; print([m for m in ('numpy', 'numba', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
