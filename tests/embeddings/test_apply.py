"""A saved remedy is applied to a table block by block, to the rows that `transform` gives."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gonio import GonioError
from gonio.cli import main
from gonio.embeddings import apply_remedy, embedding_table, table_of
from gonio.remedies import Center, Whiten

X = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32) + 2


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_the_rows_written_are_those_of_transform(ending, tmp_path, monkeypatch):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(embedding_table, "BLOCK", 6 * 7)
    np.savez(tmp_path / "x.npz", vectors=X, ids=np.array([f"d{i}" for i in range(60)]))
    saved = Whiten(components=4).fit(X).save(tmp_path / "w")
    out = tmp_path / f"out{ending}"
    done = CliRunner().invoke(main, ["apply", str(saved), str(tmp_path / "x.npz"), str(out), "--json", "-"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["rows"] == 60
    written = table_of(out)
    assert written.whole() == pytest.approx(Whiten(components=4).fit(X).transform(X), abs=1e-5)
    assert written.has_ids == (ending == ".parquet")
    assert written.ids[3] == ("d3" if written.has_ids else "3")


def test_another_width_a_row_that_is_not_finite_and_another_ending_are_refused(tmp_path):
    fitted = Center().fit(X)
    with pytest.raises(GonioError, match="width 4 and the remedy was fitted on width 6"):
        apply_remedy(fitted, X[:, :4], tmp_path / "o.npy")
    broken = X.copy()
    broken[5, 1] = np.nan
    with pytest.raises(GonioError, match="row 5 of the array is not finite"):
        apply_remedy(fitted, broken, tmp_path / "o.npy")
    assert not (tmp_path / "o.npy").exists()
    with pytest.raises(GonioError, match=r"ends in \.npy or \.parquet"):
        apply_remedy(fitted, X, tmp_path / "o.txt")
