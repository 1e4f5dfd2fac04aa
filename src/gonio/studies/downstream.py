"""Do the alternatives to the cosine help downstream? Every way of `gonio check` on judged retrieval, in one table.

The open question of Steck, Ekanadham and Kallus, answered by the doctor of embeddings: nDCG@10 of the cosine with its
interval, and of each other way the difference to it, query by query, corrected for all that was tried (Holm).
"""

from __future__ import annotations

from typing import Any

from gonio.findings.check_run import check
from gonio.studies.study import Measured, StudyResult

QUESTION = "Does anything that is offered in place of the cosine find more of what people judged relevant?"


def downstream(
    corpus: Any, queries: Any, qrels: Any, *, gains: str = "linear", name: str = "the tables given"
) -> StudyResult:
    """The ways of `gonio check` beside the cosine on one judged collection.

    Parameters
    ----------
    corpus, queries : embeddings of documents and of queries, as `gonio.check` takes them
    qrels : grades by query and document, as `gonio.check` takes them
    """
    report = check(corpus, queries, qrels=qrels, gains=gains)
    found = {f.key: f for f in report.findings}
    base = found["retrieval"].data["interval"]
    rows = [Measured("cosine: nDCG@10", base["value"], base["low"], base["high"], "over queries")]
    verdicts = {}
    for way in found["remedies"].data["compared"]:
        d = way["difference"]
        how = f"nDCG@10 beside the cosine: {way['verdict']}"
        rows.append(Measured(way["name"], d["value"], d["low"], d["high"], how))
        verdicts[way["name"]] = way["verdict"]
    return StudyResult(
        "downstream",
        QUESTION,
        f"{name}: {report.about['shape'][0]:,} documents",
        tuple(rows),
        verdict(verdicts),
        against(verdicts),
        "One collection under one model; intervals are over queries, verdicts corrected for all ways tried.",
        extra={"verdicts": verdicts},
    )


def verdict(v: dict[str, str]) -> str:
    """Which ways are shown to help, which to hurt."""
    better, worse = ([k for k, x in v.items() if x == word] for word in ("better", "worse"))
    rest = len(v) - len(better) - len(worse)
    said = (
        f"Shown to be better than the cosine: {', '.join(better)}" if better else "Nothing is shown to beat the cosine"
    )
    return f"{said}; shown to be worse: {', '.join(worse) or 'nothing'}; not shown either way: {rest} of {len(v)}."


def against(v: dict[str, str]) -> str:
    """The papers recommend centring and whitening: said where one of them is shown to hurt."""
    bad = [k for k, x in v.items() if x == "worse" and ("whiten" in k or "centred" in k or "top" in k)]
    return f"recommended remedies hurt here: {', '.join(bad)}." if bad else ""
