"""Captured states in words."""

from __future__ import annotations

import numpy as np

from gonio.core.printed_bounds import at_most
from gonio.core.states import States
from gonio.files.read.states_file import sidecar
from gonio.report.text import printable


def told(s: States, path: str) -> str:
    """What `gonio states` prints."""
    n, d = s.shape
    lines = [
        f"{n:,} states of width {d}, from {len(np.unique(s.documents)):,} documents",
        f"  model      {printable(str(s.about.get('model', '')))}",
        f"  taken      {s.about.get('how', '')}",
    ]
    if "written_by" in s.about:
        lines.append(f"  text       written by {s.about['written_by']}")
    if s.difference is not None:
        lines.append(
            f"  checked    at {s.about['positions_checked']:,} positions the head gives the model's own probabilities, "
            f"at most {at_most(s.difference, 2)} off"
        )
    elif s.about.get("layer") != "final":
        lines.append(f"  layer      {s.about.get('layer')}: no head reads these, so nothing was checked")
    return "\n".join([*lines, f"  written    {path} and {sidecar(path).name}"])
