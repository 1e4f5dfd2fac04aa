"""The public face: every public name is listed, none is both a module and a function, results are exported."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import gonio

SRC = Path(gonio.__file__).parent
ROOMS = ["gonio", *(m.name for m in pkgutil.walk_packages(gonio.__path__, "gonio.") if m.ispkg)]


def test_dir_lists_every_public_name_and_nothing_else():
    assert dir(gonio) == sorted(gonio.__all__)
    for name in gonio.__all__:
        assert getattr(gonio, name) is not None


def test_the_names_that_users_rely_on_are_there():
    wanted = [
        "load",
        "alike",
        "can_win",
        "can_tie",
        "can_rank",
        "can_top",
        "can_label",
        "can_labels",
        "can_be_on",
        "label_sets",
        "rankings",
        "dial",
        "canonical",
        "same_model",
        "audit",
        "pad",
        "verify_all",
        "Head",
        "Source",
        "CanWin",
        "CanTie",
        "Verdict",
        "Twins",
        "Alike",
        "Audit",
        "Finding",
        "Dialled",
        "SameModel",
        "LabelSets",
        "Rankings",
        "Certificate",
        "CertificateError",
        "Wins",
        "NeverWins",
        "Ties",
        "NeverTies",
        "Undecided",
        "Possible",
        "Impossible",
        "GonioError",
    ]
    assert set(wanted) <= set(gonio.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_no_name_is_both_a_module_and_something_else(room):
    module = importlib.import_module(room)
    submodules = {m.name for m in pkgutil.iter_modules(module.__path__)}
    public = set(getattr(module, "__all__", ())) or {
        n for n, v in vars(module).items() if not n.startswith("_") and not inspect.ismodule(v)
    }
    clash = {n for n in submodules & public if not inspect.ismodule(getattr(module, n))}
    assert not clash


def test_no_room_has_the_name_of_a_public_function():
    rooms = {m.name for m in pkgutil.iter_modules(gonio.__path__)}
    functions = {n for n in gonio.__all__ if not inspect.ismodule(getattr(gonio, n))}
    assert not rooms & functions


def test_no_two_classes_have_one_name():
    seen: dict[str, str] = {}
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                assert node.name not in seen, f"class {node.name} is in {seen[node.name]} and {path.name}"
                seen[node.name] = path.name


def test_no_file_speaks_of_files_outside_the_repository():
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for word in ("FACTS", "DESIGN", "STYLE.md", "ALGORITHMS.md"):
            assert word not in text, f"{path.relative_to(SRC)} speaks of {word}"
