"""Heads made to order."""

from gonio.heads.dft import dft, dft_allows
from gonio.heads.prevention import unit_rows, voronoi_bias

__all__ = ["dft", "dft_allows", "unit_rows", "voronoi_bias"]
