"""Heads as other exporters spell them: told by what the graph does, and compared with what onnxruntime computes."""

from __future__ import annotations

import time

import numpy as np
import pytest

import gonio
from gonio.core.errors import LoadError
from gonio.core.inputs import AllInputs, Nonnegative
from gonio.files.read.onnx import cut, sandbox
from tests.files.onnx_made import (
    PLAIN,
    SCALES,
    SOFTMAX,
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
    op,
    refuse,
    run,
    save,
)

RELU = op("Relu", "x", "f")
ONE, TWO, LAST = {"one": np.float32(1)}, {"two": np.float32(2)}, {"last": np.array([-1])}

# -- the two graphs that were refused ---------------------------------------------------------------------------------

JAX_SOFTMAX = [
    op("ReduceMax", "z", "t", axes=[1], keepdims=0),
    op("Max", "t least", "t1"),
    op("Reshape", "t1 column", "t2"),
    op("Shape", "z", "size"),
    op("Expand", "t2 size", "t3"),
    op("Sub", "z t3", "g"),
    op("Exp", "g", "e"),
    op("ReduceSum", "e axis", "s", keepdims=0),
    op("Reshape", "s column", "s1"),
    op("Expand", "s1 size", "s2"),
    op("Div", "e s2", "p"),
]


def test_a_softmax_exported_through_jax_is_a_softmax(tmp_path):
    constants = PLAIN | {"least": np.float32(-np.inf), "column": np.array([-1, 1]), "axis": np.array([1])}
    head = check_agrees(save(tmp_path, model([RELU, *SOFTMAX[:2], *JAX_SOFTMAX], constants)), features())
    np.testing.assert_array_equal(head.W, W)
    np.testing.assert_array_equal(head.bias, B)
    assert (head.link, head.inputs) == ("softmax", Nonnegative())
    assert not head.source.assumed


SHAPES_BACK = {
    "each length gathered": [op("Gather", "size first", "d0"), op("Gather", "size second", "d1"),
                             op("Concat", "d0 d1 labels", "whole", axis=0)],
    "all but the last sliced": [op("Slice", "size first minus", "d"), op("Concat", "d labels", "whole", axis=0)],
    "lengths without an axis": [op("Gather", "size nought", "s0"), op("Unsqueeze", "s0 first", "d0"),
                                op("Concat", "d0 minus labels", "whole", axis=0)],
    "labels counted too": [op("Slice", "size first minus", "d"), op("Shape", "r", "rs"), op("Gather", "rs second", "dn"),
                           op("Concat", "d dn", "whole", axis=0)],
}  # fmt: skip
MULTIPLIED = {
    "both scales at once": [op("Mul", "xs ws", "both"), op("Mul", "c both", "m")],
    "x's scale first": [op("Mul", "c xs", "cx"), op("Mul", "cx ws", "m")],
    "the weight's scale first": [op("Mul", "ws c", "cw"), op("Mul", "xs cw", "m")],
}
FLAT = {"Reshape": op("Reshape", "f flat", "rows"), "Flatten": op("Flatten", "f", "rows", axis=2)}


@pytest.mark.parametrize("back", SHAPES_BACK)
@pytest.mark.parametrize("shape_of", ["f", "x"])
@pytest.mark.parametrize("multiplied", MULTIPLIED)
@pytest.mark.parametrize(
    ("link", "flat", "scales"), [("Softmax", "Flatten", np.float32(0.01)), ("Identity", "Reshape", SCALES)]
)
def test_a_linear_on_sequences_in_eight_bits_is_read(link, flat, scales, multiplied, shape_of, back, tmp_path):
    nodes = [
        RELU,
        FLAT[flat],
        op("DynamicQuantizeLinear", "rows", "xq xs xz"),
        op("MatMulInteger", "xq q xz", "i"),
        op("Cast", "i", "c", to=1),
        *MULTIPLIED[multiplied],
        op("Add", "b m", "r"),
        op("Shape", shape_of, "size"),
        *SHAPES_BACK[back],
        op("Reshape", "r whole", "z"),
        op(link, "z", "p"),
    ]
    constants = {"q": Q.T, "ws": scales, "b": B, "flat": np.array([-1, D]), "labels": np.array([N])}
    constants |= {"first": np.array([0]), "second": np.array([1]), "minus": np.array([-1]), "nought": np.array(0)}
    path = save(tmp_path, model(nodes, constants, shape=("batch", "length", D)))
    head = gonio.load(path)
    np.testing.assert_array_equal(head.W, Q.astype(np.float32) * np.broadcast_to(scales, N)[:, None])
    np.testing.assert_array_equal(head.bias, B)
    assert (head.link, head.rows.kind, head.inputs) == ("softmax", "int8", Nonnegative())
    assert ("link" in head.source.assumed) is (link == "Identity")
    q, scale, zero, P = run(path, features(2, 5, D), ["xq", "xs", "xz", "p"])
    F = (q.astype(np.float32) - zero) * scale  # on the grid, where the match is exact
    ours = head.probabilities(F) if link == "Softmax" else head.logits(F)
    np.testing.assert_allclose(ours, P.reshape(-1, N), rtol=1e-4, atol=1e-5)


# -- habits of other exporters ----------------------------------------------------------------------------------------

HABITS = {
    "Gemm with alpha and beta": (
        [op("Gemm", "f w0 b", "z", transB=1, alpha=0.5, beta=2.0), op("Softmax", "z", "p")],
        {},
    ),
    "Einsum": ([op("Einsum", "f w0", "m", equation="bd,nd->bn"), *SOFTMAX[1:]], {}),
    "Einsum, weight first": ([op("Einsum", "w0 f", "m", equation="nd,...d->...n"), *SOFTMAX[1:]], {}),
    "weight turned and cast in the graph": (
        [
            op("Cast", "wh", "wf", to=1),
            op("Transpose", "wf", "wt", perm=[1, 0]),
            op("Identity", "wt", "v"),
            op("MatMul", "f v", "m"),
            *SOFTMAX[1:],
        ],
        {"wh": W.astype(np.float16)},
    ),
    "weight dequantised in the graph": (
        [
            op("DequantizeLinear", "q ws", "wd", axis=0),
            op("Transpose", "wd", "v", perm=[1, 0]),
            op("MatMul", "f v", "m"),
            *SOFTMAX[1:],
        ],
        {"q": Q, "ws": SCALES},
    ),
    "softmax without its guard": (
        [*SOFTMAX[:2], op("Exp", "z", "e"), op("ReduceSum", "e last", "s"), op("Div", "e s", "p")],
        LAST,
    ),
    "softmax by a reciprocal": (
        [
            *SOFTMAX[:2],
            op("Exp", "z", "e"),
            op("ReduceSum", "e last", "s"),
            op("Reciprocal", "s", "r"),
            op("Mul", "r e", "p"),
        ],
        LAST,
    ),
    "softmax summed by a product": (
        [*SOFTMAX[:2], op("Exp", "z", "e"), op("MatMul", "e ones", "s"), op("Div", "e s", "p")],
        {"ones": np.ones((N, 1), np.float32)},
    ),
    "exp of a log-softmax": ([*SOFTMAX[:2], op("LogSoftmax", "z", "l"), op("Exp", "l", "p")], {}),
    "sigmoid of the negative": (
        [*SOFTMAX[:2], op("Neg", "z", "n"), op("Exp", "n", "e"), op("Add", "one e", "o"), op("Div", "one o", "p")],
        ONE,
    ),
    "sigmoid by tanh": (
        [*SOFTMAX[:2], op("Div", "z two", "h"), op("Tanh", "h", "t"), op("Add", "t one", "o"), op("Div", "o two", "p")],
        ONE | TWO,
    ),
    "bias by subtracting its negative": (
        [op("MatMul", "f w", "m"), op("Sub", "m nb", "z"), op("Softmax", "z", "p")],
        {"nb": -B},
    ),
    "temperature": ([*SOFTMAX[:2], op("Div", "z two", "y"), op("Softmax", "y", "p")], TWO),
    "labels squeezed, turned and back": (
        [
            *SOFTMAX[:2],
            op("Unsqueeze", "z zero", "u"),
            op("Transpose", "u", "t", perm=[2, 0, 1]),
            op("Softmax", "t", "s", axis=0),
            op("Transpose", "s", "v", perm=[1, 2, 0]),
            op("Squeeze", "v zero", "p"),
        ],
        {"zero": np.array([0])},
    ),
    "padded labels split off": (
        [op("MatMul", "f wide", "m"), op("Split", "m sizes", "z rest", axis=1), op("Softmax", "z", "p")],
        {"wide": np.concatenate([W, np.ones((3, D), np.float32)]).T, "sizes": np.array([N, 3])},
    ),
    "padded labels sliced off the front": (
        [op("MatMul", "f wide", "m"), op("Slice", "m from to axis", "z"), op("Softmax", "z", "p")],
        {"wide": np.concatenate([np.ones((3, D), np.float32), W]).T, "from": np.array([3]), "to": np.array([N + 3])}
        | {"axis": np.array([1])},
    ),
    "a convolution over one position": (
        [
            op("Unsqueeze", "f behind", "f4"),
            op("Conv", "f4 kernel b", "c"),
            op("GlobalAveragePool", "c", "g"),
            op("Flatten", "g", "z"),
            op("Softmax", "z", "p"),
        ],
        {"kernel": W[:, :, None, None], "behind": np.array([2, 3])},
    ),
    "argmax beside the probabilities": ([*SOFTMAX, op("ArgMax", "p", "best", axis=1)], {}),
    "names of the best beside the probabilities": (
        [*SOFTMAX, op("ArgMax", "p", "i", axis=1, keepdims=0), op("Gather", "names i", "best")],
        {"names": np.array(list("abcdefg"), object)},
    ),
    "sigmoid after a clip without limits": ([*SOFTMAX[:2], op("Clip", "z", "y"), op("Sigmoid", "y", "p")], {}),
}


@pytest.mark.parametrize("way", HABITS)
def test_the_head_is_told_by_what_the_graph_does(way, tmp_path):
    nodes, more = HABITS[way]
    output = "best p" if "beside" in way else "p"
    head = check_agrees(save(tmp_path, model([RELU, *nodes], PLAIN | {"w0": W} | more, output=output)), features())
    assert head.shape == (N, D)
    assert head.link == ("sigmoid" if "sigmoid" in way else "softmax")
    assert "link" not in head.source.assumed
    if "weight" not in way and "temperature" not in way and "alpha" not in way:
        np.testing.assert_array_equal(head.W, W)
    if head.bias is not None and "temperature" not in way and "alpha" not in way:
        np.testing.assert_array_equal(head.bias, B)


def test_a_temperature_is_kept_where_the_caller_names_the_weight(tmp_path):
    nodes = [RELU, *SOFTMAX[:2], op("Div", "z two", "p")]
    head = check_agrees(save(tmp_path, model(nodes, PLAIN | TWO)), features(), scores="logits", tensor="w", atol=1e-4)
    np.testing.assert_array_equal(head.bias, B / 2)


def test_features_beyond_those_that_are_run_on_count_too(tmp_path):
    rng = np.random.default_rng(5)
    wide, x = rng.standard_normal((200, N)).astype(np.float32), rng.standard_normal((9, 200)).astype(np.float32)
    for shape, constants in (((9, 200), {"w": wide}), ((9, 200), {"w0": wide.T, "one": np.array([1, 0])})):
        turn = [] if "w" in constants else [op("Transpose", "w0", "w", perm=[1, 0])]
        path = save(tmp_path, model([RELU, *turn, *SOFTMAX], constants | {"b": B}, shape=shape))
        np.testing.assert_array_equal(check_agrees(path, x).W, wide.T)


def test_sequences_of_three_axes_keep_their_head(tmp_path):
    head = check_agrees(save(tmp_path, model([RELU, *SOFTMAX], PLAIN, shape=(2, "length", D))), features(2, 5, D))
    assert not head.source.assumed


def test_a_convolution_before_a_pool_and_resize_is_a_head_of_each_position(tmp_path):
    nodes = [
        RELU,
        op("Conv", "f w b", "c"),
        op("Resize", "c  scales", "z", mode="linear"),
        op("Softmax", "z", "p", axis=1),
    ]
    constants = {"w": W[:, :, None, None], "b": B, "scales": np.array([1, 1, 2, 2], np.float32)}
    head = gonio.load(save(tmp_path, model(nodes, constants, shape=(1, D, "h", "w"))))
    np.testing.assert_array_equal(head.W, W)
    assert not head.source.assumed


def test_a_link_that_depends_on_an_unknown_rank_is_assumed(tmp_path):
    nodes = [op("Scaler", "x", "f", domain="somebody"), *SOFTMAX[:2], op("Softmax", "z", "p", axis=1)]
    head = gonio.load(save(tmp_path, model(nodes, PLAIN)))
    assert "link" in head.source.assumed
    assert isinstance(head.inputs, AllInputs)


NOT_HEADS = {
    "scores squared": [op("Mul", "z z", "y"), op("Softmax", "y", "p")],
    "a sharper softmax": [op("Softmax", "z", "y"), op("Mul", "y y", "p")],
    "clipped scores": [op("Clip", "z nil two", "y"), op("Softmax", "y", "p")],
    "best of all positions": [op("ReduceMax", "z", "y", axes=[0]), op("Sigmoid", "y", "p")],
    "a residual": [op("Add", "z x7", "y"), op("Softmax", "y", "p")],
}


@pytest.mark.parametrize("way", NOT_HEADS)
def test_what_only_looks_like_a_head_is_refused(way, tmp_path):
    nodes = [RELU, op("Slice", "x nought seven last", "x7"), *SOFTMAX[:2], *NOT_HEADS[way]]
    constants = PLAIN | TWO | LAST | {"nil": np.float32(0), "nought": np.array([0]), "seven": np.array([N])}
    refuse(save(tmp_path, model(nodes, constants)))


def test_an_operator_of_another_domain_is_not_taken_for_the_standard_one(tmp_path):
    path = save(tmp_path, model([RELU, *SOFTMAX[:2], op("Softmax", "z", "p", domain="somebody")], PLAIN))
    with pytest.raises(LoadError, match="somebody::Softmax"):
        gonio.load(path)


# -- hostile files ----------------------------------------------------------------------------------------------------


def loop():
    body = helper.make_graph(
        [op("Identity", "go", "on"), op("Identity", "v", "v2")],
        "body",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in
         (("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("v", TensorProto.FLOAT, None))],
        [helper.make_empty_tensor_value_info("on"), helper.make_empty_tensor_value_info("v2")],
    )  # fmt: skip
    return helper.make_node("Loop", ["many", "yes", "z"], ["p"], body=body)


def test_a_loop_after_the_scores_is_refused_by_name_and_never_run(tmp_path):
    constants = PLAIN | {"many": np.array(1 << 62), "yes": np.array(True)}
    with pytest.raises(LoadError, match="comes from a Loop"):
        gonio.load(save(tmp_path, model([RELU, *SOFTMAX[:2], loop()], constants)))


HUGE = {
    "Expand": [op("Expand", "z huge", "y"), op("ReduceMean", "y", "p", axes=[0])],
    "ConstantOfShape": [
        op("ConstantOfShape", "huge", "y"),
        op("ReduceMean", "y", "k", axes=[0]),
        op("Add", "z k", "p"),
    ],
    "Tile": [op("Tile", "z huge2", "y"), op("ReduceMean", "y", "p", axes=[0])],
}


@pytest.mark.parametrize("way", HUGE)
def test_a_tensor_that_explodes_is_refused_in_one_sentence(way, tmp_path):
    constants = PLAIN | {"huge": np.array([1 << 34, 1, N]), "huge2": np.array([1 << 34, 1])}
    path = save(tmp_path, model([RELU, *SOFTMAX[:2], *HUGE[way]], constants))
    began = time.monotonic()
    refuse(path)
    assert time.monotonic() - began < 10
    with pytest.raises(LoadError, match="GB"):
        gonio.load(path)


def test_steps_that_take_for_ever_are_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "SECONDS", 1)
    nodes = [op("Expand", "one side", "a0")] + [op("MatMul", f"a{i} a{i}", f"a{i + 1}") for i in range(200)]
    nodes += [op("ReduceMean", "a200", "k", keepdims=0), op("Add", "z k", "p")]
    constants = PLAIN | {"one": np.full((1, 1), 1e-3, np.float32), "side": np.array([1000, 1000])}
    path = save(tmp_path, model([RELU, *SOFTMAX[:2], *nodes], constants))
    began = time.monotonic()
    with pytest.raises(LoadError, match="more than 1 seconds"):
        gonio.load(path)
    assert time.monotonic() - began < 10
    assert gonio.load(save(tmp_path, model([RELU, *SOFTMAX], PLAIN))).shape == (N, D)  # and the next file is read


def test_all_runs_of_a_file_together_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(cut, "MOST_SECONDS", -1)
    with pytest.raises(LoadError, match="seconds in all"):
        gonio.load(save(tmp_path, model([RELU, *SOFTMAX], PLAIN)))


# -- what feeds the head ----------------------------------------------------------------------------------------------

GELU_BY_TANH = [
    op("Mul", "x x", "x2"),
    op("Mul", "x2 x", "x3"),
    op("Mul", "x3 k", "kx3"),
    op("Add", "x kx3", "i"),
    op("Mul", "i r", "ri"),
    op("Tanh", "ri", "t"),
    op("Add", "t one", "g"),
    op("Mul", "x g", "xg"),
    op("Div", "xg two", "f"),
]
UNIT = [op("ReduceL2", "x", "norm", axes=[-1]), op("Div", "x norm", "f")]


def test_what_no_proof_bounds_is_measured_and_said_to_be_no_proof(tmp_path):
    numbers = ONE | TWO | {"k": np.float32(0.044715), "r": np.float32(np.sqrt(2 / np.pi))}
    for steps, said in ((GELU_BY_TANH, "from -0.17 to "), (UNIT, "all of length 1")):
        head = check_agrees(save(tmp_path, model([*steps, *SOFTMAX], PLAIN | numbers)), features())
        assert isinstance(head.inputs, AllInputs)
        assert "inputs" in head.source.assumed
        assert "measured on random inputs, which proves nothing" in head.source.decided["inputs"]
        assert said in head.source.decided["inputs"]
