"""Which embeddings can reach a head: the sets (`sets`), and how they are written as text (`spellings`)."""

from gonio.core.inputs.base import Inputs, Problem, Shape
from gonio.core.inputs.sets import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Nonnegative, Observed
from gonio.core.inputs.spellings import SPELLINGS, of, parse, without_files

__all__ = [
    "SPELLINGS",
    "AfterLayerNorm",
    "AfterRMSNorm",
    "AllInputs",
    "Box",
    "Inputs",
    "Nonnegative",
    "Observed",
    "Problem",
    "Shape",
    "of",
    "parse",
    "without_files",
]
