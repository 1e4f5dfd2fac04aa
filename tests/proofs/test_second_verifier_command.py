"""tools/check_proof.py as a command: the exact head it reads, what it prints, and its exit codes."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio import GonioError, Head
from gonio.cli import main
from gonio.core.row_table import Affine8, RowTable, Scaled
from gonio.files.write.exact_head import beside, save_exact
from gonio.proofs.certificates import NeverWins, Wins
from gonio.proofs.proof_file import save, verify_file
from tests import real
from tests.cli.in_process import run as run_gonio
from tests.proofs.second_verifier import INPUTS, TOOL, D, head_of, run, tool

# -- the exact head ----------------------------------------------------------------------------------------------------

W = np.random.default_rng(5).standard_normal((7, D))
W[0, 0] = -0.0
STORED = {
    "float16": W.astype(np.float16),
    "float32": W.astype(np.float32),
    "float64": W,
    "bfloat16": W.astype(ml_dtypes.bfloat16),
    "float8": W.astype(ml_dtypes.float8_e4m3fn),
    "columns first": np.asfortranarray(W.astype(np.float32)),
    "8 bits with scales": RowTable(
        np.arange(7 * D, dtype=np.uint8).reshape(7, D), unpack=Affine8(np.float32(0.1) * np.arange(1, 8, dtype=np.float32), np.float32(9)), kind="uint8"
    ),
    "times a factor": RowTable(W.astype(np.float32), unpack=Scaled(1 / 3), kind="float32"),
    "huge and tiny": W * np.logspace(-300, 300, 7)[:, None],
}  # fmt: skip


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("name", ["all", "box", "half-open box", "LayerNorm with shift", "observed"])
def test_the_digest_is_made_again_from_the_exact_head(stored, name, tmp_path):
    bias = None if name == "all" else np.linspace(-0.0, 1, 7, dtype=np.float32)
    head = Head(STORED[stored], bias, link="softmax", inputs=INPUTS[name], softcap=30.0 if name == "box" else None)
    path = save_exact(head, tmp_path / "h.npz")
    theirs = tool.Head(str(path))
    assert theirs.digest == head.digest
    rows = [[float(v) / 2**theirs.E if theirs.E < 1000 else None for v in theirs.row(j)] for j in range(7)]
    assert theirs.E >= 1000 or np.array_equal(rows, head.W)
    again = gonio.load(path)
    assert again.digest == head.digest
    kept = stored if stored in ("float16", "float64") else "float64" if stored == "huge and tiny" else "float32"
    assert again.rows.kind == kept


def test_the_head_lies_beside_the_proof():
    assert beside("a/p.npz") == Path("a/p.head.npz")
    assert beside("proof") == Path("proof.head.npz")


# -- the command -------------------------------------------------------------------------------------------------------


def test_it_is_one_short_file_of_the_standard_library():
    text = TOOL.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 350
    names = [a.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for a in node.names]
    names += [node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_what_can_win_saves_is_checked_by_a_stranger(tmp_path):
    W = np.array([[0, 1], [0, -1], [1, 0], [-1, 0], [0.1, 0.2], [0.9, 0.9], [0.9, 0.9]])
    np.savez(tmp_path / "m.npz", W=W)
    done = run_gonio("can-win", tmp_path / "m.npz", "--proof", tmp_path / "p.npz")
    assert f"head       {tmp_path / 'p.head.npz'}" in done.stdout
    assert verify_file(gonio.load(tmp_path / "p.head.npz"), tmp_path / "p.npz").fine
    seen = run(tmp_path / "p.npz")
    assert (seen.returncode, seen.stderr) == (0, "")
    assert "checking 7 of 7 certificates" in seen.stdout
    assert "wins       6 hold, 0 refused" in seen.stdout
    assert "never wins 1 hold, 0 refused" in seen.stdout
    assert "ms each" in seen.stdout


@pytest.mark.parametrize(
    "question",
    [
        ("can-tie", "#1", "#2"),
        ("can-rank", "#1", "#2", "#3"),
        ("can-top", "#1", "#2"),
        ("can-label", "--link", "sigmoid", "--on", "#1", "--off", "#2"),
        ("can-label", "--link", "sigmoid", "--on", "#1", "--inputs", "box:-1,1"),
    ],
    ids=" ".join,
)
def test_every_command_writes_the_head_beside_its_proof(question, tmp_path):
    np.savez(tmp_path / "m.npz", W=head_of("all", True).W, b=head_of("all", True).bias)
    command = [question[0], str(tmp_path / "m.npz"), *question[1:], "--proof", str(tmp_path / "p.npz")]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert tool.main([str(tmp_path / "p.npz")]) == 0


@pytest.fixture
def files(tmp_path):
    head = head_of("nonnegative", True)
    proofs = [c for c in gonio.can_win(head).certificates() if c.kind != "undecided"]
    save_exact(head, tmp_path / "p.head.npz")
    return head, proofs, tmp_path / "p.npz"


def test_it_checks_kinds_labels_and_samples(files):
    _, proofs, path = files
    save(path, proofs)
    never = sum(isinstance(c, NeverWins) for c in proofs)
    assert f"checking {never} of {never}" in run(path, "--kind", "never wins").stdout
    assert "checking 1 of 1" in run(path, path.with_name("p.head.npz"), "--label", 1, "--kind", "wins").stdout
    assert f"checking 3 of {len(proofs)}" in run(path, "--sample", 3, "--seed", 4).stdout
    assert f"checking {len(proofs)} of {len(proofs)}" in run(path, "--sample", 999).stdout
    none = run(path, "--kind", "ties")
    assert (none.returncode, none.stdout) == (2, "")


def test_a_refusal_is_one_sentence_and_exit_code_1(files):
    head, proofs, path = files
    win = next(c for c in proofs if isinstance(c, Wins) and not len(c.equals))
    save(path, [*proofs, replace(win, x=-win.x - 1e-9)])
    seen = run(path)
    assert seen.returncode == 1
    assert f"refused: certificate {len(proofs)} (wins): x is not one of the head's inputs (nonnegative)." in seen.stdout
    save(path, [replace(c, head="1" * 64) for c in proofs])
    seen = run(path)
    assert seen.returncode == 1
    assert seen.stdout.count(f"it is about the head 11111111, and this is {head.digest[:8]}.") == len(proofs)


def test_files_that_are_none_give_exit_code_2(files, tmp_path):
    _, proofs, path = files
    assert run(tmp_path / "absent.npz").returncode == 2
    save(path, proofs)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert run(path).returncode == 2
    np.savez(path, W=np.eye(2))
    assert run(path).returncode == 2
    path.write_bytes(whole)
    with np.load(path) as z:
        held = {k: z[k] for k in z.files}
    np.savez(path, **(held | {"format": np.array("gonio proof 1")}))
    old = run(path)
    assert old.returncode == 2
    assert "'gonio proof 1', not 'gonio proof 2'" in old.stderr
    assert "Traceback" not in old.stderr
    with pytest.raises(GonioError, match="written anew"):
        verify_file(files[0], path)
    np.savez(path, **{k: v for k, v in held.items() if k != "never_label"})
    assert "never_label" in run(path).stderr


def test_a_changed_head_is_told_by_its_digest(files):
    _, proofs, path = files
    save(path, proofs)
    place = path.with_name("p.head.npz")
    with np.load(place) as z:
        held = {k: z[k] for k in z.files}
    rows = held["W"].copy()
    rows[3, 1] = np.nextafter(rows[3, 1], np.float32(9))
    for change in ({"W": rows}, {"link": np.array("dot")}, {"inputs": np.array("all")}, {"softcap": np.array(30.0)}):
        np.savez(place, **(held | change))
        assert run(path).stdout.count("it is about the head") == len(proofs)
    np.savez(place, **(held | {"W": held["W"].astype(float)}))  # the same numbers in another type are the same head
    assert run(path).returncode == 0
    np.savez(place, **(held | {"W": held["W"] * np.nan}))
    assert run(path).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["all", "nonnegative"])
def test_all_proofs_of_a_real_model_hold(inputs, tmp_path):
    from gonio.papers import g2pm

    head = g2pm.head(real.wheel("g2pM-0.1.2.5")).replace(inputs=inputs)
    save(tmp_path / "p.npz", list(gonio.can_win(head).certificates()))
    save_exact(head, tmp_path / "p.head.npz")
    seen = run(tmp_path / "p.npz")
    assert seen.returncode == 0, seen.stdout
    assert "checking 876 of 876 certificates" in seen.stdout
