"""gonio: what the similarity of a model's label vectors means, what it cannot mean, and what is true instead."""

from typing import TYPE_CHECKING, Any

from gonio.errors import GonioError
from gonio.gauge import canonical, dial, fragility, gauge_of, reachable, same_model
from gonio.head import Head, Source
from gonio.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Nonnegative, Observed
from gonio.load import load

if TYPE_CHECKING:
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
    "can_tie",
    "can_win",
    "canonical",
    "dial",
    "fragility",
    "gauge_of",
    "load",
    "reachable",
    "same_model",
]

# What compiles kernels is imported when it is first asked for: `import gonio` stays as quick as `import numpy`.
_LATER = {"can_tie": "gonio.regions.tie", "can_win": "gonio.regions.win"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'gonio' has no attribute {name!r}")
    import importlib

    globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    return globals()[name]
