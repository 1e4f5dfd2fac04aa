"""Break the code in one place at a time and see whether a test notices.

    NUMBA_DISABLE_JIT=1 python tools/mutants.py src/gonio/proofs --tests tests/proofs --out mutants.json

The tests are collected and run once, with a look at which lines each of them reaches. Then a process is forked for every
mutant: it puts the changed code into the functions that are already loaded, and runs the tests that reach the changed
line, the quick ones first, until one fails. Mutants that the file --out has as killed are not tried again, so a run can
be stopped and resumed, and repeated after tests were added. What survives is printed; docs/mutants.md explains it.

Not changed: texts, annotations, what `__repr__` and `_words` say, and tables at the top of a module.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import coverage
import pytest

WORDS = {"__repr__", "_words", "_top", "_asked"}
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
SWAPPED = {"min": "max", "maximum": "minimum", "any": "all", "argmax": "argmin"}
SWAPPED |= {v: k for k, v in SWAPPED.items()}


@dataclass(frozen=True)
class Mutant:
    """One change of one node of a module."""

    file: Path
    function: str  # its qualified name; empty for a constant of the module
    first: int
    last: int  # the lines of the statement, up to the node
    node: int  # the place of the node in ast.walk
    variant: int
    text: str

    @property
    def key(self) -> str:
        return f"{self.file.stem}:{self.function}: {self.text}"


def variants(node: ast.AST) -> list[tuple[str, Callable[[Any], ast.AST]]]:
    """What a node can be changed to: a name of the change, and the change."""
    out: list[tuple[str, Callable[[Any], ast.AST]]] = []

    def add(name: str, change: Callable[[Any], ast.AST]) -> None:
        out.append((name, change))

    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            new = COMPARED[type(op)]
            add(f"{type(op).__name__} to {new.__name__}", lambda n, k=k, new=new: _set(n, "ops", k, new()))
    if isinstance(node, ast.BinOp):
        if type(node.op) in ARITHMETIC:
            new = ARITHMETIC[type(node.op)]
            add(f"{type(node.op).__name__} to {new.__name__}", lambda n, new=new: _with(n, op=new()))
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.BitAnd, ast.BitOr)):
            add("left alone", lambda n: n.left)
        if isinstance(node.op, (ast.Add, ast.Mult)):
            add("right alone", lambda n: n.right)
    if isinstance(node, ast.BoolOp):
        add("and to or" if isinstance(node.op, ast.And) else "or to and",
            lambda n: _with(n, op=ast.Or() if isinstance(n.op, ast.And) else ast.And()))  # fmt: skip
        for k in range(len(node.values)):
            add(f"without part {k}", lambda n, k=k: _without(n, k))
    if isinstance(node, ast.UnaryOp):
        add(f"{type(node.op).__name__} dropped", lambda n: n.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        for value in _others(node.value):
            add(f"to {value}", lambda n, value=value: _with(n, value=value))
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in SWAPPED:
            field = "attr" if isinstance(node.func, ast.Attribute) else "id"
            add(f"to {SWAPPED[name]}", lambda n: _with(n, func=_with(n.func, **{field: SWAPPED[name]})))
        if name == "abs":
            add("abs dropped", lambda n: n.args[0])
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        for value in (True, False):
            add(f"condition {value}", lambda n, value=value: _with(n, test=ast.Constant(value)))
    if isinstance(node, ast.comprehension) and node.ifs:
        add("without its if", lambda n: _with(n, ifs=[]))
    if isinstance(node, (ast.Raise, ast.AugAssign, ast.Continue)) or _is_deletable(node):
        add("deleted", lambda n: ast.If(ast.Constant(False), [copy.deepcopy(n)], []))
    return out


def _is_deletable(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Subscript) for t in node.targets)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _others(value: float) -> list[float]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1] + ([value - 1] if value else [])
    return [value * 2, value / 2] if value else [1.0]


def _with(node: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(node, name, value)
    return node


def _without(node: ast.BoolOp, place: int) -> ast.AST:
    left = node.values[:place] + node.values[place + 1 :]
    return _with(node, values=left) if len(left) > 1 else left[0]


def _set(node: Any, field: str, place: int, value: Any) -> Any:
    getattr(node, field)[place] = value
    return node


def mutants(file: Path) -> list[Mutant]:
    """All mutants of a file, in its order; equal texts in one function are told apart by a number."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    places = {id(node): k for k, node in enumerate(ast.walk(tree))}
    out: list[Mutant] = []

    def visit(node: ast.AST, function: str, first: int) -> None:
        if isinstance(node, (ast.JoinedStr, ast.arguments)) or getattr(node, "arg", "") == "strict":
            return
        first = node.lineno if isinstance(node, ast.stmt) else first
        last = first if isinstance(node, (ast.If, ast.While)) else getattr(node, "end_lineno", first)
        for k, (name, _) in enumerate(variants(node)):
            text = f"`{ast.unparse(node).strip().splitlines()[0][:90]}` {name}"
            again = sum(m.function == function and m.text.split(" #")[0] == text for m in out)
            text += f" #{again + 1}" if again else ""
            out.append(Mutant(file, function, first, last, places[id(node)], k, text))
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        visit(child, function, first)

    def top(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                top(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef) and node.name not in WORDS:
                for child in node.body:
                    visit(child, prefix + node.name, node.lineno)
            elif isinstance(node, ast.Assign) and not prefix and isinstance(node.targets[0], ast.Name):
                if not any(isinstance(n, (ast.Dict, ast.Name)) for n in ast.walk(node.value)):
                    visit(node.value, "", node.lineno)

    top(tree.body, "")
    return out


# -- putting a mutant in place -----------------------------------------------------------------------------------------


def install(mutant: Mutant) -> None:
    """Put the changed code into the loaded module."""
    tree = ast.parse(mutant.file.read_text(encoding="utf-8"))
    target = list(ast.walk(tree))[mutant.node]
    new = variants(target)[mutant.variant][1](copy.deepcopy(target))

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return ast.copy_location(new, node) if node is target else self.generic_visit(node)

    tree = ast.fix_missing_locations(Replace().visit(tree))
    code = compile(tree, str(mutant.file), "exec", dont_inherit=True)
    module = importlib.import_module(".".join(mutant.file.with_suffix("").parts[mutant.file.parts.index("src") + 1 :]))
    if mutant.function:
        _function(module, mutant.function).__code__ = _codes(code)[mutant.function]
        return
    values: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(code, values)  # noqa: S102  the module itself, to see what its constant becomes
    name = next(n.targets[0].id for n in tree.body if isinstance(n, ast.Assign) and n.lineno == mutant.first)  # type: ignore[attr-defined]
    old = getattr(module, name)
    for other in list(sys.modules.values()):
        if getattr(other, "__dict__", {}).get(name) is old:
            setattr(other, name, values[name])


def _codes(code: CodeType) -> dict[str, CodeType]:
    out: dict[str, CodeType] = {}
    for c in code.co_consts:
        if isinstance(c, CodeType):
            out |= {c.co_qualname: c} | _codes(c)
    return out


def _function(module: Any, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    for inner in ("fget", "func", "__func__", "py_func", "__wrapped__"):
        found = getattr(found, inner, None) or found
    return found


# -- running the tests -------------------------------------------------------------------------------------------------


class Session:
    """A pytest plugin that runs the tests once as they are, and then some of them for every mutant."""

    def __init__(self, files: list[Path], out: Path, seconds: int, workers: int, only: str) -> None:
        self.files, self.out, self.seconds, self.workers, self.only = files, out, seconds, workers, only
        self.failed = False
        self.killers: list[str] = []  # tests that killed lately: likely to kill the next one too
        self.results: dict[str, str] = json.loads(out.read_text()) if out.exists() else {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        """Called by pytest once the tests are collected."""
        reached = self._baseline(session.items)
        every = [m for f in self.files for m in mutants(f) if self.only in m.key]
        left = [m for m in every if self.results.get(m.key) != "killed"]
        print(f"{len(every)} mutants, {len(left)} of them to try", flush=True)
        running: dict[int, str] = {}
        for done, m in enumerate(left):
            if len(running) >= self.workers:
                self._collect(running)
            running[self._start(m, reached)] = m.key
            if done % 100 == 99:
                print(f"  {done + 1} tried", flush=True)
        while running:
            self._collect(running)
        for m in every:
            if self.results[m.key] != "killed":
                print(f"{self.results[m.key]}: {m.file.name}:{m.first} {m.function}: {m.text}")
        return True

    def _baseline(self, items: list[Any]) -> dict[tuple[str, int], list[Any]]:
        """Which tests reach which lines, the quick ones first; all must pass on the code as it is."""
        from hypothesis import Phase, settings  # not before pytest, which rewrites its asserts

        seen = coverage.Coverage(data_file=None, include=[str(f) for f in self.files])
        cost: dict[str, float] = {}
        seen.start()
        for item in items:
            mine = getattr(item.obj, "_hypothesis_internal_use_settings", None)
            if mine is not None:  # a failure need not be made small
                item.obj._hypothesis_internal_use_settings = settings(
                    mine,
                    phases=[Phase.explicit, Phase.generate],
                    derandomize=True,
                    max_examples=min(60, mine.max_examples),
                )
            seen.switch_context(item.nodeid)
            start = time.perf_counter()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            cost[item.nodeid] = time.perf_counter() - start
            if self.failed:
                raise SystemExit(f"{item.nodeid} fails before anything was changed")
        seen.stop()
        by_name = {item.nodeid: item for item in items}
        out = {}
        for file in self.files:
            for line, names in seen.get_data().contexts_by_lineno(str(file)).items():
                out[str(file), line] = [by_name[n] for n in sorted(set(names) & set(by_name), key=lambda n: cost[n])]
        out["", 0] = sorted(items, key=lambda item: cost[item.nodeid])
        return out

    def _start(self, mutant: Mutant, reached: dict[tuple[str, int], list[Any]]) -> int:
        child = os.fork()
        if child:
            return child
        signal.alarm(self.seconds)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            install(mutant)
            lines = range(mutant.first, mutant.last + 1)
            chosen = {item.nodeid for k in lines for item in reached.get((str(mutant.file), k), ())}
            lately = {name: k for k, name in enumerate(self.killers[-12:])}
            for item in sorted(reached["", 0], key=lambda item: -lately.get(item.nodeid, -1)):
                if not mutant.function or item.nodeid in chosen:
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
                    if self.failed:
                        self._killer(os.getpid()).write_text(item.nodeid)
                        os._exit(1)
        except BaseException:
            os._exit(2)  # the change cannot be put in place, or a test was stopped by more than an exception
        os._exit(0)

    def _killer(self, child: int) -> Path:
        return self.out.with_suffix(f".{child}")

    def _collect(self, running: dict[int, str]) -> None:
        child, status = os.wait()
        end = "timed out" if os.WIFSIGNALED(status) else ("survived", "killed", "not installed")[os.WEXITSTATUS(status)]
        self.results[running.pop(child)] = end
        if end == "killed":
            name = self._killer(child).read_text()
            self._killer(child).unlink()
            self.killers = [k for k in self.killers if k != name] + [name]
        self.out.write_text(json.dumps(self.results, indent=0))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", nargs="+", type=Path)
    arguments.add_argument("--tests", nargs="+", default=["tests/proofs"])
    arguments.add_argument("--out", type=Path, default=Path("mutants.json"))
    arguments.add_argument("--seconds", type=int, default=60, help="the longest that one mutant may take")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--only", default="", help="mutants whose key holds this text")
    a = arguments.parse_args()
    files = [f.resolve() for p in a.paths for f in (sorted(p.glob("*.py")) if p.is_dir() else [p])]
    plugin = Session(files, a.out, a.seconds, a.workers, a.only)
    pytest.main([*a.tests, "-q", "-s", "-p", "no:cacheprovider", "-m", "not slow"], plugins=[plugin])


if __name__ == "__main__":
    main()
