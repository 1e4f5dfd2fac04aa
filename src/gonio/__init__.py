"""gonio: what the similarity of a model's label vectors means, what it cannot mean, and what is true instead."""

from __future__ import annotations

from gonio.core import renderers as _renderers
from gonio.core.errors import GonioError
from gonio.core.version import __version__

TYPE_CHECKING = False  # as typing has it, whose import takes longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from gonio import diagnostics, embeddings, factors, remedies, similarity
    from gonio.ask.padding import Padded, pad
    from gonio.ask.precision import PrecisionAudit, precision_audit
    from gonio.ask.questions import CanLabel, can_label, can_labels, can_rank, can_top
    from gonio.ask.switching_on import CanBeOn, can_be_on
    from gonio.ask.ties import CanTie, can_tie
    from gonio.ask.verdict import Verdict
    from gonio.ask.wins import CanWin, Twins, can_win
    from gonio.core.head import Head
    from gonio.core.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Nonnegative, Observed
    from gonio.core.run_state import resumable
    from gonio.core.source import Source
    from gonio.core.states import States
    from gonio.findings import Alike, Audit, Check, Finding, alike, audit, check
    from gonio.gauge import (
        Canonical,
        Canonicalised,
        Dialled,
        SameModel,
        canonical,
        canonicalise,
        dial,
        fragility,
        gauge_of,
        reachable,
        same_model,
    )
    from gonio.listing.label_set_list import LabelSets, label_sets
    from gonio.listing.ranking_list import Rankings, rankings
    from gonio.listing.reconstruct import label_sets_from_cosines, rankings_from_cosines
    from gonio.models import load, states
    from gonio.proofs.bulk import verify_all
    from gonio.proofs.certificate_base import Certificate, CertificateError
    from gonio.proofs.certificates import NeverTies, NeverWins, Ties, Undecided, Wins
    from gonio.proofs.comparisons import Impossible, Open, Possible

__all__ = [
    "AfterLayerNorm",
    "AfterRMSNorm",
    "Alike",
    "AllInputs",
    "Audit",
    "Box",
    "CanBeOn",
    "CanLabel",
    "CanTie",
    "CanWin",
    "Canonical",
    "Canonicalised",
    "Certificate",
    "CertificateError",
    "Check",
    "Dialled",
    "Finding",
    "GonioError",
    "Head",
    "Impossible",
    "LabelSets",
    "NeverTies",
    "NeverWins",
    "Nonnegative",
    "Observed",
    "Open",
    "Padded",
    "Possible",
    "PrecisionAudit",
    "Rankings",
    "SameModel",
    "Source",
    "States",
    "Ties",
    "Twins",
    "Undecided",
    "Verdict",
    "Wins",
    "__version__",
    "alike",
    "audit",
    "can_be_on",
    "can_label",
    "can_labels",
    "can_rank",
    "can_tie",
    "can_top",
    "can_win",
    "canonical",
    "canonicalise",
    "check",
    "diagnostics",
    "dial",
    "embeddings",
    "factors",
    "fragility",
    "gauge_of",
    "label_sets",
    "label_sets_from_cosines",
    "load",
    "pad",
    "precision_audit",
    "rankings",
    "rankings_from_cosines",
    "reachable",
    "remedies",
    "resumable",
    "same_model",
    "similarity",
    "states",
    "verify_all",
]

# Everything is imported when it is first asked for: the command `gonio` must be able to answer Ctrl-C before it does.
_ROOMS = (
    "ask",
    "cluster",
    "core",
    "diagnostics",
    "embeddings",
    "explorer",
    "factors",
    "files",
    "findings",
    "gauge",
    "listing",
    "models",
    "papers",
    "proofs",
    "remedies",
    "report",
    "search",
    "similarity",
    "testing",
)
_LATER = {
    "gonio.core.head": ("Head",),
    "gonio.core.run_state": ("resumable",),
    "gonio.core.source": ("Source",),
    "gonio.core.states": ("States",),
    "gonio.core.inputs": (
        "AfterLayerNorm",
        "AfterRMSNorm",
        "AllInputs",
        "Box",
        "Nonnegative",
        "Observed",
    ),
    "gonio.gauge": (
        "Canonical",
        "Canonicalised",
        "Dialled",
        "SameModel",
        "canonical",
        "canonicalise",
        "dial",
        "fragility",
        "gauge_of",
        "reachable",
        "same_model",
    ),
    "gonio.models": (
        "load",
        "states",
    ),
    "gonio.ask.padding": (
        "Padded",
        "pad",
    ),
    "gonio.ask.precision": (
        "PrecisionAudit",
        "precision_audit",
    ),
    "gonio.ask.questions": (
        "CanLabel",
        "can_label",
        "can_labels",
        "can_rank",
        "can_top",
    ),
    "gonio.ask.switching_on": (
        "CanBeOn",
        "can_be_on",
    ),
    "gonio.ask.ties": (
        "CanTie",
        "can_tie",
    ),
    "gonio.ask.verdict": ("Verdict",),
    "gonio.ask.wins": (
        "CanWin",
        "Twins",
        "can_win",
    ),
    "gonio.findings": (
        "Alike",
        "Audit",
        "Check",
        "Finding",
        "alike",
        "audit",
        "check",
    ),
    "gonio.listing.label_set_list": (
        "LabelSets",
        "label_sets",
    ),
    "gonio.listing.ranking_list": (
        "Rankings",
        "rankings",
    ),
    "gonio.listing.reconstruct": (
        "label_sets_from_cosines",
        "rankings_from_cosines",
    ),
    "gonio.proofs.bulk": ("verify_all",),
    "gonio.proofs.certificate_base": (
        "Certificate",
        "CertificateError",
    ),
    "gonio.proofs.certificates": (
        "NeverTies",
        "NeverWins",
        "Ties",
        "Undecided",
        "Wins",
    ),
    "gonio.proofs.comparisons": (
        "Impossible",
        "Open",
        "Possible",
    ),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _ROOMS:
        return importlib.import_module(f"gonio.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gonio' has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)


def _fill_renderers() -> None:
    from gonio import report

    report.register_all()


_renderers.fill_with(_fill_renderers)
