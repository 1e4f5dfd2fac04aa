"""fastText models: real files from gensim's wheel, made ones, and broken ones."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from gonio.core import inputs
from gonio.core.errors import GonioError, LoadError
from gonio.core.head import Head, Source
from gonio.files.read import fasttext
from gonio.models.loading import load
from tests import real
from tests.mutate import survives

DATA = "gensim/test/test_data"
LOSS = {"hs": 1, "ns": 2, "softmax": 3, "ova": 4}


def written(
    path: Path,
    W: np.ndarray,
    names: list[bytes],
    *,
    model: int = 3,
    loss: str = "softmax",
    words: tuple[bytes, ...] = (b"</s>", b"good", b"bad"),
    version: int = 12,
    quantised_input: bool = False,
    quantised_output: bool = False,
) -> Path:
    """A fastText model with output matrix W, one row a label (supervised) or a word."""
    dim = W.shape[1]
    labels = names if model == 3 else []
    words = words if model == 3 else tuple(names)
    out = struct.pack("<2i12id", 793712314, version, dim, 5, 5, 1, 5, 1, LOSS[loss], model, 0, 0, 0, 100, 1e-4)
    out += struct.pack("<3i2q", len(words) + len(labels), len(words), len(labels), 99, 1)
    for kind, entries in enumerate((words, labels)):
        out += b"".join(w + b"\0" + struct.pack("<qb", 3, kind) for w in entries)
    out += struct.pack("<2i", 0, 0)  # one pruned entry
    out += struct.pack("<?", quantised_input)
    if quantised_input:
        product = struct.pack("<4i", 2, 1, 2, 2) + bytes(4 * 256 * 2)
        out += struct.pack("<?2qi", True, len(words), dim, 7) + bytes(7) + product + bytes(len(words)) + product
    else:
        out += struct.pack("<2q", len(words), dim) + bytes(4 * len(words) * dim)
    out += struct.pack("<?2q", quantised_output, *W.shape) + W.astype("<f4").tobytes()
    path.write_bytes(out)
    return path


def source(head: Head) -> Source:
    assert head.source is not None
    return head.source


@pytest.fixture
def table():
    return np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


NAMES = [b"__label__dog", b"__label__cat", b"__label__" + "poisson-chat-très-long-nommé".encode() * 9]


@pytest.mark.parametrize(("loss", "link"), [("softmax", "softmax"), ("ova", "sigmoid"), ("ns", "sigmoid")])
def test_supervised_model_is_a_head_over_its_labels(tmp_path, table, loss, link):
    head = load(written(tmp_path / "m.bin", table, NAMES, loss=loss))
    assert head.link == link
    assert head.labels[:2] == ("dog", "cat")
    assert np.array_equal(head.W, table)
    assert isinstance(head.inputs, inputs.AllInputs)
    assert "__label__ taken off" in source(head).decided["labels"]
    assert not source(head).assumed


def test_labels_with_another_prefix_are_kept_whole(tmp_path, table):
    assert load(written(tmp_path / "m.bin", table, [b"#dog", b"__label__cat", b"#eel"])).labels == (
        "#dog",
        "__label__cat",
        "#eel",
    )


@pytest.mark.parametrize("model", [1, 2])
def test_unsupervised_model_is_a_sigmoid_head_over_its_words(tmp_path, table, model):
    head = load(written(tmp_path / "m.bin", table, [b"dog", b"", "кот".encode()], model=model, loss="ns", version=11))
    assert head.link == "sigmoid"
    assert head.labels == ("dog", "", "кот")
    assert np.array_equal(head.W, table)


def test_a_word_that_is_not_utf8_is_shown_with_replacements(tmp_path, table):
    head = load(written(tmp_path / "m.bin", table, [b"dog", b"\xff\xfe", b"eel"], model=1, loss="ns"))
    assert head.labels[1] == "\ufffd\ufffd"


def test_quantised_input_does_not_matter(tmp_path, table):
    assert np.array_equal(load(written(tmp_path / "m.ftz", table, NAMES, quantised_input=True)).W, table)


@pytest.mark.parametrize("model", [1, 2, 3])
def test_hierarchical_softmax_is_refused_with_the_reason(tmp_path, table, model):
    with pytest.raises(LoadError, match="nodes of a Huffman tree"):
        fasttext.draft(written(tmp_path / "m.bin", table, NAMES, model=model, loss="hs"), None)


def test_quantised_output_is_refused_with_what_to_do(tmp_path, table):
    with pytest.raises(LoadError, match="without -qout"):
        fasttext.draft(written(tmp_path / "m.bin", table, NAMES, quantised_output=True), None)


def test_only_the_output_matrix_can_be_named(tmp_path, table):
    path = written(tmp_path / "m.bin", table, NAMES)
    assert load(path, tensor="output").shape == (3, 4)
    with pytest.raises(LoadError, match="'output' matrix"):
        load(path, tensor="lm_head.weight")


def test_one_sentence_for_nan(tmp_path, table):
    table[1, 2] = np.nan
    with pytest.raises(GonioError, match=r"W\[1, 2\] is nan"):
        load(written(tmp_path / "m.bin", table, NAMES))


@pytest.mark.parametrize(
    "name", ["lee_fasttext_new.bin", "crime-and-punishment.bin", "toy-model.bin", "toy-model-pretrained.bin"]
)
def test_real_models_read_as_gensim_reads_them(tmp_path, name):
    pytest.importorskip("gensim", reason="gensim is not installed; make test installs it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from gensim.models._fasttext_bin import load as reference
    path = real.extract("gensim-4.4.0", f"{DATA}/{name}", tmp_path)
    with path.open("rb") as f:
        want = reference(f)
    head = load(path)
    assert head.link == "sigmoid"
    assert head.labels == tuple(want.raw_vocab)
    assert np.array_equal(head.W, want.hidden_output)


def test_real_sentiment_classifier_has_two_labels(tmp_path):
    head = load(real.extract("gensim-4.4.0", f"{DATA}/pang_lee_polarity_fasttext.bin", tmp_path))
    assert head.link == "softmax"
    assert sorted(head.labels) == ["neg", "pos"]
    assert head.shape == (2, 100)
    raw = (tmp_path / "pang_lee_polarity_fasttext.bin").read_bytes()
    assert np.array_equal(head.W, np.frombuffer(raw[-800:], "<f4").reshape(2, 100))


@pytest.mark.parametrize("name", ["lee_fasttext.bin", "cp852_fasttext.bin", "non_ascii_fasttext.bin"])
def test_models_from_before_the_magic_number_are_refused_politely(tmp_path, name):
    path = real.extract("gensim-4.4.0", f"{DATA}/{name}", tmp_path)
    assert fasttext.looks_like(path.read_bytes()[:512])
    with pytest.raises(LoadError, match="magic number"):
        fasttext.draft(path, None)


def test_other_files_do_not_look_like_fasttext(tmp_path, table):
    assert fasttext.looks_like(written(tmp_path / "m.bin", table, NAMES).read_bytes()[:512])
    for head in (b"", b"GGUF" + bytes(100), b"PK\x03\x04" + bytes(100), b"100 300\nthe 0.1 0.2" * 20, bytes(100)):
        assert not fasttext.looks_like(head)


def changed(raw: bytes, at: int, code: str, value) -> bytes:
    new = struct.pack(f"<{code}", value)
    return raw[:at] + new + raw[at + len(new) :]


@pytest.mark.parametrize(
    ("at", "code", "value", "says"),
    [
        (4, "i", 13, "version 13"),
        (8, "i", -1, "dim -1"),
        (8, "i", 2**31 - 1, "input matrix has shape"),
        (32, "i", 9, "loss 9"),
        (36, "i", 0, "model 0"),
        (64, "i", 2**31 - 1, "2,147,483,647 entries"),
        (64, "i", -5, "-5 entries"),
        (68, "i", 1, "claims 1 and"),
        (84, "q", 2**60, "pruning index"),
    ],
)
def test_lying_headers_are_refused(tmp_path, table, at, code, value, says):
    path = written(tmp_path / "m.bin", table, NAMES)
    path.write_bytes(changed(path.read_bytes(), at, code, value))
    with pytest.raises(LoadError, match=says):
        fasttext.draft(path, None)


def test_claims_of_giant_matrices_allocate_nothing(tmp_path, table):
    raw = written(tmp_path / "m.bin", table, NAMES).read_bytes()
    path = tmp_path / "lie.bin"
    for back, where in ((table.nbytes + 16, "output"), (table.nbytes + 17 + 48 + 16, "input")):
        path.write_bytes(changed(raw, len(raw) - back, "q", 2**60))
        with pytest.raises(LoadError, match=f"{where} matrix"):
            fasttext.draft(path, None)


def test_empty_random_and_overlong_files_are_refused(tmp_path, table):
    path = tmp_path / "x.bin"
    good = written(tmp_path / "m.bin", table, NAMES).read_bytes()
    for raw in (b"", good[:4], good[:100], good[:-1], good + b"x", np.random.default_rng(1).bytes(5000)):
        path.write_bytes(raw)
        with pytest.raises(LoadError):
            fasttext.draft(path, None)
    with pytest.raises(LoadError, match="cannot be read"):
        fasttext.draft(tmp_path / "absent.bin", None)


def test_a_dictionary_of_zeros_stops_at_once(tmp_path, table):
    raw = written(tmp_path / "m.bin", table, NAMES).read_bytes()
    path = tmp_path / "sparse.bin"
    path.write_bytes(changed(raw[:92], 64, "i", 29_000_000))
    with path.open("r+b") as f:
        f.truncate(1 << 30)
    with pytest.raises(LoadError, match="entry 1 of the dictionary"):
        fasttext.draft(path, None)


def test_damaged_files_give_a_head_or_one_sentence(tmp_path, table):
    survives(tmp_path / "x.bin", written(tmp_path / "m.bin", table, NAMES).read_bytes(), 150)
    survives(tmp_path / "x.bin", real.read("gensim-4.4.0", "gensim/test/test_data/pang_lee_polarity_fasttext.bin"), 60)
