"""The register of claims, walked both ways: no claim without function and test, no key that is not registered."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REGISTER = tomllib.loads((ROOT / "docs" / "theorems.toml").read_text(encoding="utf-8"))
CLAIMS = REGISTER["claims"]


def resolve(dotted: str):
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def keys_of_tests() -> dict[str, set[str]]:
    """Test (file::name) to the keys it is marked with, read from the source."""
    out: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.theorem":
                        out.setdefault(f"{path.relative_to(ROOT)}::{node.name}", set()).add(
                            ast.literal_eval(mark.args[0])
                        )
    return out


def keys_of_docstrings() -> set[str]:
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for line in re.findall(r"^\s*Claims: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            found |= {k.strip() for k in line.split(",")}
    return found


@pytest.mark.parametrize("key", CLAIMS)
def test_a_claim_has_a_function_and_a_test(key):
    claim = CLAIMS[key]
    assert set(claim) == {"number", "statement", "function", "test", "status"}
    assert claim["status"] in ("proved", "measured", "conjectured")
    assert key.split(".")[0] in REGISTER
    assert callable(resolve(claim["function"]))
    marked = keys_of_tests()
    if claim["test"] in marked:
        assert key in marked[claim["test"]], f"{claim['test']} is not marked with {key}"
    else:
        file, _, name = claim["test"].partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_no_test_or_docstring_names_a_claim_that_is_not_registered():
    marked = set().union(*keys_of_tests().values())
    assert marked <= set(CLAIMS)
    assert keys_of_docstrings() <= set(CLAIMS)
