"""gonio: what the similarity of a model's label vectors means, what it cannot mean, and what is true instead."""

from typing import TYPE_CHECKING, Any

from gonio.errors import GonioError
from gonio.gauge import canonical, dial, fragility, gauge_of, reachable, same_model
from gonio.head import Head, Source
from gonio.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Nonnegative, Observed
from gonio.load import load

if TYPE_CHECKING:
    from gonio import diagnostics, factors, heads, remedies, similarity
    from gonio.audit import alike, audit
    from gonio.patterns.label_sets import label_sets
    from gonio.patterns.questions import can_label, can_rank, can_top
    from gonio.patterns.rankings import rankings
    from gonio.regions.tie import can_tie
    from gonio.regions.win import can_win

__version__ = "0.1.0"
__all__ = [
    "AfterLayerNorm",
    "AfterRMSNorm",
    "AllInputs",
    "Box",
    "GonioError",
    "Head",
    "Nonnegative",
    "Observed",
    "Source",
    "alike",
    "audit",
    "can_label",
    "can_rank",
    "can_tie",
    "can_top",
    "can_win",
    "canonical",
    "diagnostics",
    "dial",
    "factors",
    "fragility",
    "gauge_of",
    "heads",
    "label_sets",
    "load",
    "rankings",
    "reachable",
    "remedies",
    "same_model",
    "similarity",
]

# What compiles kernels is imported when it is first asked for: `import gonio` stays as quick as `import numpy`.
_LATER = {
    "alike": "gonio.audit",
    "audit": "gonio.audit",
    "can_label": "gonio.patterns.questions",
    "can_rank": "gonio.patterns.questions",
    "can_tie": "gonio.regions.tie",
    "can_top": "gonio.patterns.questions",
    "can_win": "gonio.regions.win",
    "label_sets": "gonio.patterns.label_sets",
    "rankings": "gonio.patterns.rankings",
}
_ROOMS = ("diagnostics", "factors", "heads", "remedies", "similarity")


def __getattr__(name: str) -> Any:
    import importlib

    if name in _ROOMS:
        return importlib.import_module(f"gonio.{name}")
    if name not in _LATER:
        raise AttributeError(f"module 'gonio' has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    return globals()[name]
