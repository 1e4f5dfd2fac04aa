"""Settings of every test: fixed seeds, no world, declared axes enforced, absent extras skipped by name."""

from __future__ import annotations

import os

import hypothesis
import pytest

from gonio.core.errors import MissingExtraError
from tests import array_axes

hypothesis.settings.register_profile("fixed", derandomize=True)  # seeds are fixed: a run that passed passes again
hypothesis.settings.load_profile("fixed")

os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"  # no test talks to the world: nobody listens here

COUNTS = array_axes.enforce()

# What `make test` installs beyond the core: only of these may a test find one absent.
EXTRAS = {
    "accelerate", "axe_playwright_python", "dask", "distributed", "gensim", "gguf", "highspy", "huggingface_hub", "jsonschema", "onnx", "onnxruntime", "pandas",
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
