"""Tables that a model adds to every row of its token embeddings: they can take up a vector added to all of these.

Where the model's first step is  word[token] + types[kind] + positions[place],  adding v to all word rows and -v to all
rows of one of the others changes no sum, and so nothing that the model computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gonio.core.archive import Archive
from gonio.files.read.weights import find

TYPES, POSITIONS = ("token_type_embeddings.weight",), ("position_embeddings.weight",)
# Model types whose first step is such a sum, before any norm or scale, and the tables in it, the smallest first.
ADDED = dict.fromkeys(
    ("bert", "roberta", "xlm-roberta", "camembert", "electra", "albert", "ernie", "convbert", "roformer",
     "data2vec-text"),
    (*TYPES, *POSITIONS),
) | {
    "distilbert": POSITIONS,
    "mpnet": POSITIONS,
    "gpt2": ("wpe.weight",),
    "openai-gpt": ("positions_embed.weight",),
    "opt": ("embed_positions.weight",),
}  # fmt: skip


def table_added_to(archive: Archive, config: Mapping[str, Any], table: str) -> str | None:
    """The table that this model adds to every row of its token embeddings; None where none is known.

    Rotary and relative positions are not added to the rows, so such a model has none.
    """
    endings = ADDED.get(str(config.get("model_type")), ())
    if config.get("position_embedding_type", "absolute") != "absolute":
        endings = tuple(e for e in endings if e not in POSITIONS)
    if config.get("model_type") == "roformer":  # its positions are rotary; a table of sines lies beside
        endings = TYPES
    width = archive.entries[table].shape[1]
    for ending in endings:
        found = find(archive, (ending,))
        if found is not None and archive.entries[found].shape[1] == width:
            return found
    return None
