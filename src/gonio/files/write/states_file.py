"""States on the disk: beside the .npy file that holds them, a JSON file that says where each came from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from gonio.core.atomic_write import whole, whole_text
from gonio.core.states import States
from gonio.files.read.states_file import FORMAT, rows_of_file, sidecar


def save_states(states: States, path: str | Path) -> Path:
    """Write the states (.npy) and what is known of them (.states.json)."""
    path = Path(path)
    with whole(path, "states") as temporary, temporary.open("wb") as f:
        np.save(f, states.F, allow_pickle=False)
    save_sidecar(states, path)
    return path


def save_sidecar(states: States, path: str | Path) -> None:
    """Write what is known of the states in a .npy file; a fingerprint binds the two."""
    about = {
        "format": FORMAT,
        "head": states.head,
        "shape": list(states.shape),
        "rows": rows_of_file(states.F),
        **dict(states.about),
        "documents": states.documents.tolist(),
        "positions": states.positions.tolist(),
        "tokens": states.tokens.tolist(),
    }
    whole_text(sidecar(path), json.dumps(about, ensure_ascii=False) + "\n", "states", lone="backslashreplace")
