"""The changes that tools/mutants.py makes: one node of a module, put into the functions that are already loaded.

Comparisons, arithmetic, numbers, `and`, `or`, `not`, min and max, conditions; statements and terms left out. Not
changed: texts, annotations, what `__repr__` and `_words` say, and tables at the top of a module.
"""

from __future__ import annotations

import ast
import copy
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

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


def _is_number(node: ast.Assign) -> bool:
    plain = not any(isinstance(n, (ast.Dict, ast.Name)) for n in ast.walk(node.value))
    return plain and isinstance(node.targets[0], ast.Name)


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
            elif isinstance(node, ast.Assign) and not prefix and _is_number(node):
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
