"""The one loop of every question: the search proposes claims, `verify` disposes, what is refused proves nothing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gonio.core.head import Head
from gonio.proofs.certificate_base import Certificate, CertificateError


def first_verified(head: Head, claims: Iterable[tuple[Certificate, float]]) -> tuple[Certificate | None, float]:
    """The first claim that `verify` accepts, and the margin or bound that it proves.

    Each claim comes with what its search believes of the margin. Where every claim is refused: None, and the smallest
    of these beliefs (infinite where nothing was proposed).
    """
    nearest = np.inf
    for claim, believed in claims:
        try:
            return claim, claim.verify(head)
        except CertificateError:
            nearest = min(nearest, believed)
    return None, nearest
