"""The command in a page's box for pairs, run as it stands, answers with the page's own number."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio.cli import main
from gonio.cli.text import typed_again
from gonio.core.source import Source
from gonio.report.audit_page import _carried


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "W.npy", rng.normal(size=(40, 6)).astype(np.float32) + 0.7)
    np.save(tmp_path / "my states.npy", rng.normal(size=(300, 6)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_are_given_back_as_they_would_be_typed():
    assert typed_again(None, None, None, 20_000, None) == ""
    assert typed_again("my states.npy", None, None, 20_000, None) == "--embeddings 'my states.npy'"
    assert typed_again(None, "a.txt", "\n\n", 500, None) == "--text a.txt --split '\n\n' --tokens 500"


def test_the_command_of_a_pair_gives_the_number_of_the_page(folder, monkeypatch):
    seen = []
    monkeypatch.setattr("gonio.report.audit_page._carried", lambda a, *r: seen.append(a) or _carried(a, *r))
    said = ["audit", "W.npy", "--link", "softmax", "--embeddings", "my states.npy", "--html", "page.html"]
    assert CliRunner().invoke(main, said, catch_exceptions=False).exit_code == 0
    command = ["alike", *shlex.split(f"{seen[0].head.typed} {seen[0].states_typed}"), "#3", "#7"]
    told = CliRunner().invoke(main, command, catch_exceptions=False).stdout
    head = gonio.load("W.npy", link="softmax")
    wanted = gonio.alike(head, 3, 7, embeddings=np.load("my states.npy")).instead[1]
    assert f"{wanted:.4f}" in told
    assert f"{gonio.alike(head, 3, 7).instead[1]:.4f}" not in told


def test_without_embeddings_nothing_is_added():
    rng = np.random.default_rng(1)
    head = gonio.Head(rng.normal(size=(30, 4)), link="softmax", source=Source("m.npz", "made", typed="m.npz"))
    assert gonio.audit(head).states_typed == ""
    assert gonio.audit(head, embeddings=rng.normal(size=(50, 4))).states_typed == "--embeddings FILE"
