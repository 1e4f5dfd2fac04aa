"""The gates for other people's CI: the steps of action.yml are run as they stand, hooks name commands that exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gonio.cli import main

yaml = pytest.importorskip("yaml", reason="make test installs it")

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEP = next(s for s in ACTION["runs"]["steps"] if s.get("id") == "run")


@pytest.fixture
def bench(tmp_path):
    """A folder with a model one of whose labels never wins, a table, and `gonio` on the path."""
    W = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1], [0.1, 0.1]])
    np.savez(tmp_path / "a model.npz", W=W, link="softmax", labels=np.array(list("abcde")))
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(60, 4)))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gonio").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gonio "$@"\n')
    (tmp_path / "bin" / "gonio").chmod(0o755)
    return tmp_path


def step(bench: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step of action.yml with these inputs, as a runner would run it."""
    given = {k: str(v.get("default", "")) for k, v in ACTION["inputs"].items()} | inputs
    env = {k: given[v.split("inputs.")[1].split(" ")[0]] for k, v in STEP["env"].items()}
    path = f"{bench / 'bin'}:{os.environ['PATH']}"
    more = {"GITHUB_OUTPUT": str(bench / "out.txt"), "PATH": path, "PYTHONPATH": str(ROOT / "src")}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]]
    return subprocess.run(command, cwd=bench, env={**os.environ, **env, **more}, capture_output=True, text=True)


def outputs(bench: Path) -> dict[str, Path]:
    return {k: bench / v for k, _, v in (x.partition("=") for x in (bench / "out.txt").read_text().splitlines())}


def test_a_model_with_a_label_that_never_wins_fails_the_step_and_leaves_the_report(bench):
    done = step(bench, model="a model.npz")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 of 5 labels can never win" in done.stdout
    written = outputs(bench)
    assert set(written) == set(ACTION["outputs"])
    assert all(p.stat().st_size > 500 for p in written.values())
    assert "<failure" in written["junit"].read_text()


@pytest.mark.slow
def test_a_table_is_checked(bench):
    done = step(bench, embeddings="table.npy", options="--top 5", **{"fail-on": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 embeddings x 4" in done.stdout
    assert all(p.stat().st_size > 500 for p in outputs(bench).values())


def test_options_are_words_not_code(bench):
    done = step(bench, embeddings="table.npy", options="--top 5 --false-alarms $(touch${IFS}hacked)", **{"fail-on": ""})
    assert done.returncode == 2, done.stdout + done.stderr
    assert "'$(touch${IFS}hacked)' is not a valid" in done.stderr
    assert not (bench / "hacked").exists()


def test_neither_and_both_are_refused(bench):
    for inputs in ({}, {"model": "a model.npz", "embeddings": "table.npy"}):
        done = step(bench, **inputs)
        assert done.returncode == 2
        assert "give either model or embeddings" in done.stderr


def test_no_input_is_pasted_into_a_script():
    assert [s for s in ACTION["runs"]["steps"] if "${{" in s.get("run", "")] == []
    assert {v.split("steps.run.outputs.")[1].split(" ")[0] for v in (o["value"] for o in ACTION["outputs"].values())} == {
        "page", "json", "junit"
    }  # fmt: skip


def test_every_hook_is_a_command_of_gonio():
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert len(hooks) == 3
    for hook in hooks:
        program, command = hook["entry"].split()
        assert program == "gonio"
        assert command in main.commands
        assert hook["pass_filenames"] is False  # a command takes one model, a hook may be given many files
