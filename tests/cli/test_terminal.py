"""Findings on a terminal: what to act on first, its width, colour for marks alone and only where it is wanted."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio import audit
from gonio.cli import main
from gonio.report.causes import closing, to_act_on
from gonio.report.terminal import findings_text


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("terminal") / "m.npz"
    W = np.random.default_rng(0).normal(size=(40, 2))
    W[3] = W[4]
    np.savez(path, W=W, labels=np.array([f"label {i}" for i in range(40)]), link="softmax")
    return str(path)


def on_a_terminal(arguments, columns=70, **env):
    """What a command writes to a terminal of its own."""
    leader, follower = pty.openpty()
    variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    variables |= {"TERM": "xterm-256color", "COLUMNS": str(columns), **env}
    done = subprocess.Popen(
        [sys.executable, "-m", "gonio", *arguments], stdout=follower, stderr=subprocess.DEVNULL, env=variables
    )
    os.close(follower)
    out = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other side has closed
            break
        if not piece:
            break
        out += piece
    os.close(leader)
    assert done.wait(timeout=120) == 0
    return out.decode().replace("\r\n", "\n")


def test_marks_are_coloured_and_lines_are_as_wide_as_the_terminal(model):
    said = on_a_terminal(["audit", model])
    assert "\x1b[31m!\x1b[0m  " in said
    assert set(re.findall(r"\x1b\[\d+m(.*?)\x1b\[0m", said)) <= {"!", "=", "~", "?", "ok"}
    assert max(len(re.sub(r"\x1b\[\d*m", "", x)) for x in said.splitlines()) <= 70


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_nobody_wants_it(model, env):
    assert "\x1b" not in on_a_terminal(["audit", model], **env)


def test_a_pipe_gets_plain_text_what_to_act_on_first_and_a_count(model, tmp_path):
    done = CliRunner().invoke(main, ["audit", model, "--html", str(tmp_path / "a.html")])
    assert done.exit_code == 0
    lines = [x for x in done.stdout.splitlines() if x]
    assert "\x1b" not in done.stdout
    assert lines[1].startswith("  !  ")
    assert lines[2].startswith("     !  2 labels share their row")  # one cause: indented below the first
    a = audit(gonio.load(model))
    assert lines[-1] == f"{closing(a.findings)} -> {tmp_path / 'a.html'}"
    counted = [int(x) for x in re.findall(r"(\d+) (?:to act|fact|fine|open)", lines[-1])]
    states = [f.state for f in a.findings]
    facts = states.count("fact") + states.count("convention")
    assert counted == [len(to_act_on(a.findings)), facts, states.count("fine"), states.count("open")]
    assert a["never-wins"].says not in " ".join(done.stdout.split())
    more = CliRunner().invoke(main, ["audit", model, "--explain"]).stdout
    assert a["never-wins"].says in " ".join(more.split())


def test_nothing_to_act_on_is_said():
    assert "nothing to act on" in findings_text("a head", (), {})
