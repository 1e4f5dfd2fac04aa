"""How alike are two labels? One measure an idea; each says which changes of convention leave it alone."""

from __future__ import annotations

from gonio.similarity.behaviour import ExpectedLogRatio, LogProbabilityCorrelation, WhichInputs
from gonio.similarity.bootstrap import Interval
from gonio.similarity.hubs import CSLS, NICDM, LocalScaling, MutualProximity, csls
from gonio.similarity.judged import Judged
from gonio.similarity.logits import (
    CentredLogitCorrelation,
    CentredLogitCovariance,
    LogitCorrelation,
    LogitCovariance,
    centred_logit_correlation,
    logit_correlation,
)
from gonio.similarity.measures import MEASURES, Measure, Neighbours, for_link, measure
from gonio.similarity.norms import AugmentedCosine, PrintedRotation, RadiallyWeighted, ScaledSim
from gonio.similarity.percentile import Null, Percentile, Threshold, migrate_threshold, null, score_to_percentile
from gonio.similarity.query import QueryNormalised
from gonio.similarity.rotator import word_rotators_distance, word_rotators_distances
from gonio.similarity.rows import CentredCosine, Cosine, DifferenceCosine, Dot, Euclid, NormalisedEuclid
from gonio.similarity.soft import SoftCosine, soft_cosine
from gonio.similarity.whitened import CausalInnerProduct, WhitenedCentredCosine, WhitenedCosine

__all__ = [
    "CSLS",
    "MEASURES",
    "NICDM",
    "AugmentedCosine",
    "CausalInnerProduct",
    "CentredCosine",
    "CentredLogitCorrelation",
    "CentredLogitCovariance",
    "Cosine",
    "DifferenceCosine",
    "Dot",
    "Euclid",
    "ExpectedLogRatio",
    "Interval",
    "Judged",
    "LocalScaling",
    "LogProbabilityCorrelation",
    "LogitCorrelation",
    "LogitCovariance",
    "Measure",
    "MutualProximity",
    "Neighbours",
    "NormalisedEuclid",
    "Null",
    "Percentile",
    "PrintedRotation",
    "QueryNormalised",
    "RadiallyWeighted",
    "ScaledSim",
    "SoftCosine",
    "Threshold",
    "WhichInputs",
    "WhitenedCentredCosine",
    "WhitenedCosine",
    "centred_logit_correlation",
    "csls",
    "for_link",
    "logit_correlation",
    "measure",
    "migrate_threshold",
    "null",
    "score_to_percentile",
    "soft_cosine",
    "word_rotators_distance",
    "word_rotators_distances",
]
