"""Remedies give tables with named columns where scikit-learn is asked for them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from gonio.remedies import Center, LengthAsFeature, Normalize, RemoveTopComponents, Standardize, Whiten

pandas = pytest.importorskip("pandas", reason="pandas is not installed; make test installs it")
TABLE = pandas.DataFrame(
    np.random.default_rng(0).normal(size=(40, 4)) + 1, columns=list("abcd"), index=[f"row {i}" for i in range(40)]
)


@pytest.mark.parametrize(
    ("remedy", "columns"),
    [
        (Center(), list("abcd")),
        (Standardize(), list("abcd")),
        (Normalize(), list("abcd")),
        (RemoveTopComponents(2), list("abcd")),
        (Whiten("zca"), list("abcd")),
        (Whiten(components=3), ["whiten0", "whiten1", "whiten2"]),
        (LengthAsFeature(), None),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, list) else None,
)
def test_a_table_goes_in_and_a_table_with_names_comes_out(remedy, columns):
    out = remedy.set_output(transform="pandas").fit_transform(TABLE)
    assert isinstance(out, pandas.DataFrame)
    assert list(out.index) == list(TABLE.index)
    assert list(out.columns) == list(remedy.get_feature_names_out())
    if columns is not None:
        assert list(out.columns) == columns
    plain = type(remedy)(**remedy.get_params()).fit_transform(TABLE.to_numpy())
    assert np.allclose(out.to_numpy(), plain)


def test_a_pipeline_keeps_the_names():
    made = make_pipeline(Center(), Whiten(components=2), Normalize()).set_output(transform="pandas")
    out = made.fit_transform(TABLE)
    assert list(out.columns) == ["whiten0", "whiten1"]
    assert np.allclose(np.linalg.norm(out.to_numpy(), axis=1), 1)
