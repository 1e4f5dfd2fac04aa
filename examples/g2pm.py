"""The head of g2pM, a published converter from Chinese characters to pinyin, read from its wheel without running it.

Its weights are a pickle, and a pickle can run code when it is opened. This one is opened by an unpickler that can
rebuild numpy arrays and nothing else.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import gonio

ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("collections", "OrderedDict"),
    ("_codecs", "encode"),
}


class ArraysOnly(pickle.Unpickler):
    """An unpickler that knows how to rebuild arrays and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of an array; refused")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def unpickle_arrays(raw: bytes) -> Any:
    """The arrays, numbers and texts of a pickle; anything that could run code is refused."""
    return ArraysOnly(io.BytesIO(raw)).load()


def parts(wheel: Path) -> dict[str, Any]:
    """The network's weights, and its readings in the order of the head's rows."""
    with zipfile.ZipFile(wheel) as z:
        weights = unpickle_arrays(z.read("g2pM/np_ckpt.pkl"))
        order = unpickle_arrays(z.read("g2pM/class2idx.pkl"))
    readings = [""] * len(order)
    for reading, i in order.items():
        readings[i] = reading
    return {"weights": weights, "readings": readings}


def head(wheel: Path) -> gonio.Head:
    """876 readings x 32, after a ReLU."""
    p = parts(wheel)
    return gonio.Head(
        np.asarray(p["weights"]["logit_layer.2.weight"]),
        p["weights"]["logit_layer.2.bias"],
        link="softmax",
        labels=p["readings"],
        inputs=gonio.Nonnegative(),
    )


def save(wheel: Path, to: Path) -> Path:
    """The head as a .npz file that any tool can read."""
    h = head(wheel)
    np.savez(to, W=h.W, b=h.bias, labels=np.array(h.labels), link=np.array(h.link), inputs=np.array("nonnegative"))
    return to
