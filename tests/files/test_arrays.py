"""numpy files and arrays in memory."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import gonio
from gonio import Box, GonioError, Nonnegative
from tests import real


def mapped(a) -> bool:
    """Whether an array is a view of a memory map."""
    while a is not None and not isinstance(a, np.memmap):
        a = getattr(a, "base", None)
    return a is not None


rng = np.random.default_rng(0)
W, b = rng.standard_normal((6, 4)), rng.standard_normal(6)


def test_an_npy_file_is_mapped_and_not_copied(tmp_path):
    for order in "CF":
        for kind in (np.float64, np.float32, np.float16, ">f4"):
            path = tmp_path / f"{order}.npy"
            np.save(path, np.array(W, dtype=kind, order=order))
            head = gonio.load(path)
            assert np.array_equal(head.W, W.astype(kind).astype(head.W.dtype))
            assert head.link == "unknown"
            assert "nothing says what these rows are" in head.source.decided["link"]
            if kind != ">f4":
                assert mapped(head.rows.stored)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    ("weight", "bias"),
    [("W", "b"), ("weight", "bias"), ("coef_", "intercept_"), ("lm_head.weight", "lm_head.bias"), ("fc_w", "fc_b")],
)
def test_weight_and_bias_are_found_by_their_names(save, weight, bias, tmp_path):
    path = tmp_path / "m.npz"
    save(path, **{weight: W, bias: b, "encoder": rng.standard_normal((9, 9)), "step": 3})
    head = gonio.load(path)
    assert np.array_equal(head.W, W)
    assert np.array_equal(head.bias, b)
    assert head.source.tensors == {"W": weight, "bias": bias}
    assert mapped(head.rows.stored) == (save is np.savez)


def test_a_kernel_that_lies_down_is_turned(tmp_path):
    np.savez(tmp_path / "k.npz", **{"dense/kernel": W.T, "dense/bias": b})
    head = gonio.load(tmp_path / "k.npz")
    assert np.array_equal(head.W, W)
    assert np.array_equal(head.bias, b)
    np.savez(tmp_path / "w.npz", W=W.T, b=b)  # the length of the bias tells
    head = gonio.load(tmp_path / "w.npz")
    assert np.array_equal(head.W, W)
    assert "turned" in head.source.decided["weight"]
    np.savez(tmp_path / "u.npz", W_U=W.T, b_U=b, W_E=W)
    assert np.array_equal(gonio.load(tmp_path / "u.npz").W, W)


def test_link_labels_and_inputs_may_stand_in_the_file(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(
        path,
        W=W,
        labels=np.array(list("abcdef")),
        link=np.array("sigmoid"),
        inputs=np.array("nonnegative"),
        softcap=30.0,
    )
    head = gonio.load(path)
    assert head.labels == tuple("abcdef")
    assert head.link == "sigmoid"
    assert head.inputs == Nonnegative()
    assert head.softcap == 30
    assert not head.source.assumed
    mine = gonio.load(path, link="softmax", labels=[*"uvwxyz"], inputs="box:-1,1")
    assert mine.labels == tuple("uvwxyz")
    assert mine.inputs == Box(-1, 1)
    assert mine.source.decided["link"] == "given by the caller"


def test_a_file_cannot_make_gonio_open_another(tmp_path):
    np.save(tmp_path / "secret.npy", np.ones((3, 4)))
    np.savez(tmp_path / "m.npz", W=W, inputs=np.array(f"observed:{tmp_path / 'secret.npy'}"))
    assert gonio.load(tmp_path / "m.npz").inputs == gonio.AllInputs()


def test_tensor_chooses_and_an_unknown_one_is_answered_with_the_candidates(tmp_path):
    np.savez(tmp_path / "m.npz", first=W, second=W[:3])
    assert gonio.load(tmp_path / "m.npz", tensor="second").shape == (3, 4)
    with pytest.raises(GonioError, match=r"no tensor 'third'; it has first \(6x4 float64\), second \(3x4 float64\)"):
        gonio.load(tmp_path / "m.npz", tensor="third")
    with pytest.raises(GonioError, match=r"cannot be told; name it with tensor=: first"):
        gonio.load(tmp_path / "m.npz")


def test_the_last_of_a_stack_of_layers_is_taken_and_marked(tmp_path):
    np.savez(
        tmp_path / "m.npz",
        **{"0.weight": np.ones((8, 9)), "2.weight": W, "2.bias": b, "10.weight": W[:5], "10.bias": b[:5]},
    )
    head = gonio.load(tmp_path / "m.npz")
    assert head.shape == (5, 4)
    assert "weight" in head.source.assumed


def test_labels_come_from_files_of_several_kinds(tmp_path):
    (tmp_path / "l.txt").write_text("a\nb\nc\nd\ne\nf\n")
    (tmp_path / "l.json").write_text('["a", "b", "c", "d", "e", "f"]')
    (tmp_path / "m.json").write_text('{"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}')
    for name in ("l.txt", "l.json", "m.json"):
        assert gonio.load({"W": W}, labels=tmp_path / name).labels == tuple("abcdef")
    (tmp_path / "short.txt").write_text("a\nb\n")
    with pytest.raises(GonioError, match="has 2 lines and the head 6 rows"):
        gonio.load({"W": W}, labels=tmp_path / "short.txt")
    with pytest.raises(GonioError, match="cannot be read"):
        gonio.load({"W": W}, labels=tmp_path / "none.txt")
    for names in (["a", "b"], [*"abcdefg"]):
        (tmp_path / "wrong.json").write_text(json.dumps(names))
        with pytest.raises(GonioError, match=f"lists {len(names)} names and the head has 6 rows; give one name a row"):
            gonio.load({"W": W}, labels=tmp_path / "wrong.json")
    (tmp_path / "gaps.json").write_text(
        '{"a": 0, "b": 1, "d": 3, "e": 4, "f": 5, "g": 6}'
    )  # a tokenizer may leave gaps
    assert gonio.load({"W": W}, labels=tmp_path / "gaps.json").labels == ("a", "b", "[padded 2]", "d", "e", "f")


def test_the_published_npz_of_g2p_en_is_read(tmp_path):
    path = real.extract("g2p_en-2.1.0", "g2p_en/checkpoint20.npz", tmp_path)
    head = gonio.load(path)
    assert head.shape == (74, 256)
    with np.load(path) as z:
        assert np.array_equal(head.W, z["fc_w"])
        assert np.array_equal(head.bias, z["fc_b"])


def test_arrays_lists_and_dicts_are_heads_too():
    assert gonio.load(W).shape == (6, 4)
    assert gonio.load(W.tolist()).shape == (6, 4)
    assert np.array_equal(gonio.load({"W": W, "b": b}).bias, b)


def test_one_row_is_refused_unless_it_is_a_yes_or_no(tmp_path):
    np.save(tmp_path / "one.npy", W[:1])
    with pytest.raises(GonioError, match="has one row"):
        gonio.load(tmp_path / "one.npy")
    assert gonio.load(tmp_path / "one.npy", link="sigmoid").shape == (1, 4)


def bad_npz(path, **members):
    with zipfile.ZipFile(path, "w") as z:
        for name, raw in members.items():
            z.writestr(name + ".npy", raw)


def npy_header(text: str) -> bytes:
    body = text.encode() + b" " * ((-len(text) - 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


FORTY_GB = npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (10000000, 1000), }")


def test_bad_numpy_files_get_one_sentence(tmp_path):
    np.save(tmp_path / "object.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "object.npz", W=np.array([[{"a": 1}]], dtype=object))
    np.savez(tmp_path / "texts.npz", W=np.array([["a", "b"]]))
    np.save(tmp_path / "texts.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "flat.npy", np.ones(7))
    np.save(tmp_path / "empty_rows.npy", np.ones((0, 4)))
    np.save(tmp_path / "nan.npy", np.array([[1, np.nan], [1, 2]]))
    (tmp_path / "claim.npy").write_bytes(FORTY_GB + b"x" * 900)
    bad_npz(tmp_path / "claim.npz", W=FORTY_GB + b"x" * 900)
    np.save(tmp_path / "whole.npy", W)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:-5])
    (tmp_path / "negative.npy").write_bytes(npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4), }"))
    (tmp_path / "code.npy").write_bytes(
        npy_header("{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (3, 4), }")
    )
    (tmp_path / "zero.npy").write_bytes(b"")
    (tmp_path / "zip.npz").write_bytes(b"PK\x03\x04 not really")
    bad_npz(tmp_path / "nothing.npz")
    for path, said in {
        "object.npy": "pickled objects, which can run code",
        "object.npz": "pickled objects, which can run code",
        "texts.npz": "no two-dimensional float tensor",
        "texts.npy": "dtype <U1",
        "flat.npy": r"shape \(7,\)",
        "empty_rows.npy": r"shape \(0, 4\)",
        "nan.npy": r"W\[0, 1\] is nan",
        "claim.npy": "claims an array of shape .10000000, 1000. and so 40,000,",
        "claim.npz": "the file holds fewer",
        "cut.npy": "cut short",
        "negative.npy": "damaged",
        "code.npy": "no valid .npy header",
        "zero.npy": "is empty",
        "zip.npz": "damaged",
        "nothing.npz": "no two-dimensional float tensor",
    }.items():
        with pytest.raises(GonioError, match=said) as e:
            gonio.load(tmp_path / path)
        assert "\n" not in str(e.value)
        assert str(e.value).startswith("load: ")
    with pytest.raises(GonioError, match="not a rectangular array"):
        gonio.load({"W": np.array([[{}]], dtype=object)})
