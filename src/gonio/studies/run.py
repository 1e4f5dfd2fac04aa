"""The studies by name: their question, how they run on models that are given, and on the packaged ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.models.loading import load
from gonio.studies import common_geometry, different_from_random
from gonio.studies.centred_logits import mean_probability
from gonio.studies.fixture_heads import real_heads, smollm2_states
from gonio.studies.study import StudyResult

Report = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Given:
    """What a user gave: places of models, states of each, a text, how often labels occur."""

    models: tuple[str, ...] = ()
    states: tuple[Any, ...] = ()
    text: str | None = None
    frequencies: Any = None


@dataclass(frozen=True, eq=False)
class Study:
    """A study: its name and question, on models that are given, and on the packaged ones."""

    name: str
    question: str
    on_models: Callable[[Given, Report], tuple[StudyResult, ...]]
    on_packaged: Callable[[Report], Iterator[StudyResult]]


def asked(name: str) -> Study:
    """The study of that name."""
    if name not in STUDIES:
        raise GonioError(f"study: none is called {name!r}; there are {', '.join(STUDIES)}.")
    return STUDIES[name]


def on_fixtures(study: Study, report: Report) -> tuple[StudyResult, ...]:
    """A study on the packaged models that are at hand."""
    found = tuple(study.on_packaged(report))
    if not found:
        raise GonioError(
            f"study {study.name}: none of the packages that it reads is at hand (./fixtures, or GONIO_FIXTURES, with "
            "the extras torch and transformers); name models of your own."
        )
    return found


def _heads(given: Given, name: str, count: int, states: bool = True) -> list[tuple[Head, Any]]:
    """So many heads, each with its states."""
    if len(given.models) != count:
        raise GonioError(f"study {name}: {len(given.models)} models were named; {count} are needed.")
    if states and len(given.states) != count:
        raise GonioError(
            f"study {name}: states of {len(given.states)} models were given; give --embeddings F.npy for each of "
            f"{count} (gonio states MODEL --text FILE --out F.npy writes them)."
        )
    heads = [load(m) for m in given.models]
    return [(h, given.states[k] if k < len(given.states) else None) for k, h in enumerate(heads)]


def _points(F: Any) -> np.ndarray:
    return np.asarray(getattr(F, "F", F))


def _random(given: Given, report: Report) -> tuple[StudyResult, ...]:
    [(head, F)] = _heads(given, "random", 1)
    name = given.models[0]
    return (different_from_random.different_from_random(head, _points(F), name=name, on_progress=report),)


def _random_packaged(report: Report) -> Iterator[StudyResult]:
    for h in real_heads():
        yield different_from_random.different_from_random(h.head, h.F, name=h.name, on_progress=report)


def _geometry(given: Given, report: Report) -> tuple[StudyResult, ...]:
    (a, F), (b, G) = _heads(given, "geometry", 2, bool(given.states))
    states = None if F is None else (_points(F), _points(G))
    often = None if F is None else np.log(np.maximum(mean_probability(a, states[0]), 1e-30))  # type: ignore[index]
    report(0, 1, "equivalent forms")
    names = (given.models[0], given.models[1])
    return (common_geometry.common_geometry(a, b, states=states, frequency=often, names=names),)


def _geometry_packaged(report: Report) -> Iterator[StudyResult]:
    ocr = list(real_heads(("PP-OCRv3", "PP-OCRv4")))
    if len(ocr) == 2:
        report(0, 3, "PP-OCRv3 and PP-OCRv4")
        yield _pair((ocr[0].head, ocr[1].head), (ocr[0].F, ocr[1].F), (ocr[0].name, ocr[1].name), 60)
    whole, coarse = smollm2_states(), smollm2_states(4)
    if whole is not None and coarse is not None:
        report(1, 3, "SmolLM2 and its copy")
        names = ("SmolLM2", "a copy rounded to 4 bits")
        yield _pair((whole[0], coarse[0]), (whole[1]["F"], coarse[1]["F"]), names, 20)


def _pair(heads: tuple[Head, Head], F: tuple[Any, Any], names: tuple[str, str], steps: int) -> StudyResult:
    often = np.log(np.maximum(mean_probability(heads[0], F[0]), 1e-30))
    return common_geometry.common_geometry(*heads, states=F, frequency=often, names=names, steps=steps)


STUDIES = {
    s.name: s
    for s in (
        Study("random", different_from_random.QUESTION, _random, _random_packaged),
        Study("geometry", common_geometry.QUESTION, _geometry, _geometry_packaged),
    )
}
