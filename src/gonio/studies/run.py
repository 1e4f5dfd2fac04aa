"""The studies by name: their question, how they run on models that are given, and on the packaged ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.models.loading import load
from gonio.studies import (
    common_bias,
    common_geometry,
    cosine_failures,
    different_from_random,
    downstream,
    equal_runs,
    frequency_and_norms,
    plausible_outputs,
    sphere,
    windows_as_label_sets,
)
from gonio.studies import packaged_runs as packaged
from gonio.studies.centred_logits import mean_probability
from gonio.studies.made_sentences import triples
from gonio.studies.study import StudyResult
from gonio.studies.tiny_language_models import tiny_models
from gonio.studies.words import judged_words, rows_of_words

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
    """A study: its name and question, on what is given, and on the packaged models."""

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
            f"study {study.name}: what it reads is not at hand (the packages in ./fixtures or GONIO_FIXTURES, with the "
            "extras torch and transformers; Cranfield where GONIO_DATA says); name models of your own."
        )
    return found


def _heads(given: Given, name: str, count: int, states: bool = True) -> list[tuple[Head, Any]]:
    """So many heads, each with its states where they are wanted."""
    if len(given.models) != count:
        raise GonioError(f"study {name}: {len(given.models)} models were named; {count} are needed.")
    if states and len(given.states) != count:
        raise GonioError(
            f"study {name}: states of {len(given.states)} models were given; give --embeddings F.npy for each of "
            f"{count} (gonio states MODEL --text FILE --out F.npy writes them)."
        )
    heads = [load(m) for m in given.models]
    return [(h, _points(given.states[k]) if k < len(given.states) else None) for k, h in enumerate(heads)]


def _points(F: Any) -> np.ndarray:
    return np.asarray(getattr(F, "F", F))


def _lines(given: Given, name: str, models: int = 0) -> list[str]:
    if given.text is None or len(given.models) != models:
        raise GonioError(f"study {name}: it reads a text; give --text FILE" + (" and one MODEL." if models else "."))
    return [x for x in given.text.splitlines() if x.strip()]


def _random(given: Given, report: Report) -> tuple[StudyResult, ...]:
    told, name = given.frequencies, given.models[0] if given.models else ""
    [(head, F)] = _heads(given, "random", 1, states=bool(given.states) or told is None)
    if isinstance(told, dict):
        words = {w.lower(): c for w, c in told.items()}
        told = [told.get(x, words.get(x.lstrip("Ġ▁ ").lower(), 0)) for x in head.labels]
    with np.errstate(divide="ignore"):
        often = None if told is None else np.log(np.maximum(np.asarray(told, np.float64), 0))
    return (different_from_random.different_from_random(head, F, frequency=often, name=name, on_progress=report),)


def _geometry(given: Given, report: Report) -> tuple[StudyResult, ...]:
    (a, F), (b, G) = _heads(given, "geometry", 2, bool(given.states))
    states = None if F is None else (F, G)
    often = None if F is None else np.log(np.maximum(mean_probability(a, F), 1e-30))
    report(0, 1, "equivalent forms")
    names = (given.models[0], given.models[1])
    return (common_geometry.common_geometry(a, b, states=states, frequency=often, names=names),)


def _bias(given: Given, report: Report) -> tuple[StudyResult, ...]:
    return (common_bias.common_bias(tiny_models(_lines(given, "bias"), on_progress=report)),)


def _runs(given: Given, report: Report) -> tuple[StudyResult, ...]:
    raise GonioError("study runs: it trains networks of its own on packaged data; name no model and give no text.")


def _plausible(given: Given, report: Report) -> tuple[StudyResult, ...]:
    [(head, F)] = _heads(given, "plausible", 1)
    return (plausible_outputs.plausible_outputs(head, F, name=given.models[0], on_progress=report),)


def _frequency(given: Given, report: Report) -> tuple[StudyResult, ...]:
    [(head, F)] = _heads(given, "frequency", 1, bool(given.states))
    rows = rows_of_words(head)
    told = given.frequencies
    if told is not None and not isinstance(told, dict):
        raise GonioError("study frequency: --frequencies needs lines of a word, a tab and how often it occurs.")
    often = packaged.word_frequencies() if told is None else {w: float(np.log2(c)) for w, c in told.items() if c > 0}
    if not often:
        raise GonioError("study frequency: no frequencies are at hand; give --frequencies FILE.")
    report(0, 1, "norms and judged pairs")
    name = given.models[0]
    return (frequency_and_norms.frequency_and_norms(head, rows, often, states=F, judged=judged_words(), name=name),)


def _failures(given: Given, report: Report) -> tuple[StudyResult, ...]:
    from gonio.models.opening import open_model
    from gonio.models.sentences import is_sentence_model, states_of_sentences

    background = _lines(given, "failures", 1)
    pairs = packaged.sts_b("train")
    if pairs is None:
        raise GonioError("study failures: STS-B's pairs are not at hand (its package in ./fixtures or GONIO_FIXTURES).")
    model = open_model(given.models[0], "study").model
    if not is_sentence_model(model):
        raise GonioError(f"study failures: {given.models[0]} is no sentence-transformers model; one is needed.")
    report(0, 1, "sentences")
    encode = lambda texts: states_of_sentences(model, texts, len(texts), None).F  # noqa: E731
    return (cosine_failures.cosine_failures(encode, triples(*pairs), background, name=given.models[0]),)


def _windows(given: Given, report: Report) -> tuple[StudyResult, ...]:
    text = "\n".join(_lines(given, "windows"))
    return (windows_as_label_sets.windows_as_label_sets(text, on_progress=report),)


def _downstream(given: Given, report: Report) -> tuple[StudyResult, ...]:
    raise GonioError("study downstream: on tables of your own, gonio check CORPUS --queries Q --qrels FILE tells it.")


def _sphere(given: Given, report: Report) -> tuple[StudyResult, ...]:
    [(head, _)] = _heads(given, "sphere", 1, states=False)
    report(0, 1, "resamples")
    return (sphere.sphere(head.W, name=given.models[0]),)


STUDIES = {
    s.name: s
    for s in (
        Study("random", different_from_random.QUESTION, _random, packaged.random),
        Study("geometry", common_geometry.QUESTION, _geometry, packaged.geometry),
        Study("bias", common_bias.QUESTION, _bias, packaged.bias),
        Study("runs", equal_runs.QUESTION, _runs, packaged.runs),
        Study("frequency", frequency_and_norms.QUESTION, _frequency, packaged.frequency),
        Study("failures", cosine_failures.QUESTION, _failures, packaged.failures),
        Study("windows", windows_as_label_sets.QUESTION, _windows, packaged.windows),
        Study("plausible", plausible_outputs.QUESTION, _plausible, packaged.plausible),
        Study("downstream", downstream.QUESTION, _downstream, packaged.downstream),
        Study("sphere", sphere.QUESTION, _sphere, packaged.sphere),
    )
}
