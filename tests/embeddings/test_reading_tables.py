"""Tables of embeddings are read from whatever holds them, a block at a time, and bad ones are named in one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gonio import GonioError
from gonio.embeddings import embedding_table, table_of
from gonio.embeddings.embedding_table import common_rows, named_rows

X = np.random.default_rng(0).standard_normal((37, 6)).astype(np.float32)
IDS = [f"d{i}" for i in range(37)]


def write_parquet(path, values=X, ids=IDS, kind=None, **more):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    kind = kind or pa.list_(pa.float32())
    table = {"embedding": pa.array(list(values), type=kind), **more}
    if ids is not None:
        table["id"] = pa.array(ids)
    pq.write_table(pa.table(table), path, row_group_size=10)
    return path


def saved_npy(p):
    np.save(p / "x.npy", X)
    return p / "x.npy"


def saved_half(p):
    np.save(p / "x.npy", X.astype(np.float16))
    return p / "x.npy"


def saved_npz(p):
    np.savez(p / "x.npz", vectors=X, ids=np.array(IDS))
    return p / "x.npz"


def saved_parquet(p):
    return write_parquet(p / "x.parquet")


def saved_fixed(p):
    pa = pytest.importorskip("pyarrow")
    return write_parquet(p / "x.parquet", kind=pa.list_(pa.float32(), 6))


def saved_arrow(p):
    pa = pytest.importorskip("pyarrow")
    with pa.OSFile(str(p / "x.arrow"), "wb") as f:
        table = pa.table({"id": IDS, "v": list(X)})
        with pa.ipc.new_file(f, table.schema) as w:
            w.write_table(table, max_chunksize=5)
    return p / "x.arrow"


def saved_stream(p):
    pa = pytest.importorskip("pyarrow")
    with pa.OSFile(str(p / "x.arrow"), "wb") as f:
        table = pa.table({"id": IDS, "v": list(X)})
        with pa.ipc.new_stream(f, table.schema) as w:
            w.write_table(table)
    return p / "x.arrow"


def saved_folder(p):
    (p / "all").mkdir()
    write_parquet(p / "all" / "a.parquet", X[:20], IDS[:20])
    write_parquet(p / "all" / "b.parquet", X[20:], IDS[20:])
    return p / "all"


def saved_glob(p):
    return str(saved_folder(p) / "*.parquet")


def saved_csv(p):
    lines = ["id,title," + ",".join(f"x{j}" for j in range(6))]
    lines += [f'{i},"a, b",' + ",".join(str(v) for v in x) for i, x in zip(IDS, X, strict=True)]
    (p / "x.csv").write_text("\n".join(lines))
    return p / "x.csv"


def saved_lists(p):
    lines = ["id,vector"] + [f'{i},"{json.dumps(x.tolist())}"' for i, x in zip(IDS, X, strict=True)]
    (p / "x.csv").write_text("\n".join(lines))
    return p / "x.csv"


def saved_jsonl(p):
    lines = [json.dumps({"id": i, "text": "t", "embedding": x.tolist()}) for i, x in zip(IDS, X, strict=True)]
    (p / "x.jsonl").write_text("\n".join(lines))
    return p / "x.jsonl"


def saved_words(p):
    lines = ["37 6"] + [f"{i} " + " ".join(repr(float(v)) for v in x) for i, x in zip(IDS, X, strict=True)]
    (p / "x.vec").write_text("\n".join(lines) + "\n")
    return p / "x.vec"


def saved_tensors(p):
    save = pytest.importorskip("safetensors.numpy").save_file
    save({"emb": X}, p / "x.safetensors")
    return p / "x.safetensors"


def saved_faiss(p):
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatIP(6)
    index.add(X)
    faiss.write_index(index, str(p / "x.faiss"))
    return p / "x.faiss"


def a_list(p):
    return X.tolist()


def a_tensor(p):
    return pytest.importorskip("torch").tensor(X)


def a_frame(p):
    return pytest.importorskip("pandas").DataFrame({"id": IDS, "embedding": list(X)})


def a_frame_of_columns(p):
    return pytest.importorskip("pandas").DataFrame(X, index=IDS)


def a_polars_frame(p):
    return pytest.importorskip("polars").DataFrame({"id": IDS, "embedding": X.tolist()})


SAVED = [saved_npy, saved_half, saved_npz, saved_parquet, saved_fixed, saved_arrow, saved_stream, saved_folder, saved_glob, saved_csv,
         saved_lists, saved_jsonl, saved_words, saved_tensors, saved_faiss, a_list, a_tensor, a_frame, a_frame_of_columns,
         a_polars_frame]  # fmt: skip


@pytest.mark.parametrize("make", SAVED, ids=lambda f: f.__name__)
def test_every_kind_of_table_gives_its_rows_block_by_block(make, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding_table, "BLOCK", 6 * 8)
    table = table_of(make(tmp_path))
    assert table.shape == (37, 6)
    near = 2e-3 if make is saved_half else 1e-6
    found = np.concatenate([b for _, b in table.blocks()])
    assert found == pytest.approx(X, abs=near)
    assert max(len(b) for _, b in table.blocks()) <= 8
    assert table.take(np.array([30, 2, 2, 17])) == pytest.approx(X[[30, 2, 2, 17]], abs=near)
    if table.has_ids:
        assert table.ids.tolist() == IDS
        assert named_rows(table, ["d3", "d0"], "qrels").tolist() == [3, 0]
    else:
        assert table.ids[3] == "3"


def test_int8_and_float16_lists_are_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    whole = np.round(X * 20).astype(np.int8)
    read = table_of(write_parquet(tmp_path / "i.parquet", whole, kind=pa.list_(pa.int8()))).whole()
    assert (read == whole).all()
    half = X.astype(np.float16)
    read = table_of(write_parquet(tmp_path / "h.parquet", half, kind=pa.list_(pa.float16()))).whole()
    assert (read == half).all()


def read(source, **options):
    return list(table_of(source, **options).blocks())


def refused(match, source, **options):
    with pytest.raises(GonioError, match=match) as e:
        read(source, **options)
    assert "\n" not in str(e.value)


def test_rows_of_unequal_length_are_named(tmp_path):
    pytest.importorskip("pyarrow")
    rows = [x.tolist() for x in X]
    rows[25] = rows[25][:4]
    refused(r"row 25 of .*has 4 numbers and the first row 6", write_parquet(tmp_path / "x.parquet", rows))
    (tmp_path / "x.jsonl").write_text('{"v": [1, 2]}\n{"v": [1]}')
    refused("row 1 of x.jsonl has 1 numbers", tmp_path / "x.jsonl")
    refused("unequal length", [[1.0, 2.0], [1.0]])


def test_a_parquet_cut_short_is_one_sentence(tmp_path):
    path = write_parquet(tmp_path / "x.parquet")
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    refused("cut short, so write it anew", path)
    damaged = bytearray(raw)
    damaged[10:400] = bytes(390)
    path.write_bytes(damaged)
    refused("x.parquet", path)


def test_text_columns_missing_columns_and_nothing_at_all_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = write_parquet(tmp_path / "x.parquet", title=pa.array(["t"] * 37), other=pa.array(list(X)))
    refused("'title' of x.parquet is text", path, column="title")
    refused("no column 'nothing'", path, column="nothing")
    refused("no column 'nothing'", path, id="nothing")
    assert table_of(path, column="other").shape == (37, 6)
    (tmp_path / "t.csv").write_text("id,title\n1,word\n")
    refused("no column of numbers", tmp_path / "t.csv")
    (tmp_path / "e.csv").write_text("")
    refused("is empty", tmp_path / "e.csv")
    refused("there is no file", tmp_path / "absent.npy")
    refused("no file matches", str(tmp_path / "*.pq"))
    (tmp_path / "none").mkdir()
    refused("holds no parquet file", tmp_path / "none")
    refused("two axes", np.zeros(4))
    refused("is empty", np.zeros((0, 4)))
    (tmp_path / "w.csv").write_text("a,b\n1,2\n1,word\n")
    refused("holds 'word' among its numbers", tmp_path / "w.csv")
    (tmp_path / "w.jsonl").write_text('{"v": [1, 2]}\n{"v": [1, null]}')
    refused("row 1 of w.jsonl holds 'None'", tmp_path / "w.jsonl")
    (tmp_path / "b.jsonl").write_text('{"v": [1, 2]}\n{"v": [1')
    refused("line 2 of b.jsonl is not JSON", tmp_path / "b.jsonl")


def test_ids_that_repeat_or_do_not_match_are_named():
    table = table_of(np.eye(4), ids=["a", "b", "a", "a"])
    with pytest.raises(GonioError, match=r"2 of the 4 rows .* \(id 'a' has 3\)"):
        table.places  # noqa: B018
    other = table_of(np.eye(4), ids=["p", "q", "r", "s"])
    with pytest.raises(GonioError, match="no id in common"):
        common_rows(other, table_of(np.eye(4), ids=["w", "x", "y", "z"]))
    with pytest.raises(GonioError, match="4 rows and the array 3"):
        common_rows(other, table_of(np.eye(3)))
    with pytest.raises(GonioError, match="qrels names 1 of 2 ids"):
        named_rows(other, ["p", "no"], "qrels")
    with pytest.raises(GonioError, match="4 rows and 2 ids"):
        table_of(np.eye(4), ids=["a", "b"]).ids  # noqa: B018
    a, b = common_rows(other, table_of(np.eye(3), ids=["s", "p", "new"]))
    assert sorted(zip(a.tolist(), b.tolist(), strict=True)) == [(0, 1), (3, 0)]
