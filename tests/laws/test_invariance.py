"""The invariance table as a law: what is declared to stay stays to rounding, what is declared to move visibly moves."""

from __future__ import annotations

import numpy as np
import pytest

from gonio import Head
from gonio.gauge.transforms import Linear, Rotation, RowScaling, Scaling, Translation
from gonio.papers.invariance_table import GROUPS, TABLE, braid


def changes(group: str, rng, n: int, d: int, count: int):
    for _ in range(count):
        yield {
            "T": lambda: Translation(rng.standard_normal(d)),
            "M": lambda: Linear(np.eye(d) + 0.6 * rng.standard_normal((d, d))),
            "S": lambda: Scaling(-2.5),
            "R": lambda: Rotation(np.linalg.qr(rng.standard_normal((d, d)))[0]),
            "P": lambda: RowScaling(np.exp(rng.standard_normal(n))),
        }[group]()


def distance(a, b) -> float:
    if isinstance(a, frozenset):
        return float(a != b)
    a, b = np.asarray(a, float), np.asarray(b, float)
    return float(np.abs(a - b).max() / max(1e-12, np.abs(a).max()))


@pytest.mark.theorem("NG26.AppD")
@pytest.mark.theorem("GONIO.1.7")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("quantity", TABLE, ids=lambda q: q.name)
def test_each_quantity_stays_or_moves_as_declared(quantity, group):
    rng = np.random.default_rng(0)
    n, d = 5, 2
    moved = 0.0
    patterns = quantity.name in ("sign pattern", "ranking pattern", "labels that can win")  # an LP a cell: slow
    for change in changes(group, rng, n, d, 3 if patterns else 8):
        W, F = rng.standard_normal((n, d)), rng.standard_normal((40, d))
        before = quantity.compute(W, F)
        after = quantity.compute(change.apply(Head(W, link="softmax")).W, change.embeddings(F))
        moved = max(moved, distance(before, after))
        if group in quantity.stays:
            assert moved < 1e-8, f"{quantity.name} is declared to stay under {group} and moved by {moved:.2g}"
    if group not in quantity.stays:
        assert moved > 0.01, f"{quantity.name} is declared to move under {group} and did not"


def test_the_table_is_the_whole_of_it():
    assert len(TABLE) == 19
    assert len({q.name for q in TABLE}) == 19
    invariant = {q.name for q in TABLE if {"T", "M"} <= q.stays}
    assert "centred-logit correlation" in invariant
    assert "cosine" not in invariant
    row = TABLE[1].to_dict()
    assert (row["quantity"], row["T"], row["M"], row["S"], row["R"], row["P"]) == (
        "cosine",
        False,
        False,
        True,
        True,
        True,
    )


@pytest.mark.theorem("GONIO.1.7a")
def test_cosines_of_rows_and_of_differences_are_no_properties_of_the_model():
    rng = np.random.default_rng(1)
    head = Head(rng.standard_normal((5, 3)), link="softmax")
    change = Linear(np.eye(3) + 0.5 * rng.standard_normal((3, 3)))
    F = rng.standard_normal((20, 3))
    moved = change.apply(head)
    assert np.allclose(head.probabilities(F), moved.probabilities(change.embeddings(F)))
    for rows in (lambda W: W, lambda W: braid(len(W)) @ W):
        cosines = []
        for h in (head, moved):
            V = rows(h.W)
            V = V / np.linalg.norm(V, axis=1, keepdims=True)
            cosines.append(V @ V.T)
        assert np.abs(cosines[0] - cosines[1]).max() > 0.05


@pytest.mark.theorem("GONIO.1.7b")
def test_cosines_of_differences_fix_the_head_up_to_translation_rotation_and_one_scale():
    """Triangle angles give the ratios of sides by the sine rule; distances give the points."""
    rng = np.random.default_rng(2)
    W = rng.standard_normal((6, 4))

    def angle(i, j, k):  # at i, between the differences to j and k: an entry of C(BW), with signs
        a, c = W[j] - W[i], W[k] - W[i]
        return np.arccos(np.clip(a @ c / np.linalg.norm(a) / np.linalg.norm(c), -1, 1))

    D = np.zeros((6, 6))
    D[0, 1] = D[1, 0] = 1.0  # the one scale
    for j in range(2, 6):
        D[0, j] = D[j, 0] = np.sin(angle(1, 0, j)) / np.sin(angle(j, 0, 1))
    for i in range(1, 6):
        for j in range(i + 1, 6):
            D[i, j] = D[j, i] = D[0, i] * np.sin(angle(0, i, j)) / np.sin(angle(j, 0, i))
    J = np.eye(6) - 1 / 6
    values, vectors = np.linalg.eigh(-J @ D**2 @ J / 2)
    points = vectors[:, -4:] * np.sqrt(values[-4:])
    true = np.linalg.norm(W[:, None] - W[None], axis=2)
    got = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert np.allclose(got * true[0, 1], true, atol=1e-9)


@pytest.mark.theorem("GONIO.1.7c")
def test_for_rows_of_equal_length_plain_cosines_fix_everything_but_rotation_and_scale():
    rng = np.random.default_rng(3)
    W = rng.standard_normal((7, 3))
    W = 5 * W / np.linalg.norm(W, axis=1, keepdims=True)
    C = W @ W.T / 25
    values, vectors = np.linalg.eigh(C)
    V = vectors[:, -3:] * np.sqrt(values[-3:])
    U, _, Vt = np.linalg.svd(V.T @ W)
    assert np.allclose(5 * V @ (U @ Vt), W)


@pytest.mark.theorem("GONIO.1.7h")
def test_two_labels_always_have_centred_logit_correlation_minus_one():
    rng = np.random.default_rng(4)
    by_name = {q.name: q.compute for q in TABLE}
    for _ in range(5):
        C = by_name["centred-logit correlation"](rng.standard_normal((2, 3)), rng.standard_normal((20, 3)))
        assert C[0, 1] == pytest.approx(-1)
