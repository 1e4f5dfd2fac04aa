"""The studies on the packaged models: what docs/findings.md tells was run by these."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gonio.core.head import Head
from gonio.embeddings import table_of
from gonio.models.loading import load
from gonio.papers.real import fixture, minilm_words, sts_b
from gonio.studies import common_bias as _bias
from gonio.studies import common_geometry as _geometry
from gonio.studies import cosine_failures as _failures
from gonio.studies import different_from_random as _random
from gonio.studies import downstream as _downstream
from gonio.studies import equal_runs as _runs
from gonio.studies import frequency_and_norms as _frequency
from gonio.studies import plausible_outputs as _plausible
from gonio.studies import real_data
from gonio.studies import sphere as _sphere
from gonio.studies import windows_as_label_sets as _windows
from gonio.studies.centred_logits import mean_probability
from gonio.studies.fixture_heads import extracted, real_heads, smollm2_states
from gonio.studies.made_sentences import abstract_triples, triples
from gonio.studies.packaged_encoder import encoded
from gonio.studies.study import StudyResult
from gonio.studies.texts import cranfield, cranfield_questions, cranfield_sentences, fixture_text, news, sts_sentences
from gonio.studies.tiny_language_models import tiny_models
from gonio.studies.words import frequency_of_rows, informativeness, judged_words, rows_of_words, word_frequencies

Report = Callable[[int, int, str], None]
FEW = 60  # labels asked of a head of many: each is proven against all rivals


def random(report: Report) -> Iterator[StudyResult]:
    for h in real_heads():
        yield _random.different_from_random(h.head, h.F, name=h.name, on_progress=report)
        if h.name == "g2pM":  # how much hangs on the number of labels
            yield _random.different_from_random(h.head, h.F, name=h.name, labels=800, on_progress=report)
    often, smol = word_frequencies(), smollm2_states()
    if not often:
        return
    tables = (("SmolLM2's words", smol and smol[0]), ("MiniLM's input table", minilm_words()),
              ("wordllama's table", wordllama_words()))  # fmt: skip
    for name, head in tables:
        if head is not None:
            F = smol[1]["F"] if smol is not None and head is smol[0] else None
            told = frequency_of_rows(head, often)
            yield _random.different_from_random(
                head, F, frequency=told, counted_in="wordfreq's list", name=name, on_progress=report
            )


def geometry(report: Report) -> Iterator[StudyResult]:
    ocr = list(real_heads(("PP-OCRv3", "PP-OCRv4")))
    if len(ocr) == 2:
        report(0, 3, "PP-OCRv3 and PP-OCRv4")
        yield _pair((ocr[0].head, ocr[1].head), (ocr[0].F, ocr[1].F), (ocr[0].name, ocr[1].name), 60)
    whole, coarse = smollm2_states(), smollm2_states(4)
    if whole is not None and coarse is not None:
        report(1, 3, "SmolLM2 and its copy")
        names = ("SmolLM2", "a copy rounded to 4 bits")
        yield _pair((whole[0], coarse[0]), (whole[1]["F"], coarse[1]["F"]), names, 20)
    minilm, llama = minilm_words(), wordllama_words()
    if minilm is not None and llama is not None:
        report(2, 3, "MiniLM's and wordllama's words")
        often = word_frequencies()
        rows = np.array([often.get(x, np.nan) for x in minilm.labels])
        rows = np.where(np.isfinite(rows), rows, np.nanmin(rows))
        names = ("MiniLM's input table", "wordllama's")
        yield _geometry.common_geometry(minilm, llama, frequency=rows, names=names)


def _pair(heads: tuple[Head, Head], F: tuple[Any, Any], names: tuple[str, str], steps: int) -> StudyResult:
    often = np.log(np.maximum(mean_probability(heads[0], F[0]), 1e-30))
    return _geometry.common_geometry(*heads, states=F, frequency=often, names=names, steps=steps)


def wordllama_words() -> Head | None:
    """wordllama's rows that begin a word, under the word; None where the package is not there."""
    wheel = fixture("wordllama-*.whl")
    if wheel is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        place = extracted(wheel, "wordllama/weights/l2_supercat_256", folder) / "l2_supercat_256.safetensors"
        names = extracted(wheel, "wordllama/tokenizers/l2_supercat_tok", folder) / "l2_supercat_tokenizer_config.json"
        head = load(place, labels=names)
        rows = [i for i, t in enumerate(head.labels) if t.startswith("▁") and len(t) > 1]
        once = list({head.labels[i][1:]: i for i in reversed(rows)}.items())
        W = np.array(head.W[[i for _, i in once]], np.float64)
    return Head(W, link="vectors", labels=[w for w, _ in once])


def bias(report: Report) -> Iterator[StudyResult]:
    texts, _ = fixture_text()
    if texts:
        yield _bias.common_bias(tiny_models(texts, on_progress=report))


def runs(report: Report) -> Iterator[StudyResult]:
    for data in (real_data.digits(), real_data.films()):
        if data is not None:
            yield _runs.equal_runs(data, on_progress=report)


def frequency(report: Report) -> Iterator[StudyResult]:
    often, judged, (texts, _) = word_frequencies(), judged_words(), fixture_text()
    table, smol = minilm_words(), smollm2_states()
    if not often:
        return
    report(0, 3, "MiniLM's table")
    if table is not None:
        rows = rows_of_words(table)
        told = informativeness(texts, list(rows))
        name = "MiniLM's input table"
        yield _frequency.frequency_and_norms(table, rows, often, judged=judged, informative=told, name=name)
    report(1, 3, "SmolLM2's table")
    if smol is not None:
        rows = rows_of_words(smol[0])
        told, F = informativeness(texts, list(rows)), smol[1]["F"]
        yield _frequency.frequency_and_norms(
            smol[0], rows, often, judged=judged, states=F, informative=told, name="SmolLM2"
        )
    report(2, 3, "MiniLM's sentences")
    yield from _sentences(often)


def _sentences(often: dict[str, float]) -> Iterator[StudyResult]:
    """Sentences of STS-B as labels, their mean log2 frequency as theirs."""
    pairs, texts = sts_b("dev"), sts_sentences("dev")
    vectors = encoded(texts) if texts else None
    if pairs is None or vectors is None:
        return
    known = {t: [often[w] for w in t.lower().rstrip(".").split() if w in often] for t in texts}
    mean = {t: float(np.mean(f)) for t, f in known.items() if f}
    head = Head(vectors["mean"], link="cosine", labels=texts)
    judged = [(a, b, float(s)) for a, b, s in zip(*pairs, strict=True)]
    rows = {t: i for i, t in enumerate(texts)}
    yield _frequency.frequency_and_norms(head, rows, mean, judged=judged, name="MiniLM", what="sentences of STS-B")


def failures(report: Report) -> Iterator[StudyResult]:
    parts, dev = [p for x in ("train", "dev", "test") if (p := sts_b(x)) is not None], sts_sentences("dev")
    if not parts:
        return
    first, second = ([x for p in parts for x in p[k]] for k in (0, 1))
    cases = triples(first, second, [float(s) for p in parts for s in p[2]]) | abstract_triples(cranfield_sentences())
    titles = [t.split(" . ")[0] for t in cranfield()]
    background = [*dev[::3], *titles[::3]]
    for k, pool in enumerate(("mean", "[CLS]")):
        report(k, 2, f"MiniLM, {pool}")

        def encode(texts: list[str], pool: Any = pool) -> np.ndarray:
            found = encoded(texts)
            assert found is not None
            return found[pool]

        if encoded(["a"]) is not None:
            yield _failures.cosine_failures(encode, cases, background, name=f"MiniLM, {pool}")


def windows(report: Report) -> Iterator[StudyResult]:
    text = news()
    if text is not None:
        yield _windows.windows_as_label_sets(text, name="a news corpus (in gensim)", on_progress=report)


def plausible(report: Report) -> Iterator[StudyResult]:
    for h in real_heads():
        labels = 400 if len(h.head) < 20_000 else FEW
        yield _plausible.plausible_outputs(h.head, h.F, name=h.name, labels=labels, on_progress=report)


def downstream(report: Report) -> Iterator[StudyResult]:
    held = cranfield_questions()
    if held is None:
        return
    report(0, 1, "Cranfield")
    documents, questions = encoded(held[0]), encoded(held[1])
    if documents is None or questions is None:
        return
    corpus, queries = (
        table_of(x["mean"], ids=[str(i + 1) for i in range(len(x["mean"]))]) for x in (documents, questions)
    )
    yield _downstream.downstream(corpus, queries, held[2], gains="exponential", name="Cranfield under MiniLM")


def sphere(report: Report) -> Iterator[StudyResult]:
    texts = sts_sentences("dev")
    vectors = encoded(texts) if texts else None
    if vectors is not None:
        report(0, 2, "sentences")
        yield _sphere.sphere(vectors["mean"], name="MiniLM's sentences of STS-B")
    smol = smollm2_states()
    if smol is not None:
        report(1, 2, "SmolLM2")
        yield _sphere.sphere(smol[0].W[::25], name="SmolLM2's rows, one in 25")
        yield _sphere.sphere(smol[1]["F"], name="SmolLM2's states")
