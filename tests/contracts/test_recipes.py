"""The recipes of CONTRIBUTING: every test that a step names exists, and steps that nothing else holds are held here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from gonio import remedies
from gonio.findings import audit_run, check_run
from tests.contracts.test_docs import NAMED, NOT_FORMATS
from tests.parsers import PARSERS

ROOT = Path(__file__).parents[2]
# By loader: the parsers of tests/parsers.py that begin with its files.
FUZZED = {
    "arrays": ("npz", "npy"),
    "safetensors": ("safetensors",),
    "torch": ("torch", "torch old"),
    "onnx": ("onnx",),
    "gguf": ("gguf",),
    "gguf_file": ("gguf",),
    "wordvectors": ("word vectors", "binary word vectors"),
    "fasttext": ("fastText",),
    "folder": ("config", "tokenizer", "modules"),
    "checkpoint": ("index",),
    "weights": ("index",),
    "final_norm": ("config",),
    "factors": ("npy",),
    "hub": ("safetensors", "config"),
}


def test_every_test_that_a_recipe_names_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {(path, test) for path, test in NAMED.findall(text) if "NAME" not in path}
    assert len(named) > 15
    for path, test in named:
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), test


def test_every_kind_of_contribution_has_its_recipe():
    told = re.findall(r"^\*\*A (.*)\*\*$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert told == ["file format", "measure", "remedy", "finding", "certificate kind"]


def test_every_loader_has_its_test_and_its_line_for_the_fuzzers():
    here = {p.stem for p in (ROOT / "src/gonio/files/read").iterdir() if not p.stem.startswith("__")} - NOT_FORMATS
    assert here == set(FUZZED), "a new loader: give it a line in tests/parsers.py, and name that line here"
    assert {x for names in FUZZED.values() for x in names} <= set(PARSERS)
    tests = "".join(p.read_text() for p in (ROOT / "tests" / "files").glob("test_*.py"))
    assert [x for x in here if x not in tests] == []


def test_every_remedy_is_public_and_has_its_row():
    page = (ROOT / "docs" / "measures.md").read_text()
    for name in remedies.REMEDIES:
        assert name in remedies.__all__
        assert f"| `{name}` |" in page, f"docs/measures.md has no row for {name}"


def keys_that_warn() -> set[str]:
    """The keys of findings whose state can be a warning, as far as the sources spell them."""
    out = set()
    for path in (ROOT / "src/gonio/findings").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Finding", "found")
            if called and len(node.args) > 3 and isinstance(node.args[0], ast.Constant):
                state = {c.value for c in ast.walk(node.args[3]) if isinstance(c, ast.Constant)}
                if "warning" in state:
                    out.add(node.args[0].value)
    return out


def test_every_finding_that_can_warn_can_be_failed_on():
    warn = keys_that_warn()
    assert len(warn) > 12
    assert warn <= {*audit_run.WARNINGS, *check_run.WARNINGS}
