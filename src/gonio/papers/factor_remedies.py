"""The item vectors that each remedy of the paper leads to, on the same interactions.

trained on the cosine                   rows normalised while they are learnt
standardised, inverse propensity,       the table is changed before a fit with a penalty on the product; its cosines
negative sampling                       are still a convention (as fitted) unless projected back
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.factors.fitting import fit
from gonio.factors.interactions import Interactions
from gonio.factors.remedies import InteractionRemedy, NegativeSampling, Propensity, Standardise
from gonio.factors.similar import vectors

BEFORE: dict[str, InteractionRemedy] = {
    "standardised": Standardise(),
    "inverse propensity": Propensity(),
    "negative sampling": NegativeSampling(count=1),
}


def remedied(X: Any, rank: int, lam: float, *, steps: int = 100) -> dict[str, np.ndarray]:
    """Item vectors by remedy. `lam` is that of the plain fit; a changed table gets it in proportion to its ||X||^2.

    steps : of training on the cosine, which starts at the singular directions
    """
    out = {"trained on the cosine": fit(X, rank, link="cosine", steps=steps).items}
    total = Interactions(X).total
    for name, remedy in BEFORE.items():
        share = remedy.apply(Interactions(X)).total / total
        model = fit(X, rank, "product", lam=lam * share, remedy=remedy)
        out[f"{name}, as fitted"] = model.items
        out[f"{name}, projected back"] = vectors(model.users, model.items, "projected")
    return out
