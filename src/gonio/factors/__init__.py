"""Matrix factorisation: both objectives in closed form, what each leaves open, and similarities that are real."""

from __future__ import annotations

from gonio.factors.audit import FactorAudit, audit
from gonio.factors.compare import Comparison, compare
from gonio.factors.experiments import Experiment, dropout_against_decay, projecting, rescaling, restarts
from gonio.factors.figure1 import Figure1, figure1
from gonio.factors.fit import fit
from gonio.factors.model import FactorModel
from gonio.factors.remedies import NegativeSampling, Propensity, Remedy, Standardise
from gonio.factors.rescale import cosine_range, rescale, user_item_range
from gonio.factors.similar import SimilarItems, similar_items
from gonio.factors.simulate import Separation, Simulated, separation, simulate
from gonio.factors.survey import RescalingSurvey, survey

__all__ = [
    "Comparison",
    "Experiment",
    "FactorAudit",
    "FactorModel",
    "Figure1",
    "NegativeSampling",
    "Propensity",
    "Remedy",
    "RescalingSurvey",
    "Separation",
    "SimilarItems",
    "Simulated",
    "Standardise",
    "audit",
    "compare",
    "cosine_range",
    "dropout_against_decay",
    "figure1",
    "fit",
    "projecting",
    "rescale",
    "rescaling",
    "restarts",
    "separation",
    "similar_items",
    "simulate",
    "survey",
    "user_item_range",
]
