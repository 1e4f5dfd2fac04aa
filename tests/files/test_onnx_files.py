"""ONNX files: labels, named tables, external data, and files that are wrong."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import gonio
from gonio.core.errors import LoadError, MissingExtraError
from gonio.core.inputs import AllInputs, Nonnegative
from gonio.files.read.onnx import draft
from tests.files.onnx_made import (
    GAIN,
    NORM_STEPS,
    PLAIN,
    RNG,
    SCALES,
    SHIFT,
    SOFTMAX,
    ZEROS,
    B,
    D,
    N,
    Q,
    TensorProto,
    W,
    check_agrees,
    features,
    helper,
    model,
    onnx,
    op,
    ort,
    refuse,
    save,
)
from tests.mutate import survives

# -- labels, names, other files ---------------------------------------------------------------------------------------

METADATA = {
    "character n": ({"character": "\n".join("abcdefg")}, tuple("abcdefg")),
    "character n-1": ({"character": "\n".join("abcdef") + "\n"}, ("blank", *"abcdef")),
    "character n-2": ({"character": "\n".join("abcde")}, ("blank", *"abcde", " ")),
    "names": ({"names": str({i: f"a {i}'s" for i in range(N)})}, tuple(f"a {i}'s" for i in range(N))),
    "json": ({"classes": json.dumps(list("abcdefg"))}, tuple("abcdefg")),
    "lines": ({"labels": "a\nb\nc\nd\ne\nf\ng"}, tuple("abcdefg")),
    "commas": ({"class_names": "a, b, c, d, e, f, g"}, tuple("abcdefg")),
    "wrong count": ({"names": "{0: 'person', 1: 'car'}"}, None),
    "not a list": ({"names": "{" * 3000}, None),
    "code": ({"names": "__import__('os').system('true')"}, None),
    "an odd backslash": ({"names": r"{0: '\d'}"}, None),
}


@pytest.mark.parametrize("way", METADATA)
def test_labels_come_from_the_metadata_where_their_count_fits(way, tmp_path):
    metadata, expected = METADATA[way]
    head = gonio.load(save(tmp_path, model([op("Relu", "x", "f"), *SOFTMAX], PLAIN, metadata=metadata)))
    assert head.named is (expected is not None)
    assert expected is None or head.labels == expected
    assert "metadata" in head.source.decided["labels"]


@pytest.mark.parametrize("post", ["SOFTMAX", "LOGISTIC", "NONE"])
def test_a_linear_classifier_of_scikit_learn_is_read(post, tmp_path):
    node = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "p"],
        domain="ai.onnx.ml",
        coefficients=W.reshape(-1).tolist(),
        intercepts=B.tolist(),
        classlabels_strings=list("abcdefg"),
        post_transform=post,
    )
    path = save(tmp_path, model([node], {}, output="label p"))
    head = check_agrees(path, features(), feed="x", scores="logits" if post == "NONE" else "probabilities", atol=1e-4)
    assert head.labels == tuple("abcdefg")
    assert head.link == ("sigmoid" if post == "LOGISTIC" else "softmax")
    assert ("link" in head.source.assumed) is (post == "NONE")


def test_a_classifier_that_scikit_learn_trained_is_read():
    path = Path(ort.__file__).parent / "datasets" / "logreg_iris.onnx"
    if not path.exists():
        pytest.skip("this onnxruntime brings no example models")
    head = gonio.load(path)
    x = np.random.default_rng(0).uniform(0, 7, (30, 4)).astype(np.float32)
    m = onnx.load_model(path)
    m.graph.input[0].type.tensor_type.ClearField("shape")  # it claims two features and has coefficients for four
    (P,) = ort.InferenceSession(m.SerializeToString()).run(["probabilities"], {"float_input": x})
    P = np.array([[row[i] for i in range(3)] for row in P])
    ours = head.probabilities(x)
    np.testing.assert_allclose(ours / ours.sum(axis=1, keepdims=True), P, rtol=1e-4, atol=1e-5)
    assert "by their sum" in head.source.decided["weight"]
    assert (head.shape, head.link, head.labels) == ((3, 4), "sigmoid", ("0", "1", "2"))


def test_the_table_can_be_named(tmp_path):
    other = RNG.standard_normal((D, D)).astype(np.float32)
    nodes = [op("MatMul", "x v", "h"), op("Relu", "h", "f"), *SOFTMAX]
    path = save(tmp_path, model(nodes, PLAIN | {"v": other, "e": np.ones((3, 2), np.float32)}))
    assert check_agrees(path, features(), tensor="w").link == "softmax"
    inner = gonio.load(path, tensor="v")
    np.testing.assert_array_equal(inner.W, other.T)
    assert {"link", "inputs"} <= inner.source.assumed
    assert gonio.load(path, tensor="e").shape == (3, 2)
    with pytest.raises(LoadError, match=r"no constant 'nope'.*w \(8x7 float32\).*v \(8x8 float32\)"):
        gonio.load(path, tensor="nope")
    with pytest.raises(LoadError, match="'b' is 7 float32"):
        gonio.load(path, tensor="b")


def external(folder: Path, *, size=None, **where) -> Path:
    m = model([op("Relu", "x", "f"), *SOFTMAX], PLAIN)
    (folder / "w.bin").write_bytes((b"\0" * 12 + W.T.tobytes())[:size])
    t = m.graph.initializer[0]
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    for k, v in ({"location": "w.bin", "offset": "12", "length": str(W.nbytes)} | where).items():
        t.external_data.add(key=k, value=v)
    return save(folder, m)


def test_external_data_is_memory_mapped(tmp_path):
    path = external(tmp_path)
    head = check_agrees(path, features())
    held = head.rows.stored
    while isinstance(held, np.ndarray) and not isinstance(held, np.memmap):
        held = held.base
    assert isinstance(held, np.memmap)
    assert head.source.bytes_read == path.stat().st_size + W.nbytes


def test_external_data_may_lie_in_one_store_with_the_model(tmp_path):
    for name in ("store", "view"):
        (tmp_path / name).mkdir()
    external(tmp_path / "store")
    for name in ("model.onnx", "w.bin"):
        (tmp_path / "view" / name).symlink_to(tmp_path / "store" / name)
    assert gonio.load(tmp_path / "view" / "model.onnx").shape == (N, D)


@pytest.mark.parametrize(
    "where",
    [
        {"location": "../w.bin"},
        {"location": "/etc/passwd"},
        {"location": "a/../../w.bin"},
        {"location": "./../inside/w.bin"},
        {"location": "..\\w.bin"},
        {"location": "C:\\w.bin"},
        {"location": ""},
        {"location": "absent.bin"},
        {"location": "w\0.bin"},
        {"location": "link.bin"},
        {"location": "."},
        {"offset": "13"},
        {"offset": "-1"},
        {"offset": "x"},
        {"offset": "9" * 5000},
        {"length": "9999999999999"},
        {"length": "8"},
        {"size": 100},
    ],
    ids=str,
)
def test_external_data_outside_the_folder_or_its_file_is_refused(where, tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(W.T.tobytes() * 2)
    os.symlink(tmp_path / "w.bin", folder / "link.bin")
    refuse(external(folder, **where))


# -- bad files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0, 1, 10, 100, -1, -40])
def test_a_truncated_file_is_refused(part, tmp_path):
    whole = model([op("Relu", "x", "f"), *SOFTMAX], PLAIN).SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(whole[:part])
    refuse(path)


def test_random_bytes_are_refused(tmp_path):
    path = tmp_path / "model.onnx"
    for seed in range(20):
        path.write_bytes(np.random.default_rng(seed).bytes(300))
        refuse(path)


@pytest.mark.parametrize(
    "dims", [(100_000, 100_000), (1 << 40, 1 << 40), (-1, D), (0, 1 << 62), (D, N + 1), (1,) * 100]
)
@pytest.mark.parametrize("field", ["raw_data", "float_data"])
def test_dims_that_the_bytes_do_not_carry_are_refused_before_anything_is_allocated(dims, field, tmp_path):
    m = model([op("Relu", "x", "f"), *SOFTMAX], PLAIN)
    t = m.graph.initializer[0]
    if field == "float_data":
        t.ClearField("raw_data")
        t.float_data.extend(W.T.reshape(-1).tolist())
    del t.dims[:]
    t.dims.extend(dims)
    refuse(save(tmp_path, m))


def test_numbers_outside_raw_bytes_are_read(tmp_path):
    m = model([op("Relu", "x", "f"), op("Cast", "h", "w", to=1), *SOFTMAX], {"h": np.zeros(1), "b": B})
    h = helper.make_tensor("h", TensorProto.FLOAT16, (D, N), W.T.astype(np.float16).reshape(-1).tolist())
    assert not h.HasField("raw_data")
    m.graph.initializer[0].CopyFrom(h)
    np.testing.assert_array_equal(gonio.load(save(tmp_path, m)).W, W.astype(np.float16))


def test_a_graph_without_a_product_is_refused(tmp_path):
    refuse(save(tmp_path, model([op("Relu", "x", "r"), op("Softmax", "r", "p")], {})))
    refuse(save(tmp_path, model([op("MatMul", "x x", "p")], {})))
    refuse(save(tmp_path, model([op("Identity", "w", "p")], {"w": W})))
    refuse(save(tmp_path, model([], {})))


def test_a_cycle_ends(tmp_path):
    cycles = [
        [op("Identity", "q", "p"), op("Identity", "p", "q")],
        [op("MatMul", "x w", "p"), op("Transpose", "w2", "w"), op("Identity", "w", "w2")],
        [op("Softmax", "p", "p")],
    ]
    for nodes in cycles:
        refuse(save(tmp_path, model(nodes, {})))
    before = [op("Concat", "c f", "f", axis=1), op("Reshape", "f f", "c")]
    fed_by_a_cycle = gonio.load(save(tmp_path, model([*before, *SOFTMAX], PLAIN)))
    assert fed_by_a_cycle.inputs == AllInputs()


def test_a_web_of_concats_is_walked_once(tmp_path):
    nodes = [op("Relu", "x", "c0")] + [op("Concat", f"c{i} c{i}", f"c{i + 1}", axis=0) for i in range(60)]
    head = gonio.load(save(tmp_path, model([*nodes, op("Identity", "c60", "f"), *SOFTMAX], PLAIN)))
    assert head.inputs == Nonnegative()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(bad, tmp_path):
    w = W.T.copy()
    w[2, 3] = bad
    refuse(save(tmp_path, model([op("Relu", "x", "f"), *SOFTMAX], {"w": w, "b": B})))
    refuse(save(tmp_path, model([op("Relu", "x", "f"), *SOFTMAX], {"w": W.T, "b": w[2, :N]})))


def test_types_that_hold_no_weights_are_refused(tmp_path):
    for w in (W.T.astype(np.complex64), W.T.astype(np.int32), np.full((D, N), "a", object)):
        refuse(save(tmp_path, model([op("Relu", "x", "f"), *SOFTMAX], {"w": w, "b": B})))


def test_without_the_onnx_package_the_command_that_installs_it_is_told(tmp_path, monkeypatch):
    path = save(tmp_path, model([op("Relu", "x", "f"), *SOFTMAX], PLAIN))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gonio\[onnx\]'"):
        gonio.load(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "absent.onnx"):
        with pytest.raises(LoadError):
            draft(path, None)


def test_a_damaged_model_gives_a_head_or_one_sentence(tmp_path):
    nodes = [*NORM_STEPS, op("Add", "g shift", "l"), op("Sigmoid", "l", "s"), op("Mul", "l s", "f")]
    nodes += [op("DequantizeLinear", "q s8 o8", "w", axis=1), *SOFTMAX]
    constants = {"gain": GAIN, "shift": SHIFT, "two": np.float32(2), "eps": np.float32(1e-5), "b": B}
    constants |= {"q": Q.T, "s8": SCALES, "o8": ZEROS}
    whole = model(nodes, constants, metadata={"names": str(dict(enumerate("abcdefg")))}).SerializeToString()
    survives(tmp_path / "model.onnx", whole, 300)
