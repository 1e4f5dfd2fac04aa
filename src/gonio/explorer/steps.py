"""The steps of the page: each a head of the plane, or two, and what to look for. The first four are the paper."""

from __future__ import annotations

import math
from typing import Any

from gonio.explorer.figure_heads import FIGURE_1, FIGURE_3, FIGURE_4_A, FIGURE_4_B

INPUTS_W = [[0.4, 0.3], [2.0, -0.1], [-1.0, 0.2], [0.1, -1.3], [0.7, 1.8], [2.6, 1.7]]
INPUTS_B = [0.0, -0.3, -0.3, -0.3, -1.7, -3.2]
INPUT_SETS: dict[str, dict[str, Any] | None] = {
    "all": None,
    "x ≥ 0 (ReLU)": {"kind": "nonnegative"},
    "box (tanh)": {"kind": "box", "size": 1.0},
    "disc (RMSNorm)": {"kind": "disc", "size": math.sqrt(2)},
}
SHORT = [row if k != 2 else [0.0, 2.0] for k, row in enumerate(FIGURE_3)]


def steps() -> list[dict[str, Any]]:
    """Softmax, sigmoid, length, ranking, inputs."""
    return [
        _step(
            "softmax",
            "One vector added to every row: the cosine runs, no region and no probability moves.",
            [_scene("Figure 1", FIGURE_1, 0, 3)],
            (0, 1),
        ),
        _step(
            "sigmoid",
            "Each label on or off by itself: an added vector changes the label sets, an invertible map of rows and "
            "inputs does not, and it moves the cosine all the same.",
            [_scene("Figure 1, as a multi-label head", FIGURE_1, 0, 3)],
            (0, 1),
            link="sigmoid",
            how="map",
        ),
        _step(
            "length",
            "Shorten label 3: every cosine stays, and below length 3.54 it can never win. Equal cosines, another "
            "model.",
            [_scene("Figure 3", FIGURE_3, 1, 2)],
            (2, 0),
            stretch=2,
        ),
        _step(
            "ranking",
            "Every line is a tie of two labels. The two models of Figure 3 have equal cosines, those of Figure 4 equal "
            "label sets (with a constant column), and other rankings.",
            [
                _scene("Figure 3, all lengths 5", FIGURE_3, 1, 2),
                _scene("Figure 3, label 3 of length 2", SHORT, 1, 2),
                _scene("Figure 4, first model", FIGURE_4_A, 1, 3),
                _scene("Figure 4, second model", FIGURE_4_B, 1, 3),
            ],
            (2, 0),
            link="ranking",
        ),
        _step(
            "inputs",
            "Fewer inputs, fewer labels that can win. Choose which inputs reach the head; lengthen label 5 until it "
            "wins within the box too.",
            [
                {**_scene(name, INPUTS_W, 1, 2.2), "bias": INPUTS_B, "inputs": inputs}
                for name, inputs in INPUT_SETS.items()
            ],
            (4, 1),
            stretch=4,
        ),
    ]


def _scene(name: str, W: list[list[float]], first: int, reach: float) -> dict[str, Any]:
    return {"name": name, "W": W, "labels": [str(i + first) for i in range(len(W))], "reach": reach}


def _step(
    key: str,
    story: str,
    scenes: list[dict[str, Any]],
    pair: tuple[int, int],
    *,
    link: str = "softmax",
    how: str = "add",
    stretch: int | None = None,
) -> dict[str, Any]:
    return {
        "key": key, "story": story, "scenes": scenes, "pair": list(pair), "link": link, "how": how, "stretch": stretch,
    }  # fmt: skip
