"""What helps: changes of vectors as scikit-learn transformers, which abstain where judged pairs speak against them; and
heads made to order."""

from __future__ import annotations

from gonio.remedies.center import Center
from gonio.remedies.dft_head import dft, dft_allows
from gonio.remedies.lengths import LengthAsFeature, Normalize
from gonio.remedies.prevention import unit_rows, voronoi_bias
from gonio.remedies.query import QueryNormalizer
from gonio.remedies.remedy import REMEDIES, Remedy, load
from gonio.remedies.standardize import Standardize
from gonio.remedies.top_components import RemoveTopComponents
from gonio.remedies.whiten import Whiten

__all__ = [
    "REMEDIES",
    "Center",
    "LengthAsFeature",
    "Normalize",
    "QueryNormalizer",
    "Remedy",
    "RemoveTopComponents",
    "Standardize",
    "Whiten",
    "dft",
    "dft_allows",
    "load",
    "unit_rows",
    "voronoi_bias",
]
