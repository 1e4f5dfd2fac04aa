"""Is something wrong with the space? One diagnosis a file; each knows what the head's gauge leaves open."""

from __future__ import annotations

from gonio.diagnostics.agreement_of_heads import Agreement, agreement
from gonio.diagnostics.anisotropy_of_rows import Anisotropy, anisotropy, effective_rank, isoscore, partition_ratio
from gonio.diagnostics.concentration_of_cosines import Concentration, concentration
from gonio.diagnostics.duplicates import NearDuplicates, near_duplicates
from gonio.diagnostics.frequency import FrequencyBias, frequency_bias, slope_on_frequency
from gonio.diagnostics.frequency_deciles import FrequencyAgreement, frequency_agreement
from gonio.diagnostics.gauge_orbit import Orbit, orbit
from gonio.diagnostics.hubs import Hubness, hubness
from gonio.diagnostics.row_norms import Norms, norms
from gonio.diagnostics.undertrained_rows import Undertrained, find_unused, undertrained

__all__ = [
    "Agreement",
    "Anisotropy",
    "Concentration",
    "FrequencyAgreement",
    "FrequencyBias",
    "Hubness",
    "NearDuplicates",
    "Norms",
    "Orbit",
    "Undertrained",
    "agreement",
    "anisotropy",
    "concentration",
    "effective_rank",
    "find_unused",
    "frequency_agreement",
    "frequency_bias",
    "hubness",
    "isoscore",
    "near_duplicates",
    "norms",
    "orbit",
    "partition_ratio",
    "slope_on_frequency",
    "undertrained",
]
