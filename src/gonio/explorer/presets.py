"""The examples of the papers' figures, as heads of the plane."""

from __future__ import annotations

from typing import Any

from gonio.explorer.figure_heads import FIGURE_1, FIGURE_2_LEFT, FIGURE_2_RIGHT, FIGURE_3, FIGURE_4_A, FIGURE_4_B, moved


def presets() -> list[dict[str, Any]]:
    """Figures 1 to 4, in order, each with what to look for."""
    short = [FIGURE_3[k] if k != 2 else [0.0, 2.0] for k in range(7)]
    return [
        _preset(
            "Figure 1 b",
            FIGURE_1,
            0,
            (0, 1),
            3,
            "Labels 0 and 1 have cosine 0.8. Move the slider: it runs through every value from -1 to 1 while "
            "no region and "
            "under a softmax no probability moves. There one cosine says nothing.",
        ),
        _preset(
            "Figure 1 c",
            moved(FIGURE_1, (-0.75, -0.75)),
            0,
            (0, 1),
            3,
            "The same model with (-0.75, -0.75) added to every row: the cosine of 0 and 1 is -1, every "
            "softmax probability is as before.",
        ),
        _preset(
            "Figure 1 d",
            moved(FIGURE_1, (-1.25, -0.25)),
            0,
            (0, 1),
            3,
            "And with (-1.25, -0.25) added the cosine is +1.",
        ),
        _preset(
            "Figure 2, left",
            FIGURE_2_LEFT,
            0,
            (2, 4),
            3,
            "Centred rows. Labels 2 and 4 have cosine 0.8 and can never be tied for the top: label 3 wins "
            "between them. Labels "
            "0 and 1, with cosine 0.32, can.",
        ),
        _preset(
            "Figure 2, right",
            FIGURE_2_RIGHT,
            0,
            (1, 3),
            3,
            "Unit rows that sum to zero. Labels 1 and 3 have cosine 0.805 and cannot tie; labels 0 and 1, "
            "with cosine -0.805, can.",
        ),
        _preset(
            "Figure 3, first model",
            FIGURE_3,
            1,
            (2, 0),
            2,
            "All lengths are 5. Make label 3 shorter: no cosine changes, and below length 3.54 it can never win.",
            stretch=2,
        ),
        _preset(
            "Figure 3, second model",
            short,
            1,
            (2, 0),
            2,
            "The same cosines as in the first model, and label 3 (length 2) wins nowhere.",
            stretch=2,
        ),
        _preset(
            "Figure 4, first model",
            FIGURE_4_A,
            1,
            (0, 1),
            3,
            "Two models with the same label sets, once a constant column is added: this one can rank 5 2 "
            "3 1 4 and 4 1 3 2 5,",
        ),
        _preset(
            "Figure 4, second model",
            FIGURE_4_B,
            1,
            (0, 1),
            3,
            "and this one can rank 1 4 3 5 2 and 2 5 3 4 1, which the first cannot.",
        ),
    ]


def _preset(name, W, first, pair, reach, story, stretch=None) -> dict[str, Any]:
    labels = [str(i + first) for i in range(len(W))]
    return {
        "name": name,
        "W": W,
        "labels": labels,
        "pair": list(pair),
        "reach": reach,
        "story": story,
        "stretch": stretch,
    }
