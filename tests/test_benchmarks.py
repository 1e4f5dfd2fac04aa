"""Every benchmark runs at toy size, and the answers it compares agree."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from gonio.core.errors import MissingExtraError

FILES = sorted(p.stem for p in (Path(__file__).parents[1] / "benchmarks").glob("bench_*.py"))


@pytest.mark.parametrize("name", FILES)
def test_a_benchmark_compares_equal_answers(name):
    count = 0
    try:
        for case in importlib.import_module(f"benchmarks.{name}").cases(toy=True):
            case.compare()
            count += 1
    except MissingExtraError as e:
        pytest.skip(str(e))
    assert count > 0
