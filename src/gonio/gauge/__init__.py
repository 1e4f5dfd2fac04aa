"""What may change while the model does not: groups, the cosine dial, fragility, canonical forms, same-model test."""

from __future__ import annotations

from gonio.gauge.canonical_forms import Canonical, canonical
from gonio.gauge.canonicalising import Canonicalised, canonicalise
from gonio.gauge.comparing import SameModel, same_model
from gonio.gauge.dialling import Dialled, dial
from gonio.gauge.group import Gauge, gauge_of, reachable
from gonio.gauge.reach import Reach, fragility, smallest_translation
from gonio.gauge.transforms import (
    BiasShift,
    Chain,
    Diagonal,
    InputShift,
    LayerNormShift,
    Linear,
    Rotation,
    RowScaling,
    Scaling,
    Transform,
    Translation,
)

__all__ = [
    "BiasShift",
    "Canonical",
    "Canonicalised",
    "Chain",
    "Diagonal",
    "Dialled",
    "Gauge",
    "InputShift",
    "LayerNormShift",
    "Linear",
    "Reach",
    "Rotation",
    "RowScaling",
    "SameModel",
    "Scaling",
    "Transform",
    "Translation",
    "canonical",
    "canonicalise",
    "dial",
    "fragility",
    "gauge_of",
    "reachable",
    "same_model",
    "smallest_translation",
]
