"""The panels of the paper's figure: heat maps of the item-item cosines, items by cluster, then by popularity."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gonio.core.atomic_write import whole
from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.papers.steck_figure1 import Figure1

PANELS = (
    "truth",
    "V_k",
    "D = I",
    "V_k (s w)^1/2",
    "V_k s w^1/2",
    "penalty on factors",
    "projected back",
    "raw columns of X",
)
LARGEST = 1_000  # items drawn: a panel has no more pixels


def draw(figure: Figure1, path: str | Path) -> Path:
    """Write the panels as one picture (.png, .svg or .pdf)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise GonioError(f"draw: {path} ends in {path.suffix or 'nothing'!r}; choose .png, .svg or .pdf.")
    cluster = figure.data.cluster
    step = max(1, -(-len(cluster) // LARGEST))
    some = np.arange(0, len(cluster), step)
    edges = np.flatnonzero(np.diff(cluster[some])) + 0.5
    page = Figure(figsize=(14.5, 7.6), layout="constrained")
    FigureCanvasAgg(page)
    axes = page.subplots(2, 4).ravel()
    image = None
    for axis, name in zip(axes, PANELS, strict=True):
        if name == "truth":
            values, title = (cluster[some][:, None] == cluster[some][None, :]).astype(float), "the clusters"
        else:
            U = unit(figure.vectors[name][some])
            values, r = U @ U.T, figure.row(name)
            title = f"{_nice(name)}\nsame {r.same:.2f}, different {r.different:.2f}, AUC {r.auc:.3f}"
        image = axis.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
        axis.set_title(title, fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
        for e in edges:
            axis.axhline(e, color="black", linewidth=0.4, alpha=0.5)
            axis.axvline(e, color="black", linewidth=0.4, alpha=0.5)
    assert image is not None
    page.colorbar(image, ax=axes.tolist(), shrink=0.7, label="cosine of two items")
    n, p = figure.data.X.shape
    page.suptitle(
        f"One training objective, many item-item cosines: {n:,} users, {p:,} items by cluster and popularity, "
        f"rank {figure.rank}, w = 1/(1 + lam/s²)"
    )
    with whole(path, "draw") as temporary:
        page.savefig(temporary, dpi=120)
    return path


def _nice(name: str) -> str:
    known = {
        "V_k": "$V_k$",
        "D = I": "$D = I$:  $V_k w^{1/2}$",
        "V_k (s w)^1/2": "$V_k (s w)^{1/2}$",
        "V_k s w^1/2": "$V_k s w^{1/2}$",
    }
    return known.get(name, name)
