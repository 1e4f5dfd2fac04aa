"""Anything at all given to the public names: an answer or a GonioError, never a crash."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gonio
from gonio import GonioError, Head

anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.lists(st.integers() | st.text(max_size=3) | st.lists(st.floats(), max_size=3), max_size=4),
    st.dictionaries(st.text(max_size=4), st.floats() | st.lists(st.floats(), max_size=3), max_size=3),
    st.tuples(st.integers(), st.text(max_size=3)),
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.bool_, np.complex128, "U3", "M8[s]"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
)
calm = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@calm
@given(anything)
@pytest.mark.filterwarnings("ignore")
def test_load_answers_anything(x):
    try:
        head = gonio.load(x)
    except GonioError as e:
        assert "\n" not in str(e)
    else:
        assert np.isfinite(head.norms).all()


@calm
@given(anything, anything, anything, anything, anything)
@pytest.mark.filterwarnings("ignore")
def test_head_answers_anything(W, bias, labels, inputs, softcap):
    try:
        head = Head(W, bias, link="softmax", labels=labels, inputs=inputs, softcap=softcap)
    except GonioError:
        return
    assert head.logits(np.ones(head.shape[1])).shape == (head.shape[0],)


finite = st.floats(-1e6, 1e6, width=32)
tables = hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=finite)


@calm
@given(tables)
def test_a_saved_table_comes_back_as_it_was(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("npy") / "w.npy"
    np.save(path, table)
    head = gonio.load(path, link="sigmoid")
    assert np.array_equal(head.W, table)
    assert head.digest == Head(table, link="sigmoid").digest
    assert np.allclose(head.norms, np.linalg.norm(table.astype(float), axis=1), rtol=1e-12)
    twins = {tuple(g.tolist()) for g in head.twins}
    naive = {}
    for i, row in enumerate(table.tolist()):
        naive.setdefault(tuple(v + 0.0 for v in row), []).append(i)
    assert twins == {tuple(g) for g in naive.values() if len(g) > 1}


@calm
@given(anything, anything, anything, anything)
@pytest.mark.filterwarnings("ignore")
def test_check_answers_anything(corpus, queries, was, qrels):
    try:
        found = gonio.check(corpus, queries, was=was, qrels=qrels)
    except GonioError as e:
        assert "\n" not in str(e)
    else:
        assert found.to_json()
