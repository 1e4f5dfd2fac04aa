"""Dask clusters behind joblib's seam: workers of this machine, or those at an address."""

from gonio.cluster.connecting import connected

__all__ = ["connected"]
