"""Tables of embeddings with queries: what is wrong with the rows, thresholds, hubs of queries, retrieval, drift."""

from __future__ import annotations

from gonio.embeddings.embedding_table import EmbeddingTable
from gonio.embeddings.open_table import table_of

__all__ = ["EmbeddingTable", "table_of"]
