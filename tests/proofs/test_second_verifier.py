"""tools/check_proof.py: without gonio and in whole numbers it comes to the same verdicts, on proofs and on forgeries."""

from __future__ import annotations

import ast
import functools
import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, GonioError, Head, Nonnegative, Observed
from gonio.cli import main
from gonio.core.row_table import Affine8, RowTable, Scaled
from gonio.files.write.exact_head import beside, save_exact
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.comparisons import Impossible, Possible
from gonio.proofs.kinds import KINDS
from gonio.proofs.proof_file import save, verify_file
from tests import real
from tests.cli.test_info import run as run_gonio

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


# -- heads over every kind of inputs, and proofs of every kind about them ----------------------------------------------

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


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}{', bias' if c[1] else ''}")
def test_both_verifiers_accept_what_gonio_proves(case, tmp_path):
    head, proofs = proved(*case)
    assert {c.kind for c in proofs} == set(KINDS) - {"undecided", "open"}
    assert not verify_all(head, proofs).refused
    assert refused(head, proofs, tmp_path) == [None] * len(proofs)


def outside(head, x):
    """Embeddings next to x that are not among the inputs, or only just not."""
    inputs, x = head.inputs, np.asarray(x, float)
    yield np.append(x[:-1], np.nan)
    yield np.append(x[:-1], np.inf)
    yield x[:-1]
    if isinstance(inputs, Nonnegative):
        yield np.where(np.arange(D) == np.argmin(x), -5e-324, x)
    if isinstance(inputs, Box):
        yield np.where(np.arange(D) == 0, np.nextafter(1, 2), x)
        yield np.where(np.arange(D) == 0, np.nextafter(-1, -2), x)
    if isinstance(inputs, Observed):
        yield np.nextafter(x, 9)
    if isinstance(inputs, (AfterRMSNorm, AfterLayerNorm)):
        shift = getattr(inputs, "shift", np.zeros(D))
        live = inputs.gain != 0
        z = np.where(live, (x - shift) / np.where(live, inputs.gain, 1), 0)
        spare = z.sum() ** 2 / (~live).sum() if isinstance(inputs, AfterLayerNorm) and not live.all() else 0
        yield shift + (x - shift) * (1 + 1e-9) * np.sqrt(D / (z @ z + spare))
        yield np.where(live, x, shift + 1e-9) if not live.all() else x * np.nan
        if isinstance(inputs, AfterLayerNorm) and live.all():
            yield x + 1e-3 * inputs.gain


def forged(head, c):
    """Certificates that were tampered with, none of which proves anything."""
    n = len(head)
    yield replace(c, head="0" * 64)
    if isinstance(c, Wins):
        loser = next(j for j in range(n) if j != c.label and j not in c.equals)
        yield replace(c, label=loser)
        yield replace(c, label=n)
        yield replace(c, label=-1)
        yield replace(c, equals=[*c.equals, loser])
        yield replace(c, label=loser, equals=[c.label, *c.equals])
        yield from (replace(c, x=x) for x in outside(head, c.x))
        if len(c.equals):
            yield replace(c, equals=[])
    if isinstance(c, (Ties, Possible)):
        yield from (replace(c, x=x) for x in outside(head, c.x))
    if isinstance(c, Ties):
        yield replace(c, b=c.a)
        yield replace(c, a=next(j for j in range(n) if j not in (c.a, c.b)))
    if isinstance(c, Possible) and len(c.above):
        yield replace(c, above=c.below, below=c.above)
    if isinstance(c, Impossible) and len(c.above):
        yield replace(c, below=c.above)
    if isinstance(c, NeverWins):
        weightless = isinstance(head.inputs, Observed)
        yield replace(c, rivals=[c.label], weights=[] if weightless else [1.0])
        yield replace(c, rivals=[n], weights=[] if weightless else [1.0])
        yield replace(c, rivals=[*c.rivals, c.label], weights=[] if weightless else [*c.weights, 0.0])
        yield replace(c, label=10, rivals=[11], weights=[] if weightless else [1.0])  # its equal
        yield replace(c, label=1, rivals=[], weights=[])
    weights = getattr(c, "weights", np.zeros(0))
    if len(weights):
        for move in (1e-3, -2 * weights[0], np.nan):
            yield replace(c, weights=np.append(weights[0] + move, weights[1:]))
        yield replace(c, weights=weights[:-1])
    elif isinstance(head.inputs, Observed) and hasattr(c, "weights"):
        yield replace(c, weights=[1.0])
    if isinstance(c, NeverTies):
        yield replace(c, b=c.a)
        if len(c.pair_weights):
            yield replace(c, pair_weights=np.add(c.pair_weights, [1e-3, 0]))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}{', bias' if c[1] else ''}")
def test_both_verifiers_refuse_what_was_tampered_with(case, tmp_path):
    head, proofs = proved(*case)
    bad = [f for c in proofs for f in forged(head, c)]
    assert len(bad) > 80
    accepted = set(range(len(bad))) - set(verify_all(head, bad).refused)
    assert not accepted, [bad[k] for k in accepted]
    widths = [k for k, c in enumerate(bad) if len(getattr(c, "x", range(D))) != D]  # a file holds one width
    several = [c for k, c in enumerate(bad) if k not in widths and c.head == head.digest]
    groups = [
        several,
        [c for c in bad if c.head != head.digest],
        *([bad[k]] for k in widths[:3] if bad[k].kind != "ties"),
    ]
    for certificates in groups:
        for c, why in zip(certificates, refused(head, certificates, tmp_path), strict=True):
            assert why, c


@pytest.mark.parametrize("biased", [False, True])
def test_over_all_inputs_weights_and_rivals_admit_of_no_exchange(biased, tmp_path):
    """The stored weights are those of one exact mean: near others there is none, whichever verifier looks."""
    head, proofs = proved("all", biased)
    bad = []
    for c in proofs:
        if isinstance(c, NeverWins) and len(c.rivals) <= D + 1:
            move = np.zeros(len(c.weights))
            move[[0, -1]] = 1e-3, -1e-3
            other = next(j for j in range(1, 10) if j not in c.rivals and j != c.label)
            bad += [
                replace(c, weights=c.weights + move),
                replace(c, weights=c.weights[::-1]),
                replace(c, rivals=[other, *c.rivals[1:]]),
                replace(c, label=other),
            ]
    assert len(bad) >= 4
    assert len(verify_all(head, bad).refused) == len(bad)
    assert all(refused(head, bad, tmp_path))


@pytest.mark.parametrize("name", ["box", "RMSNorm", "LayerNorm with shift", "nonnegative"])
def test_a_swapped_rival_is_judged_alike_by_both(name, tmp_path):
    """Over bounded inputs another rival may do as well: then it is a proof, and both say so."""
    head, proofs = proved(name, True)
    swapped = []
    for c in (c for c in proofs if isinstance(c, NeverWins)):
        for j in range(1, 10):
            if j not in c.rivals and j != c.label:
                swapped += [
                    replace(c, rivals=np.where(np.arange(len(c.rivals)) == k, j, c.rivals))
                    for k in range(len(c.rivals))
                ]
    theirs = refused(head, swapped, tmp_path)
    ours = verify_all(head, swapped).refused
    assert [why is not None for why in theirs] == [k in ours for k in range(len(swapped))]
    assert len(ours) > 10


def test_a_mean_of_fewer_rivals_than_coordinates_is_found(tmp_path):
    """A row that is the rounded mean of a few others: over x >= 0 only what has the wrong sign need vanish."""
    rng = np.random.default_rng(1004)
    W = rng.standard_normal((9, 9))
    W[0] = W[1:].mean(axis=0)
    b = rng.standard_normal(9)
    b[0] = b.min() - 0.2
    head = Head(W, b, link="softmax", inputs=Nonnegative())
    proofs = [c for c in gonio.can_win(head).certificates() if c.label == 0]
    assert [c.kind for c in proofs] == ["never wins"]
    assert refused(head, proofs, tmp_path) == [None]


def test_undecided_proves_nothing(tmp_path):
    head = head_of("box", True)
    (why,) = refused(head, [Undecided(head.digest, 1, 9.0, "no time", [2], [1.0])], tmp_path)
    assert "proves nothing" in why


@pytest.mark.parametrize("link", ["cosine", "vectors", "input", "unknown"])
def test_what_scores_nothing_has_no_proofs(link, tmp_path):
    head = Head(np.eye(3), link=link)
    (why,) = refused(head, [Wins(head.digest, 0, [1.0, 0, 0])], tmp_path)
    assert link in why


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
