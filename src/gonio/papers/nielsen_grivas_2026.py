"""Nielsen & Grivas 2026: what cosine similarity between label representations can and cannot tell us."""

from __future__ import annotations

import numpy as np

from gonio.ask.wins import can_win
from gonio.core.head import Head
from gonio.explorer.figure_heads import FIGURE_1, FIGURE_2_LEFT, FIGURE_2_RIGHT, moved
from gonio.gauge import dial
from gonio.gauge.reach import cosine, plain_translation
from gonio.listing.reconstruct import (
    cosines,
    cosines_of_differences,
    head_from_cosines_of_differences,
    label_sets_from_cosines,
    rankings_from_cosines,
)
from gonio.papers import reconstruction_grid
from gonio.papers.comparison import Picture, Reproduction, Row, alone, holds, number, same
from gonio.papers.counterexamples import affine_points, scaled_row
from gonio.papers.nielsen_grivas_figures import figure_1, figure_2, figure_3, figure_4, ties

TIE = ("gonio.ask.ties.can_tie", "tests/papers/test_papers.py")
DIAL = ("gonio.gauge.dialling.dial", "tests/gauge/test_dial.py")


def reproduce() -> Reproduction:
    """Figures 1 to 4, the lemmas and theorems on their examples, the grid, and where text and code differ."""
    return Reproduction(
        "nielsen-grivas-2026",
        "Nielsen & Grivas 2026, What cosine similarity between label representations can and cannot tell us",
        (*_figure_1(), *_figure_2(), *_figure_3(), *_figure_4(), *_theorems(), *_slips()),
        (
            Picture(
                "figure-1",
                "One model in three coordinate systems: every probability is the same, the cosine of "
                "labels 0 and 1 is 0.8, -1 and +1.",
                figure_1,
                (11, 7),
            ),
            Picture(
                "figure-2",
                "Centred rows and unit rows: labels joined by a line can share the top; the most similar "
                "ones need not.",
                figure_2,
                (9, 4.5),
            ),
            Picture(
                "figure-3",
                "Equal cosines, different regions: label 3 loses its region when its vector is shortened.",
                figure_3,
                (9, 4.5),
            ),
            Picture(
                "figure-4",
                "Two point configurations with the same label sets and different rankings.",
                figure_4,
                (9, 9),
            ),
        ),
    )


def _figure_1() -> list[Row]:
    F = np.random.default_rng(0).standard_normal((1000, 2))
    models = {"b": FIGURE_1, "c": moved(FIGURE_1, (-0.75, -0.75)), "d": moved(FIGURE_1, (-1.25, -0.25))}
    heads = {k: Head(W, link="softmax") for k, W in models.items()}
    out = []
    for (k, h), theirs in zip(heads.items(), (0.8, -1.0, 1.0), strict=True):
        out.append(
            number(
                f"Fig. 1 {k}: cosine of labels 0 and 1",
                theirs,
                cosine(h[0], h[1]),
                within=1e-12,
                function="gonio.gauge.reach.cosine",
                test=DIAL[1],
            )
        )
        counts = np.bincount(np.argmax(h.logits(F), axis=1), minlength=5).tolist()
        out.append(
            alone(
                f"Fig. 1 {k}: how often each label wins over 1,000 inputs",
                counts,
                why="the figure colours the inputs and prints no counts; its seed and law were used",
                function="gonio.core.head.Head.logits",
                test="tests/papers/test_papers.py",
            )
        )
    P = [h.probabilities(F) for h in heads.values()]
    off = max(float(np.abs(P[0] - p).max()) for p in P[1:])
    out.append(
        holds(
            "Fig. 1: every probability is the same in the three models",
            off < 1e-14,
            f"{off:.1e}",
            function=DIAL[0],
            test=DIAL[1],
        )
    )
    edges = ties(FIGURE_1)
    out.append(
        alone(
            "Fig. 1: pairs that can share the top",
            edges,
            why="the figure shows regions that touch and prints no list",
            function=TIE[0],
            test=TIE[1],
        )
    )
    W = np.array(FIGURE_1) - np.mean(FIGURE_1, axis=0)
    out.append(
        alone(
            "Fig. 1: cosine of centred rows 0 and 1, in all three",
            cosine(W[0], W[1]),
            why="the paper does not centre",
            function="gonio.similarity.rows.CentredCosine",
            test="tests/papers/test_papers.py",
        )
    )
    return out


def _figure_2() -> list[Row]:
    L, R = np.array(FIGURE_2_LEFT), np.array(FIGURE_2_RIGHT)
    out: list[Row] = [
        number(
            f"Fig. 2 left (C.2): cosine of {a} and {b}",
            v,
            cosine(L[a], L[b]),
            within=5e-7,
            function="gonio.gauge.reach.cosine",
            test="tests/papers/test_papers.py",
        )
        for a, b, v in ((0, 1, 0.324324), (1, 2, -0.588172), (2, 4, 0.8))
    ]
    out.append(
        alone(
            "Fig. 2 left (C.2): possible top ties",
            ties(L),
            why="the figure shows which regions touch and prints no list",
            function=TIE[0],
            test=TIE[1],
        )
    )
    out += [
        number(
            f"Fig. 2 right (C.3): cosine of {a} and {b}",
            v,
            cosine(R[a], R[b]),
            within=1e-12,
            function="gonio.gauge.reach.cosine",
            test="tests/papers/test_papers.py",
        )
        for a, b, v in ((0, 1, -0.805), (1, 3, 0.805))
    ]
    out.append(
        alone(
            "Fig. 2 right (C.3): possible top ties",
            ties(R),
            why="the figure shows which regions touch and prints no list",
            function=TIE[0],
            test=TIE[1],
        )
    )
    return out


def _figure_3() -> list[Row]:
    c = scaled_row()
    where = ("gonio.papers.counterexamples.scaled_row", "tests/listing/test_reconstruct.py")
    never = can_win(c.second).never.tolist()
    counted = "the paper shows that the two differ and prints no counts; listed exactly here"
    return [
        holds(
            "Theorem 5.5, Fig. 3: equal cosines",
            c.largest_cosine_difference is not None and c.largest_cosine_difference < 1e-15,
            f"{c.largest_cosine_difference:.0e}",
            function=where[0],
            test=where[1],
        ),
        alone("Fig. 3: label sets of each model", c.label_sets, why=counted, function=where[0], test=where[1]),
        alone("Fig. 3: rankings of the two models", list(c.counts), why=counted, function=where[0], test=where[1]),
        alone(
            "Fig. 3: rankings in common",
            c.counts[0] - len(c.first_only),
            why=counted,
            function=where[0],
            test=where[1],
        ),
        holds(
            "Fig. 3: label 3 never wins in the second model, and no other label is so",
            never == [2],
            f"rows {never}, counted from 0",
            how="every label decided with a proof",
            function="gonio.ask.wins.can_win",
            test=where[1],
        ),
    ]


def _figure_4() -> list[Row]:
    c = affine_points()
    where = {"function": "gonio.papers.counterexamples.affine_points", "test": "tests/listing/test_reconstruct.py"}
    told = lambda rows: sorted("".join(str(i + 1) for i in r) for r in rows.tolist())  # noqa: E731
    return [
        same("Theorem H.1, Fig. 4: label sets of both", 20, c.label_sets, **where),
        same("Fig. 4: rankings of each", [14, 14], list(c.counts), **where),
        same("Fig. 4: rankings of the first only", ["41325", "52314"], told(c.first_only), **where),
        same("Fig. 4: rankings of the second only", ["14352", "25341"], told(c.second_only), **where),
    ]


def _theorems() -> list[Row]:
    a, b = np.array(FIGURE_1[0]), np.array(FIGURE_1[1])
    low, high = plain_translation(a, b, -1.0), plain_translation(a, b, 1.0)
    head = Head(FIGURE_1, link="softmax")
    dialled = dial(head, 0, 1, cosine=-1)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(6, 3))
    signs = {tuple(r) for r in label_sets_from_cosines(cosines(W)).to_array().tolist()}
    from gonio.listing.label_set_list import label_sets
    from gonio.listing.ranking_list import rankings

    own = {tuple(r) for r in label_sets(Head(W, link="sigmoid")).to_array().tolist()}
    ranked = {tuple(int(x) for x in r) for r in rankings_from_cosines(cosines_of_differences(W))}
    mine = {tuple(r) for r in rankings(Head(W, link="softmax")).to_array().tolist()}
    back = head_from_cosines_of_differences(cosines_of_differences(W)).W
    X, Y = W - W.mean(0), back - back.mean(0)
    off = float(np.abs(X @ X.T / (X * X).sum() - Y @ Y.T / (Y * Y).sum()).max())
    passed, runs = reconstruction_grid.verify_grid()
    lemma = {"function": "gonio.gauge.reach.plain_translation", "test": "tests/gauge/test_reach.py"}
    made = "tests/listing/test_reconstruct.py"
    return [
        same(
            "Lemma 3.2: the translation that makes labels 0 and 1 of Fig. 1 opposite",
            [-0.75, -0.75],
            low.tolist(),
            **lemma,
        ),
        same("Lemma 3.3: the translation that makes them parallel", [-1.25, -0.25], high.tolist(), **lemma),
        holds(
            "Theorem 3.4: the same probabilities with cosine -1",
            dialled.max_probability_difference < 1e-14,
            f"{dialled.max_probability_difference:.1e}",
            function=DIAL[0],
            test=DIAL[1],
        ),
        holds(
            "Lemma 5.3: C(W) gives back the label sets",
            signs == own,
            f"{len(own)} label sets",
            function="gonio.listing.reconstruct.label_sets_from_cosines",
            test=made,
        ),
        holds(
            "Theorem 5.6: C(BW) gives back the rankings",
            ranked == mine,
            f"{len(mine)} rankings",
            function="gonio.listing.reconstruct.rankings_from_cosines",
            test=made,
        ),
        holds(
            "Beyond the paper: C(BW) gives back the head up to translation, rotation and scale",
            off < 1e-9,
            f"{off:.0e}",
            function="gonio.listing.reconstruct.head_from_cosines_of_differences",
            test=made,
        ),
        same(
            "The verification grid: runs that pass",
            [200, 200],
            [passed, runs],
            function="gonio.papers.reconstruction_grid.verify_grid",
            test=made,
        ),
        *_other_measures(),
    ]


def _other_measures() -> list[Row]:
    """Appendix D: other measures of two rows, before and after the translation of Fig. 1 c."""
    A, B = np.array(FIGURE_1), np.array(moved(FIGURE_1, (-0.75, -0.75)))
    dot = float(A[0] @ A[1]), float(B[0] @ B[1])
    euclid = float(np.linalg.norm(A[0] - A[1])), float(np.linalg.norm(B[0] - B[1]))
    where = {"function": "gonio.papers.invariance_table.TABLE", "test": "tests/laws"}
    return [
        holds(
            "Appendix D: the dot product moves under translation",
            abs(dot[0] - dot[1]) > 0.1,
            [round(x, 3) for x in dot],
            **where,
        ),
        holds(
            "Appendix D: the Euclidean distance does not",
            abs(euclid[0] - euclid[1]) < 1e-12,
            round(euclid[0], 4),
            how="for a translated head; the paper dismisses it by scaling only, and a common invertible map moves it",
            **where,
        ),
    ]


def _slips() -> list[Row]:
    """Where the paper's text and code differ."""
    R = np.array(FIGURE_2_RIGHT)
    where = {"function": "gonio.explorer.figure_heads", "test": "tests/papers/test_papers.py"}
    return [
        same("Fig. 2 right: the text says five labels", 5, len(R), note="the code draws six", **where),
        holds(
            "'All cosines of all differences are needed'",
            False,
            "n(n-1) of them are enough",
            how="angles at one label and one angle a further label fix the head",
            function="gonio.listing.reconstruct.head_from_cosines_of_differences",
            test="tests/listing/test_reconstruct.py",
        ),
    ]
