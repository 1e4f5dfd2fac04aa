"""Matrix factorisation: both objectives in closed form, what each leaves open, and similarities that are real."""

from __future__ import annotations

from gonio.factors.checkup import FactorAudit, audit
from gonio.factors.fitting import fit
from gonio.factors.model import FactorModel
from gonio.factors.remedies import InteractionRemedy, NegativeSampling, Propensity, Standardise
from gonio.factors.rescaling import cosine_range, rescale, user_item_range
from gonio.factors.rescaling_survey import RescalingSurvey, survey
from gonio.factors.similar import SimilarItems, similar_items

__all__ = [
    "FactorAudit",
    "FactorModel",
    "InteractionRemedy",
    "NegativeSampling",
    "Propensity",
    "RescalingSurvey",
    "SimilarItems",
    "Standardise",
    "audit",
    "cosine_range",
    "fit",
    "rescale",
    "similar_items",
    "survey",
    "user_item_range",
]
