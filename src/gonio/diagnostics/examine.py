"""All diagnoses of one head, from one pass over all pairs."""

from __future__ import annotations

from typing import Any

from gonio.core.head import Head
from gonio.diagnostics.anisotropy_of_rows import anisotropy
from gonio.diagnostics.concentration_of_cosines import concentration
from gonio.diagnostics.duplicates import near_duplicates
from gonio.diagnostics.frequency import frequency_bias
from gonio.diagnostics.gauge_orbit import orbit as orbit_of
from gonio.diagnostics.hubs import check_k, hubness
from gonio.diagnostics.result import Result
from gonio.diagnostics.row_norms import norms
from gonio.diagnostics.undertrained_rows import undertrained
from gonio.similarity.nearest import nearest_by_cosine


def examine(
    head: Head,
    *,
    embeddings: Any = None,
    frequencies: Any = None,
    unused: Any = None,
    k: int | None = None,
    orbit: bool = True,
) -> dict[str, Result]:
    """Every diagnosis that what was given allows, by name. The neighbour lists are found once.

    k : how many neighbours a list has; 10 if not given, fewer where there are fewer labels
    """
    k = check_k(min(10, max(1, head.shape[0] - 1)) if k is None else k, head.shape[0], "diagnose")
    near = nearest_by_cosine(head.rows, k)
    hubs = hubness(head, k, neighbours=near[0])
    duplicates = near_duplicates(head, neighbours=near[0], cosines=near[1])
    found: dict[str, Result] = {
        "hubness": hubs,
        "anisotropy": anisotropy(head),
        "concentration": concentration(head),
        "norms": norms(head, frequencies, hubs=hubs.counts),
        "near-duplicates": duplicates,
        "undertrained": undertrained(head, unused, duplicates=duplicates),
    }
    if frequencies is not None:
        found["frequency bias"] = frequency_bias(head, frequencies)
    if orbit:
        found["orbit"] = orbit_of(head, k=k, embeddings=embeddings, neighbours=near)
    return found
