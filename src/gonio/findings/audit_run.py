"""The audit itself: every question once, in order; what is finished is kept whatever happens to the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import one_blas_thread
from gonio.core.renderers import rendered
from gonio.core.version import __version__
from gonio.findings.anomalies import odd
from gonio.findings.cosine_findings import cosine
from gonio.findings.describe import what
from gonio.findings.factor_findings import factor_model
from gonio.findings.finding import SECTIONS, Finding
from gonio.findings.found import Found, check_keys, plain
from gonio.findings.label_table import LabelTable, label_table
from gonio.findings.live_model import head_and_states
from gonio.findings.measures_instead import instead
from gonio.findings.possible_outputs import possible
from gonio.findings.subject import Subject, is_factor_model

VERSION = 2  # of the JSON: raised when a field changes its meaning
QUESTIONS: dict[str, Callable[[Subject], Iterator[Finding]]] = {
    "head": what,
    "cosine": cosine,
    "possible": possible,
    "instead": instead,
    "odd": odd,
    "answer": factor_model,
}
# The findings that can be warnings, and for which heads they are looked for at all.
WARNINGS: dict[str, Callable[[Subject], str]] = {
    "shape": lambda s: "",
    "twins": lambda s: "",
    "zero-rows": lambda s: "",
    "anisotropy": lambda s: "",
    "hubness": lambda s: "",
    "norms": lambda s: "" if s.frequencies is not None else "this head cannot have: it needs --frequencies",
    "never-wins": lambda s: _needs_link(s, ("softmax", "dot")),
    "padded-wins": lambda s: _needs_link(s, ("softmax", "dot")),
    "never-on": lambda s: _needs_link(s, ("sigmoid",)),
    "never-off": lambda s: _needs_link(s, ("sigmoid",)),
    "impossible-sets": lambda s: (
        _needs_link(s, ("sigmoid",)) or ("" if s.label_sets is not None else "this head cannot have: it needs --sets")
    ),
    "never-first": lambda s: _needs_users(s),
    "never-shown": lambda s: _needs_users(s),
    "constant-columns": lambda s: _needs_users(s),
}


def _needs_link(s: Subject, links: tuple[str, ...]) -> str:
    if s.head.link in links:
        return ""
    return f"this head cannot have: it is about the link {' or '.join(links)}, and this is {s.head.link}"


def _needs_users(s: Subject) -> str:
    return "" if is_factor_model(s.head) else "this head cannot have: it is about factor models (--users, --items)"


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Found):
    """Everything found about one head.

    findings      in order of section
    seconds       how long each question took
    unfinished    questions that an interrupt cut off
    labels        every label with what is known of it; None where an interrupt came before it
    states_typed  the options by which a command line is given the same embeddings; empty where none were
    """

    asked_by: ClassVar[str] = "audit"

    head: Head
    findings: tuple[Finding, ...]
    seconds: dict[str, float]
    unfinished: tuple[str, ...]
    given: dict[str, int]
    labels: LabelTable | None = None
    states_typed: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The audit in plain values: docs/audit.schema.json describes it."""
        h = self.head
        return {
            "format": "gonio audit",
            "version": VERSION,
            "gonio": __version__,
            "head": {
                "digest": h.digest,
                "labels": h.shape[0],
                "dim": h.shape[1],
                "link": h.link,
                "inputs": str(h.inputs),
                "place": h.source.place if h.source else None,
            },
            "given": dict(self.given),
            "sections": dict(SECTIONS),
            "findings": [plain(f.to_dict()) for f in self.findings],
            "labels": None if self.labels is None else self.labels.to_dict(),
            "unfinished": list(self.unfinished),
            "seconds": {k: round(v, 3) for k, v in self.seconds.items()},
        }

    def to_html(self, path: str | Path | None = None, *, embed_rows: bool = False) -> str:
        """The audit as one self-contained page, written to a file where one is named.

        With `embed_rows` the page carries the rows' directions in half precision and answers for any pair of labels:
        they are the model's weights, so pass such a page on only where you would pass on the model.
        """
        return self._written(rendered(self, "html with rows" if embed_rows else "html"), path)

    def __repr__(self) -> str:
        n, d = self.head.shape
        stopped = f", stopped before {', '.join(self.unfinished)}" if self.unfinished else ""
        said = "; ".join(f.title for f in self.warnings[:3]) or "nothing worth acting on"
        return f"Audit({n:,} labels x {d}, link {self.head.link}: {len(self.findings)} findings{stopped})\n  {said}"


def audit(
    head: Any,
    embeddings: Any = None,
    frequencies: Any = None,
    pairs: Any = None,
    label_sets: Any = None,
    *,
    k: int = 10,
    seed: int = 0,
    popularity: Any = None,
    tokenizer: Any = None,
    texts: Any = None,
    fail_on: Sequence[str] = (),
    on_question: Callable[[int, int, str], None] | None = None,
) -> Audit:
    """Everything gonio knows, asked once, in order, for one head.

    Parameters
    ----------
    head : a Head, or a live model (transformers, a torch module, a SentenceTransformer), whose head is read
    embeddings : states that reach the head, one a row: what similarity is measured over
    frequencies : how often each label occurs, in label order, or a dict by name
    pairs : pairs of labels whose cosine you care about; otherwise the most similar one found
    label_sets : the label sets of a data set (sigmoid heads): which can never be output?
    k : how many neighbours a list has
    popularity : for factor models, how often each item was touched
    tokenizer, texts : of a live model: it reads the texts, and the states that reach its head are the embeddings
    fail_on : findings that you will ask `failing` about; one that does not exist, or not for this head, is an error

    An interrupt (Ctrl-C) keeps what is finished.

    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]], link="softmax")
    >>> audit(head)["never-wins"].value
    0
    """
    head, embeddings = head_and_states(head, embeddings, tokenizer, texts)
    s = Subject.of(head, embeddings, frequencies, pairs, label_sets, k, seed, popularity)
    check_keys("audit", fail_on, WARNINGS, s)
    findings: list[Finding] = []
    seconds: dict[str, float] = {}
    unfinished: list[str] = []
    names = [name for name in QUESTIONS if name != "answer" or is_factor_model(head)]
    with one_blas_thread():  # its own threads would wait for each other, and round by how many they are
        for place, name in enumerate(names):
            if on_question is not None:
                on_question(place, len(names), SECTIONS[name].lower())
            began = time.perf_counter()
            try:
                for finding in QUESTIONS[name](s):
                    findings.append(finding)
            except KeyboardInterrupt:
                unfinished = names[place:]
                break
            except GonioError as e:
                findings.append(
                    Finding(f"{name}-failed", "open", f"{SECTIONS[name]}: not answered", "open", None, str(e))
                )
            seconds[name] = time.perf_counter() - began
    if on_question is not None and not unfinished:
        on_question(len(names), len(names), "done")
    for k, name in enumerate(unfinished):
        says = "The audit was stopped before this was answered" + (" in full." if k == 0 else ".")
        title = f"{SECTIONS[name]}: not {'finished' if k == 0 else 'asked'}"
        findings.append(Finding(f"{name}-stopped", "open", title, "open", None, says))
    order = list(SECTIONS)
    findings.sort(key=lambda f: order.index(f.section))
    given = {
        "embeddings": 0 if s.embeddings is None else len(s.embeddings),
        "frequencies": 0 if s.frequencies is None else len(s.frequencies),
        "pairs": len(s.pairs),
        "label_sets": 0 if s.label_sets is None else len(s.label_sets),
    }
    typed = "" if s.embeddings is None else "--embeddings FILE"  # arrays have no name: the reader's file
    with one_blas_thread():
        table = _table(s, seconds)
    return Audit(head, tuple(findings), seconds, tuple(unfinished), given, table, typed)


def _table(s: Subject, seconds: dict[str, float]) -> LabelTable | None:
    """The table of labels from what was found; what could not be had leaves it out."""
    began = time.perf_counter()
    try:
        return label_table(s)
    except (KeyboardInterrupt, GonioError):
        return None
    finally:
        seconds["labels"] = time.perf_counter() - began
