"""gonio: what the similarity of a model's label vectors means, what it cannot mean, and what is true instead."""

from gonio.errors import GonioError
from gonio.gauge import canonical, dial, fragility, gauge_of, reachable, same_model
from gonio.head import Head, Source
from gonio.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Nonnegative, Observed
from gonio.load import load

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
    "canonical",
    "dial",
    "fragility",
    "gauge_of",
    "load",
    "reachable",
    "same_model",
]
