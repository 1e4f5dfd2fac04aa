"""One table of certificate kinds serves `of_dict`, the proof file, its page in docs/ and the second verifier."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import gonio.proofs
from gonio.proofs.certificate_base import Certificate
from gonio.proofs.certificates import NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.comparisons import Impossible, Open, Possible
from gonio.proofs.kinds import GROUPS, KINDS, arrays, group_of, of_dict
from gonio.proofs.proof_file import load, save
from tests.proofs.second_verifier import tool

PAGE = (Path(__file__).parents[2] / "docs" / "proofs.md").read_text(encoding="utf-8")
EXAMPLES = [
    Wins("d", 0, np.float32([0.5, 1]), [3]),
    Wins("d", 1, [0.1, 1.0]),
    NeverWins("d", 4, [0, 1], [0.25, 0.75]),
    NeverWins("d", 3, [0, 1], [0.5, 0.5]),
    Ties("d", 0, 1, [0.5, 1], [0.1, 1]),
    NeverTies("d", 0, 1, [2], [1.0], [0.5, 0.5]),
    NeverTies("d", 0, 2, [], [], []),
    Undecided("d", 0, 0.1, "no time", [0, 1], [0.5, 0.5]),
    Possible("d", [0, -1], [1, 2], [0], [0.5, 1]),
    Impossible("d", [0, -1], [1, 2], [], [0.5, 0.5]),
    Open("d", [0, -1], [1, 2], [0], 0.1, "no time"),
]


def subclasses(kind):
    return {kind} | {s for c in kind.__subclasses__() for s in subclasses(c)}


def test_every_certificate_class_is_in_the_table():
    for module in pkgutil.iter_modules(gonio.proofs.__path__, "gonio.proofs."):
        importlib.import_module(module.name)
    assert {c for c in subclasses(Certificate) if c.kind} == set(KINDS.values())
    assert {type(c) for c in EXAMPLES} == set(KINDS.values())
    assert all(kind.kind == name for name, kind in KINDS.items())


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.name)
def test_every_field_of_a_certificate_is_a_column(group):
    assert ["head", *group.columns] == [f.name for f in fields(group.certificate)]


@pytest.mark.parametrize("certificate", EXAMPLES, ids=lambda c: f"{c.kind} {EXAMPLES.index(c)}")
def test_a_certificate_survives_a_dict_and_a_file(certificate, tmp_path):
    assert of_dict(certificate.to_dict()) == certificate
    save(tmp_path / "p.npz", [certificate])
    assert load(tmp_path / "p.npz") == [certificate]
    assert type(load(tmp_path / "p.npz")[0]) is type(certificate)


def test_a_file_of_all_kinds_holds_the_arrays_of_the_table_and_each_list_of_rivals_once(tmp_path):
    save(tmp_path / "p.npz", EXAMPLES)
    assert load(tmp_path / "p.npz") == EXAMPLES
    with np.load(tmp_path / "p.npz") as held:
        assert set(held.files) == {name for name, _ in arrays()}
        for name, kind in arrays():
            wanted = kind.split(" ")[0].rstrip(",").replace("text", "str")
            assert held[name].dtype.name.startswith(wanted), name
            assert held[name].ndim == (0 if "(" not in kind else 2 if "d)" in kind else 1), name
        assert held["support_rivals_count"].tolist() == [2, 1, 0]
        assert held["never_support"].tolist() == [0, 0]
        assert held["order"].tolist() == [group_of(c) for c in EXAMPLES]


def test_docs_name_every_array_with_its_type():
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in PAGE.splitlines() if line.count("|") == 4]
    told = {name.strip("` "): kind for names, kind in rows for name in names.split(",") if "`" in name}
    for name, kind in arrays():
        assert told.get(name) == kind, name
    assert ", ".join(f"{k} {g.name}" for k, g in enumerate(GROUPS)) in PAGE


def test_the_second_verifier_reads_the_same_groups():
    assert [(name, kind) for name, kind, _ in tool.GROUPS] == [(g.name, g.certificate.kind) for g in GROUPS]
    for (_, kind, names), group in zip(tool.GROUPS, GROUPS, strict=True):
        assert set(names.split()) <= set(group.columns)
        assert kind in ("undecided", "open") or set(names.split()) == set(group.columns)


def test_the_page_tells_everything_that_the_second_verifier_reads():
    """It was written from the page alone, so whatever name of a file it knows stands there."""
    for kind, parts in tool.INPUTS.items():
        assert kind in PAGE
        for part in parts.split():
            assert f"`inputs_{part}`" in PAGE
    source = (Path(__file__).parents[2] / "tools" / "check_proof.py").read_text(encoding="utf-8")
    for name in ("format", "W", "link", "inputs", "bias", "softcap", "order", "head", "gonio head 1", "gonio proof 2"):
        assert f'"{name}"' in source
        assert f"`{name}`" in PAGE, name
    assert "imports nothing of gonio" in PAGE
    assert "import gonio" not in source
    assert "numpy" not in source.replace("no numpy", "")
