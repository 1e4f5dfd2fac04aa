"""Every writing command, killed in the middle of its writing: the output is the old one or the new one, whole."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import shutil
import signal
import time
import warnings
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np
import pytest

import gonio
from gonio.cli import main
from gonio.cli.paths import Writes, WritesFolder, WritesInto
from gonio.core.leftovers import NAME
from gonio.core.whole_folder import MARKER
from tests.contracts.test_outputs import COMMANDS

KILLS = 50
OLD = b"the result of an earlier run"


def is_json(path):
    json.loads(path.read_bytes())


def is_xml(path: Path) -> None:
    assert ElementTree.parse(path).getroot().tag == "testsuite"


def is_page(path):
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")


def is_table(path):
    assert len({len(row) for row in csv.reader(path.read_text(encoding="utf-8").splitlines())}) == 1


def is_npz(path):
    assert zipfile.ZipFile(path).testzip() is None


def is_npy(path):
    assert np.load(path).shape[1] == 8


def is_picture(path):
    assert path.read_bytes().endswith(b"IEND\xaeB`\x82")


def is_safetensors(path):
    assert gonio.load(path, link="softmax").shape == (8, 3)


def is_folder(path):
    for name in json.loads((path / MARKER).read_bytes())["files"]:
        is_npz(path / name)
    assert gonio.load(path / "m.npz").digest


def is_canonical(path):
    assert gonio.load(path / "head.npz").shape == (8, 3)
    is_npz(path / "inputs.npz")
    is_json(path / "canonical.json")


BY_ENDING = {".png": is_picture, ".html": is_page, ".npz": is_npz, ".css": lambda path: path.read_text()}
M, S = "m.npz", ["--link", "sigmoid"]
FACTORS = ["--users", "u.npy", "--items", "i.npy"]
SMALL = ["--simulated-users", "60", "--simulated-items", "30", "--rank", "3"]
LAMBDAS = ["--lam-product", "3", "--lam-factors", "1"]
# The command line before the name of the output, what its whole output is, and further options.
CASES = {
    "info --json": ([M], is_json),
    "audit --json": ([M], is_json),
    "audit --html": ([M], is_page),
    "audit --csv": (FACTORS, is_table),
    "audit --junit": ([M], is_xml),
    "alike --json": ([M, "a", "b"], is_json),
    "similar --json": ([M, "a"], is_json),
    "study --json": (["sphere", "t.npy"], is_json),
    "similar --csv": ([M, "a"], is_table),
    "diagnose --json": ([M], is_json),
    "diagnose --plots": ([M, "--no-orbit"], is_picture),
    "can-win --json": ([M], is_json),
    "can-win --csv": ([M], is_table),
    "can-win --proof": ([M], is_npz),
    "can-tie --json": ([M, "a", "b"], is_json),
    "can-tie --csv": ([M, "a", "b"], is_table),
    "can-tie --proof": ([M, "a", "b"], is_npz),
    "can-rank --json": ([M, "a", "b"], is_json),
    "can-rank --proof": ([M, "a", "b"], is_npz),
    "can-top --json": ([M, "a", "b"], is_json),
    "can-top --proof": ([M, "a", "b"], is_npz),
    "can-label --json": ([M, *S, "--on", "a"], is_json),
    "can-label --csv": ([M, *S, "--sets", "sets"], is_table),
    "can-label --proof": ([M, *S, "--on", "a"], is_npz),
    "patterns --json": ([M, *S], is_json),
    "patterns --out": ([M, *S], is_npy),
    "dial --json": ([M, "a", "b", "--cosine", "0"], is_json),
    "dial --out": ([M, "a", "b", "--cosine", "0", "--overwrite"], is_folder),
    "dial --out --head-only": ([M, "a", "b", "--cosine", "0", "--overwrite", "--head-only"], is_safetensors),
    "compare --json": ([M, M], is_json),
    "verify --json": ([M, "proof.npz"], is_json),
    "pad --out": ([M, "--to", "12", "--overwrite"], is_folder),
    "pad --json": ([M, "--to", "12", "--overwrite", "--out", "padded"], is_json),
    "pad --proof": ([M, "--to", "12", "--overwrite", "--out", "padded"], is_npz),
    "explore --html": ([M, "--no-open"], is_page),
    "factors dropout --json": (SMALL, is_json),
    "factors rescale --json": (SMALL + LAMBDAS, is_json),
    "factors project --json": (SMALL, is_json),
    "factors restarts --json": ([*SMALL, *LAMBDAS, "--starts", "2"], is_json),
    "factors figure1 --json": (SMALL + LAMBDAS, is_json),
    "factors figure1 --out": (SMALL + LAMBDAS, is_picture),
    "canonicalise --out": ([M, "--embeddings", "u.npy", "--overwrite"], is_canonical),
    "canonicalise --json": ([M, "--embeddings", "u.npy", "--overwrite", "--out", "canonical"], is_json),
    "direction --json": ([M, "v.npy"], is_json),
    "direction --csv": ([M, "v.npy"], is_table),
    "alike-inputs --json": ([M, "--embeddings", "u.npy"], is_json),
    "alike-inputs --csv": ([M, "--embeddings", "u.npy"], is_table),
    "check --json": (["t.npy"], is_json),
    "check --html": (["t.npy"], is_page),
    "check --junit": (["t.npy"], is_xml),
    "apply --json": (["r.npz", "t.npy", "applied.npy"], is_json),
    "reproduce --out": (["zhou-2022"], is_json),
    "reproduce --json": (["grivas-2024"], is_json),
}
# These need data, or a model that is run, and write as the others do; `states --out` is killed in tests/cli/test_text.py.
ELSEWHERE = {"factors movielens --json", "states --json", "states --out", "compare --csv", "undertrained --json",
             "undertrained --csv"}  # fmt: skip
# State folders: a killed run goes on from one in tests/cluster/test_state.py.
ELSEWHERE |= {f"{x} --state" for x in ("can-win", "can-tie", "audit", "check", "diagnose", "patterns", "reproduce")}


def test_every_writing_command_is_killed():
    written = {
        f"{' '.join(path)} {p.opts[0]}"
        for path, command in COMMANDS.items()
        for p in command.params
        if isinstance(p, click.Option) and isinstance(p.type, Writes | WritesFolder | WritesInto)
    }
    assert written == {name.removesuffix(" --head-only") for name in CASES} | ELSEWHERE


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("m.npz", W=rng.standard_normal((8, 3)).astype(np.float32), labels=np.array(list("abcdefgh")))
    np.save("u.npy", rng.standard_normal((20, 3)))
    np.save("i.npy", rng.standard_normal((9, 3)))
    np.save("v.npy", np.arange(3.0))
    np.save("t.npy", rng.standard_normal((60, 5)).astype(np.float32))
    gonio.remedies.Center().fit(np.load("t.npy")).save("r.npz")
    Path("sets").write_text("a\tb\nc\n")
    (tmp_path / "out").mkdir()
    return tmp_path


def call(line):
    with contextlib.suppress(SystemExit):  # compare and the like say something with their exit code
        main.main(line, standalone_mode=False)


def output_of(name):
    """The option's value, and the file or folder to look at."""
    at = Path("out").absolute()
    if "--plots" in name:
        return at, at / "hubness.png"
    if name == "reproduce --out":
        return at, at / "reproduction.json"
    if "--head-only" in name:
        return at, at / "head.safetensors"
    ending = {"--csv": ".csv", "--proof": ".npz"}.get(
        name.split()[-1], ".png" if name == "factors figure1 --out" else ""
    )
    return at / f"result{ending}", at / f"result{ending}"


def temporaries(folder):
    return {n for n in os.listdir(folder) if NAME.fullmatch(n)}


def changed(files):
    """Whether an output is no longer what it was, as after a write past the one writer."""
    return any(not p.exists() or p.stat().st_size != len(OLD) for p in files)


def killed(line, folder, files, delay):
    """Run a command in a child and kill it `delay` seconds after it begins to write; whether a temporary was left.

    What an earlier child left is still there, and is to be gone once this one has begun.
    """
    before = temporaries(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forking with threads, which the child has not
        pid = os.fork()
    if pid == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            call(line)
        finally:
            os._exit(0)
    until = time.monotonic() + 60
    while time.monotonic() < until and not temporaries(folder) - before and not changed(files):
        if os.waitpid(pid, os.WNOHANG)[0]:
            return False
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert not temporaries(folder) & before
    return bool(temporaries(folder))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_killed_command_leaves_the_old_output_or_the_new_one_whole(name, place, capsys):
    words, is_whole = CASES[name]
    if name == "verify --json":
        call(["can-win", M, "--proof", "proof.npz"])
    value, out = output_of(name)
    option = next(x for x in name.split() if x.startswith("--"))
    line = [*[x for x in name.split() if not x.startswith("--")], *words, option, str(value)]
    call(line)  # once in this process: what is compiled and imported now is there in every child
    is_whole(out)
    began = time.monotonic()
    call(line)
    spent = time.monotonic() - began
    files = [p for p in out.parent.iterdir() if p.is_file()]
    rng, left, old = random.Random(name), 0, 0
    for _ in range(KILLS):
        for p in files:
            p.write_bytes(OLD)
        left += killed(
            line, out.parent, files, rng.choice([0, rng.uniform(0, 0.003), rng.uniform(0, max(0.03, spent / 2))])
        )
        for p in files or [out]:
            if files and p.read_bytes() == OLD:
                old += 1
            else:
                BY_ENDING.get(p.suffix, is_whole)(p)
    call(line)
    is_whole(out)
    assert not temporaries(out.parent)
    with capsys.disabled():
        print(f"\n{name}: {KILLS} kills, {left} left a temporary, {old} old files kept; {spent:.2f} s each")
    shutil.rmtree(place / "out")
