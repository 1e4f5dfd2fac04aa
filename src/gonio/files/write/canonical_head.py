"""A canonicalised head on the disk: the table that a vector store takes, and the map that makes its inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.whole_folder import whole_folder

if TYPE_CHECKING:
    from gonio.core.head import Head


def write_canonical_head(result: Any, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write head.npz (a model file of gonio's: W, b, labels, link) and inputs.npz (map, mean) into a new folder."""
    head: Head = result.head
    with whole_folder(out, "canonicalise", overwrite=overwrite) as folder:
        parts: dict[str, Any] = {"W": head.W, "link": np.array(head.link)}
        if head.bias is not None:
            parts["b"] = head.bias
        if head.named:
            parts["labels"] = np.array(head.labels)
        np.savez(folder / "head.npz", **parts)
        np.savez(folder / "inputs.npz", map=result.map, mean=result.mean)
        about = result.to_dict() | {"inputs": "f' = map @ (f - mean) is the input of head.npz that stands for f"}
        (folder / "canonical.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return Path(out)
