"""Tables of embeddings with queries: what is wrong with the rows, thresholds, hubs of queries, retrieval, drift."""

from __future__ import annotations

from gonio.embeddings.applied_remedy import apply_remedy
from gonio.embeddings.embedding_table import EmbeddingTable
from gonio.embeddings.open_table import table_of
from gonio.embeddings.table_drift import TableDrift, apply_map, compare_tables, linear_map

__all__ = [
    "EmbeddingTable",
    "TableDrift",
    "apply_map",
    "apply_remedy",
    "compare_tables",
    "linear_map",
    "table_of",
]
