"""Every array that gonio gives out is checked against the axes its annotation declares.

gonio imports jaxtyping for type checkers only, since its import costs as much as numpy's. Here the return annotations
are evaluated, functions are wrapped, and every reference to one, also by name in another module, is replaced.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

import jaxtyping
import numpy as np

import gonio

DECLARED = re.compile(r"\b(Float|Int|Integer|UInt|Bool|Shaped)\[np\.ndarray, ")
NAMES = {n: getattr(jaxtyping, n) for n in ("Float", "Int", "Integer", "UInt", "Bool", "Shaped")}


class _Anything(type):
    """A name that is imported for type checkers only stands for any value."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class Anything(metaclass=_Anything):
    def __class_getitem__(cls, _: Any) -> type:
        return cls


class Names(dict):
    def __missing__(self, name: str) -> Any:
        import builtins

        return getattr(builtins, name, Anything)


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is what an annotation declares, as far as arrays go."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, k) for k in args)
    if kind is None or kind is type(None):
        return value is None
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(args) == 2 and args[1] is Ellipsis:
            return all(fits(v, args[0]) for v in value)
        return len(value) == len(args) and all(fits(v, k) for v, k in zip(value, args, strict=True))
    if origin is list:
        return isinstance(value, list) and all(fits(v, args[0]) for v in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(v, args[1]) for v in value.values())
    if origin is not None or not isinstance(kind, type):
        return True
    array = issubclass(kind, np.ndarray) or kind.__module__.startswith("jaxtyping")
    return isinstance(value, kind) if array else True


def declared(function: Any) -> Any:
    """The declared result of a function that names axes; None where it names none."""
    text = getattr(function, "__annotations__", {}).get("return")
    if not isinstance(text, str) or not DECLARED.search(text):
        return None
    names = Names(function.__globals__ | NAMES)
    return eval(text, names)


def checked(function: Any) -> Any:
    """The function with its declared result enforced; None where it declares no axes."""
    kind = declared(function)
    if kind is None:
        return None
    each = typing.get_origin(kind) in (Iterator, typing.get_origin(typing.Iterator[int]))

    def must(value: Any, wanted: Any) -> Any:
        assert fits(value, wanted), (
            f"{function.__qualname__} gave {np.shape(value) if not isinstance(value, tuple) else value}, not {wanted}"
        )
        return value

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        out = function(*args, **kwargs)
        if each:
            return (must(v, typing.get_args(kind)[0]) for v in out)
        return must(out, kind)

    return wrapped


def enforce() -> dict[str, int]:
    """Wrap every function and property of gonio that declares axes; how many there are, and how many are wrapped."""
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(gonio.__path__, "gonio.")]
    swapped: dict[int, tuple[Any, Any]] = {}
    counts = {"declared": 0, "wrapped": 0}
    for module in modules:
        for value in list(vars(module).values()):
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                _swap(value, swapped, counts)
            elif inspect.isclass(value) and value.__module__ == module.__name__:
                _enforce_class(value, counts)
    for module in modules:  # by-name imports hold the original
        for name, value in list(vars(module).items()):
            if id(value) in swapped and swapped[id(value)][0] is value:
                setattr(module, name, swapped[id(value)][1])
    return counts


def _swap(function: Any, swapped: dict[int, tuple[Any, Any]], counts: dict[str, int]) -> None:
    text = str(getattr(function, "__annotations__", {}).get("return", ""))
    counts["declared"] += bool(DECLARED.search(text))
    new = checked(function)
    if new is not None:
        counts["wrapped"] += 1
        swapped[id(function)] = function, new


def _enforce_class(owner: type, counts: dict[str, int]) -> None:
    for name, value in list(vars(owner).items()):
        inner = {
            property: lambda v: v.fget,
            functools.cached_property: lambda v: v.func,
            classmethod: lambda v: v.__func__,
            staticmethod: lambda v: v.__func__,
            types.FunctionType: lambda v: v,
        }.get(type(value))
        function = inner(value) if inner else None
        if function is None:
            continue
        counts["declared"] += bool(DECLARED.search(str(getattr(function, "__annotations__", {}).get("return", ""))))
        new = checked(function)
        if new is None:
            continue
        counts["wrapped"] += 1
        fresh = type(value)(new) if not isinstance(value, types.FunctionType) else new
        if isinstance(fresh, functools.cached_property):
            fresh.__set_name__(owner, name)
        setattr(owner, name, fresh)
