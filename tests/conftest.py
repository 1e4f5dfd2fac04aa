"""In the tests every array that gonio gives out is checked against the axes its annotation declares.

gonio imports jaxtyping for type checkers only, since its import costs as much as numpy's; here the return
annotations are evaluated and enforced.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import pkgutil
import re

import hypothesis
import jaxtyping
import numpy as np
import pytest

import gonio
from gonio.core.errors import MissingExtraError

hypothesis.settings.register_profile("fixed", derandomize=True)  # seeds are fixed: a run that passed passes again
hypothesis.settings.load_profile("fixed")

os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"  # no test talks to the world: nobody listens here

ARRAY = re.compile(r"(Float|Int|UInt|Bool|Shaped)\[np\.ndarray, ['\"][^'\"]*['\"]\]( \| None)?")
NAMES = {name: getattr(jaxtyping, name) for name in ("Float", "Int", "UInt", "Bool", "Shaped")} | {"np": np}


def checked(function):
    """The function, with its declared array result enforced; None where it declares none."""
    declared = getattr(function, "__annotations__", {}).get("return")
    if not isinstance(declared, str) or not ARRAY.fullmatch(declared):
        return None
    kind = eval(declared, NAMES)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        out = function(*args, **kwargs)
        assert isinstance(out, kind), f"{function.__qualname__} gave {np.shape(out)} {out.dtype}, not {declared}"
        return out

    return wrapped


def enforce(owner, module):
    for name, value in list(vars(owner).items()):
        if isinstance(value, property) and value.fget and (w := checked(value.fget)):
            setattr(owner, name, property(w))
        elif isinstance(value, functools.cached_property) and (w := checked(value.func)):
            fresh = functools.cached_property(w)
            fresh.__set_name__(owner, name)
            setattr(owner, name, fresh)
        elif inspect.isfunction(value) and value.__module__ == module and (w := checked(value)):
            setattr(owner, name, w)
        elif inspect.isclass(value) and value.__module__ == module and inspect.ismodule(owner):
            enforce(value, module)


for found in pkgutil.walk_packages(gonio.__path__, "gonio."):
    enforce(importlib.import_module(found.name), found.name)


# What `make test` installs beyond the core: only of these may a test find one absent.
EXTRAS = {
    "accelerate", "gensim", "gguf", "highspy", "huggingface_hub", "jsonschema", "onnx", "onnxruntime", "pandas",
    "playwright", "pyarrow", "safetensors", "tokenizers", "torch", "transformers",
}  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """With the core install alone, a test that reaches for an extra skips with the sentence a user would get."""
    try:
        return (yield)
    except MissingExtraError as e:
        pytest.skip(str(e))
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in EXTRAS:
            raise
        pytest.skip(f"{e.name} is not installed; make test installs it")
