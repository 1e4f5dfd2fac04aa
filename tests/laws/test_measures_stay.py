"""What a measure says leaves it alone does: over every transform of the gauge of the very head, inputs and soft-cap too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, GonioError, Head, Nonnegative, canonical
from gonio.diagnostics import agreement
from gonio.findings import alike
from gonio.gauge import gauge_of
from gonio.gauge.transforms import (
    BiasShift,
    Diagonal,
    InputShift,
    LayerNormShift,
    Linear,
    Rotation,
    RowScaling,
    Scaling,
    Translation,
)
from gonio.similarity import MEASURES, for_link, measure

N, D = 12, 4
LETTERS = {
    Translation: "T", BiasShift: "T", Linear: "M", Diagonal: "M", Scaling: "S", Rotation: "R", RowScaling: "P",
    InputShift: "U", LayerNormShift: "L",
}  # fmt: skip
INPUTS = {
    "all": lambda r: AllInputs(),
    "nonnegative": lambda r: Nonnegative(),
    "rmsnorm": lambda r: AfterRMSNorm(r.uniform(0.5, 2, D)),
    "dead rmsnorm": lambda r: AfterRMSNorm(np.r_[0.0, r.uniform(0.5, 2, D - 1)]),
    "layernorm": lambda r: AfterLayerNorm(r.uniform(0.5, 2, D)),
    "shifted layernorm": lambda r: AfterLayerNorm(r.uniform(0.5, 2, D), r.standard_normal(D)),
}
HEADS = [
    (link, kind, biased, cap)
    for link, kind, biased, cap in itertools.product(("softmax", "sigmoid", "dot"), INPUTS, (False, True), (None, 3.0))
]
OTHER = {"judged", "soft cosine"}  # these are made from judgements or features, not from a head alone


def made(link, kind, biased, cap):
    r = np.random.default_rng([len(link), len(kind), biased, cap is None])
    head = Head(
        r.standard_normal((N, D)),
        r.standard_normal(N) if biased else None,
        link=link,
        inputs=INPUTS[kind](r),
        softcap=cap,
    )
    return head, head.inputs.sample(60, D, r), r


def changes(head, r):
    """Members of the head's own gauge, one of each kind, and the special maps that a linear one includes."""
    n, d = head.shape
    for kind in gauge_of(head).kinds:
        yield {
            Translation: lambda: Translation(r.standard_normal(d)),
            Linear: lambda: Linear(np.eye(d) + 0.4 * r.standard_normal((d, d))),
            Rotation: lambda: Rotation(np.linalg.qr(r.standard_normal((d, d)))[0]),
            InputShift: lambda: InputShift(r.standard_normal(d)),
            BiasShift: lambda: BiasShift(1.5),
            RowScaling: lambda: RowScaling(np.exp(r.standard_normal(n))),
            LayerNormShift: lambda: LayerNormShift(r.standard_normal(n)),
        }[kind]()
    if Linear in gauge_of(head).kinds:
        yield Diagonal(np.exp(0.5 * r.standard_normal(d)))
        yield Scaling(-2.5)


def all_pairs(m):
    i, j = np.triu_indices(N, 1)
    return m.pairs(i, j)


@pytest.mark.parametrize(("link", "kind", "biased", "cap"), HEADS)
def test_every_measure_stays_where_it_says_so(link, kind, biased, cap):
    head, F, r = made(link, kind, biased, cap)
    looked = 0
    for name, cls in MEASURES.items():
        if name in OTHER:
            continue
        try:
            before = measure(name)(head, F)
            values = all_pairs(before)
        except GonioError:
            continue  # a measure that this link does not have
        size = max(1e-9, float(np.nanmax(np.abs(values))))
        for change in changes(head, r):
            if LETTERS[type(change)] not in before.invariant:
                continue
            after = all_pairs(measure(name)(change.apply(head), change.embeddings(F)))
            looked += 1
            assert np.allclose(values, after, atol=1e-7 * size, equal_nan=True), (name, change.name)
        assert cls.invariant >= before.invariant
    assert looked > 10


@pytest.mark.parametrize(("link", "kind", "biased", "cap"), HEADS)
def test_what_is_recommended_stays_under_the_whole_gauge(link, kind, biased, cap):
    head, F, r = made(link, kind, biased, cap)
    for embeddings in (F, None):
        name = for_link(link, embeddings=embeddings is not None)
        before = measure(name)(head, embeddings)
        for change in changes(head, r):
            moved = change.apply(head)
            if embeddings is None and type(moved.inputs) is not type(head.inputs):
                continue  # a general map of a norm's outputs has no name: there the rows alone cannot tell
            with_ = None if embeddings is None else change.embeddings(F)
            assert np.allclose(all_pairs(before), all_pairs(measure(name)(moved, with_)), atol=1e-7), change.name
        said = alike(head, 0, 1, embeddings=embeddings)
        assert said.instead[0] == name


@pytest.mark.parametrize(("link", "kind", "biased", "cap"), HEADS)
def test_the_canonical_form_stays_under_the_whole_gauge(link, kind, biased, cap):
    head, F, r = made(link, kind, biased, cap)
    for embeddings in (F, None):
        before = canonical(head, embeddings).head.W
        for change in changes(head, r):
            moved = change.apply(head)
            if embeddings is None and type(moved.inputs) is not type(head.inputs):
                continue
            with_ = None if embeddings is None else change.embeddings(F)
            after = canonical(moved, with_).head.W
            assert before.shape == after.shape
            assert np.abs(before - after).max() < 1e-6, (change.name, embeddings is None)


@pytest.mark.parametrize("cap", [None, 3.0])
@pytest.mark.parametrize("kind", INPUTS)
def test_agreement_with_an_equivalent_form_of_itself_is_one_where_it_says_invariant(kind, cap):
    head, F, _ = made("softmax", kind, False, cap)
    found = agreement(head, head, embeddings=(F, F), k=3)
    for row in found.rows:
        if row.invariant:
            assert row.itself[0] > 1 - 1e-8, row.kind
    assert found["logit"].invariant
