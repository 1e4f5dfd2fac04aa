"""Data goes one way: a module imports only from lower floors, or from its own folder."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "gonio"
FLOORS = {
    "core": 1,
    "cluster": 2,
    "files": 2,
    "proofs": 2,
    "gauge": 3,
    "search": 3,
    "similarity": 4,
    "remedies": 4,
    "models": 4,
    "ask": 5,
    "listing": 6,
    "factors": 6,
    "diagnostics": 6,
    "embeddings": 6,
    "findings": 7,
    "report": 8,
    "explorer": 8,
    "testing": 8,
    "pytest_plugin": 9,
    "papers": 9,
    "studies": 10,
    "cli": 11,
    "__main__": 12,
}


def room(path: Path) -> str:
    parts = path.relative_to(SRC).parts
    return parts[0].removesuffix(".py")


def imported(path: Path) -> list[str]:
    """The rooms of gonio that a file imports."""
    out = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{a.name}" for a in node.names] if node.module == "gonio" else [node.module]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        out += [n.split(".")[1] for n in names if n.startswith("gonio.")]
    return out


FILES = [p for p in sorted(SRC.rglob("*.py")) if p != SRC / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_a_module_imports_only_from_lower_floors_or_its_own_room(path):
    mine = room(path)
    assert mine in FLOORS, f"{mine} has no floor; see DESIGN"
    for other in imported(path):
        assert other == mine or FLOORS[other] < FLOORS[mine], f"{path.name} ({mine}) must not import {other}"


def test_there_is_no_utils():
    assert not [p for p in SRC.rglob("*") if p.stem in ("utils", "util", "misc", "common", "helpers")]


BARE = ("allclose", "array_equal", "isclose", "array_equiv")


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda p: p.name)
def test_every_comparison_in_a_test_is_asserted(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr):
            bare = isinstance(node.value, ast.Compare) or (
                isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Attribute)
                and node.value.func.attr in BARE
            )
            assert not bare, f"{path.name}:{node.lineno} compares and asserts nothing"


@pytest.mark.parametrize(
    "path", [*FILES, *sorted((ROOT / "tests").rglob("*.py"))], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_name_that_is_used_is_defined(path):
    """Axes in annotations are names that a linter cannot know, so it looks for none; outside of them all are known."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = set(dir(builtins)) | {"__file__", "__name__", "__path__"}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            known.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            known |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
        ):
            known.add(node.name)
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert not used - known


def modules() -> dict[str, Path]:
    """Every module of gonio by its dotted name."""
    names = {p: ("gonio", *p.relative_to(SRC).with_suffix("").parts) for p in SRC.rglob("*.py")}
    return {".".join(n[:-1] if n[-1] == "__init__" else n): p for p, n in names.items()}


def needs(name: str, known: dict[str, Path]) -> set[str]:
    """The modules that a module imports, at its top or inside its functions; what only type checkers see is left out."""
    tree = ast.parse(known[name].read_text(encoding="utf-8"))
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in hidden:
            for a in node.names:
                full = f"{node.module}.{a.name}"
                out.add(full if full in known else node.module)
        elif isinstance(node, ast.Import) and id(node) not in hidden:
            out |= {a.name for a in node.names}
    return {m for m in out if m in known and m != name and m != "gonio"}


def test_no_two_modules_import_each_other_not_even_in_one_folder():
    known = modules()
    graph = {m: needs(m, known) for m in known if m != "gonio"}
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module in done:
            return
        for other in graph[module]:
            walk(other, (*path, module))
        done.add(module)

    for module in graph:
        walk(module, ())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_no_import_hides_in_a_string(path):
    if path == SRC / "papers" / "run.py":  # the papers, by the name that a user gives
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert called not in ("import_module", "__import__"), f"{path.name}:{node.lineno} imports by a string"
