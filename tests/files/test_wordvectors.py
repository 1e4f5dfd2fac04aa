"""Word vectors in text, in binary and as gensim objects: real files, made ones, and broken ones."""

from __future__ import annotations

import gc
import gzip
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from gonio.core import inputs
from gonio.core.errors import GonioError, LoadError
from gonio.core.head import Head, Source
from gonio.files.read import wordvectors
from gonio.models.loading import load
from tests import real
from tests.mutate import survives

DATA = "gensim/test/test_data"
WORDS = ["dog", "cat", "goldfish", "кот"]
ROWS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def as_text(words=WORDS, rows=ROWS, header=True, end="\n") -> bytes:
    lines = [f"{len(words)} {len(rows[0])}"] if header else []
    lines += [" ".join([w, *(repr(float(x)) for x in row)]) for w, row in zip(words, rows, strict=True)]
    return "".join(line + end for line in lines).encode()


def as_binary(words=WORDS, rows=ROWS, end=b"\n") -> bytes:
    body = b"".join(w.encode() + b" " + row.astype("<f4").tobytes() + end for w, row in zip(words, rows, strict=True))
    return f"{len(words)} {len(rows[0])}\n".encode() + body


def source(head: Head) -> Source:
    assert head.source is not None
    return head.source


@pytest.fixture
def put(tmp_path):
    """Write bytes to a file and give its path."""

    def write(raw: bytes, name: str = "vectors.txt"):
        (tmp_path / name).write_bytes(raw)
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def keyed_vectors():
    pytest.importorskip("gensim", reason="gensim is not installed; make test installs it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from gensim.models import KeyedVectors
    return KeyedVectors


# -- files that are right -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n", "\t \n"])
def test_text_gives_words_and_numbers(put, header, end):
    head = load(put(as_text(header=header, end=end)))
    assert head.labels == tuple(WORDS)
    assert np.array_equal(head.W, ROWS)
    assert head.W.dtype == np.float32
    assert head.link == "vectors"
    assert (head.offset_in is None) == header  # GloVe writes no line of counts, and has biases
    assert "offset" in source(head).assumed
    assert isinstance(head.inputs, inputs.AllInputs)
    assert source(head).decided["link"].startswith("word vectors: one of the two tables")


@pytest.mark.parametrize("end", [b"\n", b""])
def test_binary_gives_words_and_numbers(put, end):
    head = load(put(as_binary(end=end), "vectors.bin"))
    assert head.labels == tuple(WORDS)
    assert np.array_equal(head.W, ROWS)
    assert head.link == "vectors"


@pytest.mark.parametrize("raw", [as_text(), as_text(header=False), as_binary()], ids=["word2vec", "glove", "binary"])
def test_gzip_is_unpacked_on_the_way(put, raw):
    head = load(put(gzip.compress(raw), "vectors.gz"))
    assert head.labels == tuple(WORDS)
    assert np.array_equal(head.W, ROWS)


def test_a_word_may_contain_spaces_as_in_glove_840b(put):
    words = [",", ". . .", "at name@domain.com", "\u00a0"]
    for header in (True, False):
        assert load(put(as_text(words, header=header))).labels == tuple(words)


def test_a_first_word_with_spaces_does_not_widen_the_vectors(put):
    assert load(put(as_text(["on the", "b", "c", "d"], header=False))).shape == (4, 3)


def test_a_number_may_be_a_word(put):
    assert load(put(as_text(["2024", "3.14", "1e5", "nan"], header=False))).labels == ("2024", "3.14", "1e5", "nan")


def test_an_empty_word_is_a_word(put):
    assert load(put(as_text(["a", "", "c", "d"]))).labels == ("a", "", "c", "d")


def test_bytes_that_are_not_utf8_are_replaced(put):
    for raw, name in ((as_text(), "v.txt"), (as_binary(), "v.bin")):
        assert load(put(raw.replace(b"dog", b"d\xffg"), name)).labels[0] == "d\ufffdg"


def test_blank_lines_and_a_missing_last_newline_are_tolerated(put):
    assert load(put(as_text().rstrip(b"\n"))).shape == (4, 3)
    assert load(put(as_text() + b"\n \n")).shape == (4, 3)


def test_tables_larger_than_a_block_keep_their_order(put, monkeypatch):
    monkeypatch.setattr(wordvectors, "BLOCK", 9)
    rows = np.arange(66, dtype=np.float32).reshape(22, 3)
    words = [f"w{i}" for i in range(22)]
    for raw, reader in ((as_text(words, rows), wordvectors.text), (as_binary(words, rows), wordvectors.binary)):
        head = reader(put(raw)).finish()
        assert np.array_equal(head.W, rows)
        assert head.labels == tuple(words)


@pytest.mark.parametrize(
    "name",
    [
        "word2vec_pre_kv_c",
        "high_precision.kv.txt",
        "lee_fasttext.vec",
        "crime-and-punishment.vec",
        "pang_lee_polarity_fasttext.vec",
        "EN.1-10.cbow1_wind5_hs0_neg10_size300_smpl1e-05.txt",
    ],
)
def test_real_text_reads_as_gensim_reads_it(tmp_path, keyed_vectors, name):
    path = real.extract("gensim-4.4.0", f"{DATA}/{name}", tmp_path)
    want = keyed_vectors.load_word2vec_format(str(path), binary=False, encoding="utf-8", unicode_errors="replace")
    head = load(path)
    assert head.labels == tuple(want.index_to_key)
    assert np.array_equal(head.W, want.vectors)


def test_real_glove_text_reads_as_gensim_reads_it(tmp_path, keyed_vectors):
    path = real.extract("gensim-4.4.0", f"{DATA}/test_glove.txt", tmp_path)
    with warnings.catch_warnings():  # gensim leaves the file open
        warnings.simplefilter("ignore", ResourceWarning)
        want = keyed_vectors.load_word2vec_format(str(path), binary=False, no_header=True)
        gc.collect()
    head = load(path)
    assert head.shape == (76, 50)
    assert head.labels == tuple(want.index_to_key)
    assert np.array_equal(head.W, want.vectors)


@pytest.mark.parametrize("name", ["euclidean_vectors.bin", "poincare_vectors.bin", "high_precision.kv.bin"])
def test_real_binary_reads_as_gensim_reads_it(tmp_path, keyed_vectors, name):
    path = real.extract("gensim-4.4.0", f"{DATA}/{name}", tmp_path)
    want = keyed_vectors.load_word2vec_format(str(path), binary=True)
    head = load(path)
    assert head.labels == tuple(want.index_to_key)
    assert np.array_equal(head.W, want.vectors)


def test_real_file_that_promises_more_than_it_has_is_refused(tmp_path):
    path = real.extract("gensim-4.4.0", f"{DATA}/pretrained.vec", tmp_path)
    with pytest.raises(LoadError, match="has 1 vectors and its first line claims 3"):
        load(path)


# -- gensim objects -------------------------------------------------------------------------------------------------


def test_keyed_vectors_are_one_table_of_two(keyed_vectors):
    kv = keyed_vectors(3)
    kv.add_vectors(WORDS, ROWS)
    head = load(kv)
    assert head.link == "vectors"
    assert head.labels == tuple(WORDS)
    assert np.array_equal(head.W, ROWS)


def test_trained_word2vec_is_a_sigmoid_head_of_its_output_rows(keyed_vectors):
    from gensim.models import Word2Vec

    model = Word2Vec([["dog", "cat", "eel"], ["cat", "dog"]] * 5, vector_size=4, min_count=1, negative=2, workers=1)
    head = load(model)
    assert head.link == "sigmoid"
    assert head.labels == tuple(model.wv.index_to_key)
    assert np.array_equal(head.W, model.syn1neg)
    assert load(model.wv).link == "vectors"


def test_word2vec_with_a_tree_is_refused_with_the_reason(keyed_vectors):
    from gensim.models import Word2Vec

    model = Word2Vec([["dog", "cat"]] * 5, vector_size=4, min_count=1, hs=1, negative=0, workers=1)
    with pytest.raises(LoadError, match="nodes of a Huffman tree"):
        load(model)


def test_objects_without_vectors_or_with_too_few_are_refused():
    with pytest.raises(LoadError, match="index_to_key"):
        wordvectors.keyed(SimpleNamespace(index_to_key=["a"]))
    with pytest.raises(LoadError, match="one row a word"):
        wordvectors.keyed(SimpleNamespace(index_to_key=["a", "b"], vectors=np.ones((3, 2))))
    with pytest.raises(LoadError, match="one row a word"):
        wordvectors.keyed(SimpleNamespace(index_to_key=["a", "b"], vectors=np.ones(2)))


# -- which reader ---------------------------------------------------------------------------------------------------


def test_the_first_bytes_tell_text_from_binary():
    wide = np.random.default_rng(1).standard_normal((5, 300)).astype(np.float32)
    words = ["the", "of", "and", "to", "in"]
    for raw in (as_text(), as_text(header=False), as_text(words, wide), as_text(words, wide, header=False)):
        assert wordvectors.looks_like_text(raw[:512])
        assert not wordvectors.looks_like_binary(raw[:512])
    for raw in (as_binary(), as_binary(words, wide), as_binary(words, wide, end=b"")):
        assert wordvectors.looks_like_binary(raw[:512])
        assert not wordvectors.looks_like_text(raw[:512])


@pytest.mark.parametrize(
    "raw", [b"", b"\n", b"Hello world\n", b"dog 1\n", b"\x00" * 512, b"\x80\x02}", b"a,b,c\n1,2,3\n"]
)
def test_other_files_look_like_neither(raw):
    assert not wordvectors.looks_like_text(raw)
    assert not wordvectors.looks_like_binary(raw)


# -- files that are wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "empty"),
        (b"0 3\n", "claims 0 vectors"),
        (b"3 0\na\nb\nc\n", "width 0"),
        (b"hello there\n", "line 1"),
        (b"2 2\na 1 2\nb 1\n", "line 3 .* has 1 number behind"),
        (b"2 2\na 1 2\nb 1 2 3\n", "line 3 .* has 3 numbers behind"),
        (b"2 2\na 1 2\nb 1 two\n", "line 3 .* holds 'two'"),
        (b"a 1 2\nb 1 2\nc 1\n", "line 3"),
        (b"3 2\na 1 2\nb 1 2\n", "has 2 vectors and its first line claims 3"),
        (b"2 2\na 1 2\nb 1 2\nc 1 2\n", "has 3 vectors and its first line claims 2"),
        (b"1000000000000 1000000000000\na 1 2\n", "cut off"),
        (b"10000000000 1\na 1\n", "cut off"),
        (b"2 100000000\na 1 2\n", "cut off"),
    ],
)
def test_broken_text_is_refused_in_one_sentence(put, raw, says):
    with pytest.raises(LoadError, match=says):
        wordvectors.text(put(raw))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "empty"),
        (b"dog", "starts with 'dog'"),
        (b"4 3\n", "cut off"),
        (as_binary()[:-9], "word 4 of the 4"),
        (as_binary() + b"more", "goes on"),
        (b"1000000000000000 300\n" + bytes(100), "claims"),
        (b"2 10000000000\n" + bytes(100), "claims"),
        (b"1 3\n" + b"x" * 70_000 + b" " + bytes(12), "has no name"),
    ],
)
def test_broken_binary_is_refused_in_one_sentence(put, raw, says):
    with pytest.raises(LoadError, match=says):
        wordvectors.binary(put(raw))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ((b"dog" + b" 1" * 1000 + b"\n") * 10_000, "grows more than"),
        (b"dog 1 2\n" + b"\n" * (1 << 24), "blank lines"),
        (b"dog 1 2\n" + b" " * (1 << 25), "grows more than|longer than"),
    ],
    ids=["vectors", "blank lines", "one line"],
)
def test_a_gzip_bomb_is_stopped(put, raw, says):
    with pytest.raises(LoadError, match=says):
        load(put(gzip.compress(raw), "bomb.gz"))


def test_a_line_without_end_is_stopped(put):
    with pytest.raises(LoadError, match="longer than"):
        load(put(b"dog 1 2\n" + b" " * (1 << 25)))


def test_damaged_gzip_is_refused(put):
    whole = gzip.compress(as_text())
    for raw in (whole[:-12], whole[:20], whole[:15] + b"\xff" * 20 + whole[35:]):
        with pytest.raises(LoadError, match="cannot be read"):
            wordvectors.text(put(raw, "v.gz"))


@pytest.mark.parametrize("bad", ["nan", "inf", "1e300"])
def test_numbers_that_are_not_finite_are_named(put, bad):
    with pytest.raises(GonioError, match=r"W\[1, 0\]"):
        load(put(f"2 2\na 1 2\nb {bad} 2\n".encode()))


def test_a_single_vector_cannot_be_compared(put):
    with pytest.raises(LoadError, match="one row"):
        load(put(b"1 2\na 1 2\n"))


def test_a_tensor_cannot_be_named(put):
    with pytest.raises(LoadError, match="leave tensor= out"):
        load(put(as_text()), tensor="wte")
    with pytest.raises(LoadError, match="cannot be read"):
        wordvectors.text(put(b"").with_name("absent"))


@pytest.mark.parametrize("kind", ["text", "glove", "binary", "gzip"])
def test_damaged_files_give_a_head_or_one_sentence(tmp_path, kind):
    good = {"text": as_text(), "glove": as_text(header=False), "binary": as_binary(), "gzip": gzip.compress(as_text())}
    name = {"text": "x.vec", "glove": "x.txt", "binary": "x.bin", "gzip": "x.vec.gz"}[kind]
    survives(tmp_path / name, good[kind], 150)


def test_damaged_real_files_give_a_head_or_one_sentence(tmp_path):
    for name in ("test_glove.txt", "euclidean_vectors.bin", "lee_fasttext.vec"):
        survives(tmp_path / name, real.read("gensim-4.4.0", f"gensim/test/test_data/{name}"), 50)
