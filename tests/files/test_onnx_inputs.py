"""What feeds the head of an ONNX model: activations, pools, recurrent layers and norms bound its inputs."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Nonnegative
from tests.files.onnx_made import (
    GAIN,
    NORM_STEPS,
    PLAIN,
    RNG,
    SHIFT,
    SOFTMAX,
    B,
    D,
    N,
    W,
    check_agrees,
    features,
    helper,
    model,
    op,
    run,
    save,
)

THREE = {"three": np.float32(3), "nil": np.float32(0), "six": np.float32(6), "sixth": np.float32(1 / 6)}
LN = op("LayerNormalization", "x gain shift", "l")
SIX, LOW = Box(-0.375, np.inf), Box(-0.2785, np.inf)
NUMBERS = THREE | {"one": np.float32(1), "half": np.float32(0.5), "r2": np.float32(np.sqrt(2)), "k": np.float32(1.702)}
FEEDS = {
    "Relu": ([op("Relu", "x", "f")], Nonnegative()),
    "max with zero": ([op("Max", "x nil", "f")], Nonnegative()),
    "Softplus": ([op("Softplus", "x", "f")], Nonnegative()),
    "Clip": ([op("Clip", "x nil six", "f")], Box(0, 6)),
    "Relu clipped from above": ([op("Relu", "x", "r"), op("Min", "r six", "f")], Box(0, 6)),
    "Clip from below": ([op("Clip", "x nil", "f")], Nonnegative()),
    "Tanh": ([op("Tanh", "x", "f")], Box(-1, 1)),
    "Sigmoid": ([op("Sigmoid", "x", "f")], Box(0, 1)),
    "HardSigmoid": ([op("HardSigmoid", "x", "f")], Box(0, 1)),
    "Softmax": ([op("Softmax", "x", "f")], Box(0, 1)),
    "Elu": ([op("Elu", "x", "f", alpha=0.5)], Box(-0.5, np.inf)),
    "HardSwish": ([op("HardSwish", "x", "f")], SIX),
    "x HardSigmoid(x)": ([op("HardSigmoid", "x", "h", alpha=1 / 6), op("Mul", "x h", "f")], SIX),
    "x Clip(x + 3) / 6": (
        [op("Add", "x three", "a"), op("Clip", "a nil six", "c"), op("Mul", "x c", "d"), op("Div", "d six", "f")],
        SIX,
    ),
    "x (Clip(3 + x) / 6)": (
        [op("Add", "three x", "a"), op("Clip", "a nil six", "c"), op("Mul", "c sixth", "d"), op("Mul", "d x", "f")],
        SIX,
    ),
    "swish": ([op("Sigmoid", "x", "s"), op("Mul", "x s", "f")], LOW),
    "swish turned": ([op("Sigmoid", "x", "s"), op("Mul", "s x", "f")], LOW),
    "swish of paddle": ([op("Mul", "x one", "y"), op("Sigmoid", "y", "s"), op("Mul", "x s", "f")], LOW),
    "swish of a sum": (
        [op("Add", "x three", "y"), op("Sigmoid", "y", "s"), op("Mul", "y s", "f")],
        LOW,
    ),
    "Gelu in steps": (
        [op("Div", "x r2", "a"), op("Erf", "a", "e"), op("Add", "e one", "g"),
         op("Mul", "x g", "h"), op("Mul", "h half", "f")],
        Box(-0.1701, np.inf),
    ),
    "Gelu in other steps": (
        [op("Div", "x r2", "a"), op("Erf", "a", "e"), op("Add", "one e", "g"),
         op("Mul", "x half", "h"), op("Mul", "h g", "f")],
        Box(-0.1701, np.inf),
    ),
    "Relu dropped out": ([op("Relu", "x", "r"), op("Dropout", "r", "f")], Nonnegative()),
    "branches": (
        [op("Relu", "x", "r"), op("Tanh", "x", "t"), op("Split", "r", "r1 r2_", axis=1),
         op("Split", "t", "t1 t2", axis=1),
         op("Concat", "r1 t2", "f", axis=1)],
        Box(-1, np.inf),
    ),
    "two Relus added": ([op("Relu", "x", "r"), op("Add", "r r", "f")], Nonnegative()),
    "a gate on HardSwish": ([op("HardSwish", "x", "h"), op("Sigmoid", "x", "s"), op("Mul", "h s", "f")], SIX),
    "LeakyRelu": ([op("LeakyRelu", "x", "f")], AllInputs()),
    "nothing": ([op("Identity", "x", "f")], AllInputs()),
}  # fmt: skip


@pytest.mark.parametrize("way", FEEDS)
def test_the_activation_before_the_head_bounds_its_inputs(way, tmp_path):
    nodes, expected = FEEDS[way]
    path = save(tmp_path, model([*nodes, *SOFTMAX], PLAIN | NUMBERS))
    x = np.concatenate([features(), np.linspace(-4, 4, 41, dtype=np.float32)[:, None].repeat(D, 1)])
    head = check_agrees(path, x)
    assert head.inputs == expected
    assert head.source.decided["inputs"].startswith("fed by ")
    assert ("inputs" in head.source.assumed) is isinstance(expected, AllInputs)


def test_quick_gelu_has_the_bound_of_its_slope(tmp_path):
    nodes = [op("Mul", "x k", "y"), op("Sigmoid", "y", "s"), op("Mul", "x s", "f"), *SOFTMAX]
    head = check_agrees(save(tmp_path, model(nodes, PLAIN | NUMBERS)), features())
    assert float(head.inputs.low) == pytest.approx(-0.2785 / 1.702)


@pytest.mark.parametrize("name", ["Gelu", "Mish"])
def test_newer_activations_are_known(name, tmp_path):
    path = save(tmp_path, model([op(name, "x", "f"), *SOFTMAX], PLAIN, opset=20))
    assert isinstance(check_agrees(path, features()).inputs, Box)


POOLS = {
    "MaxPool": ([op("MaxPool", "r", "f", kernel_shape=[2, 2])], Box(-1, 1)),
    "AveragePool": ([op("AveragePool", "r", "f", kernel_shape=[2, 2])], Box(-1, 1)),
    "GlobalAveragePool": ([op("GlobalAveragePool", "r", "f")], Box(-1, 1)),
    "padding": ([op("Pad", "r pads two", "f")], Box(-1, 2)),
}


@pytest.mark.parametrize("way", POOLS)
def test_pooling_keeps_bounds_and_padding_widens_them(way, tmp_path):
    nodes, expected = POOLS[way]
    nodes = [op("Tanh", "x", "r"), *nodes, op("Conv", "f w b", "z"), op("Softmax", "z", "p", axis=1)]
    constants = {"w": W[:, :, None, None], "b": B, "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "two": np.float32(2)}
    head = check_agrees(save(tmp_path, model(nodes, constants, shape=(2, D, 4, 4))), features(2, D, 4, 4), axis=1)
    assert head.inputs == expected


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("start", ["none", "zero", "given"])
def test_recurrent_layers_give_out_numbers_between_minus_one_and_one(kind, start, tmp_path):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    constants = {"rw": RNG.standard_normal((1, gates * D, D)).astype(np.float32)} | PLAIN
    constants |= {"rr": RNG.standard_normal((1, gates * D, D)).astype(np.float32), "axis": np.array([1])}
    constants["h0"] = np.full((1, 2, D), 0.0 if start == "zero" else 1.5, np.float32)
    inputs = ["x", "rw", "rr"] + ([] if start == "none" else ["", "", "h0"])
    nodes = [helper.make_node(kind, inputs, ["y"], hidden_size=D), op("Squeeze", "y axis", "f"), *SOFTMAX]
    path = save(tmp_path, model(nodes, constants, shape=(5, 2, D)))
    # onnxruntime's GRU passes 1 by 5e-7 in its rounding, hence the slack
    head = check_agrees(path, features(5, 2, D), slack=1e-6)
    assert head.inputs == (AllInputs() if kind == "GRU" and start == "given" else Box(-1, 1))


RMS_STEPS = [
    op("Mul", "x x", "x2"),
    op("ReduceMean", "x2", "v", axes=[-1]),
    op("Add", "v eps", "ve"),
    op("Sqrt", "ve", "sd"),
    op("Reciprocal", "sd", "i"),
    op("Mul", "x i", "n"),
    op("Mul", "gain n", "f"),
]
LAYER = op("LayerNormalization", "x gain shift", "f", axis=-1)
NORMS = {
    "op": ([LAYER], AfterLayerNorm(GAIN, SHIFT)),
    "op by number": ([op("LayerNormalization", "x gain shift", "f", axis=2)], AfterLayerNorm(GAIN, SHIFT)),
    "in steps": ([*NORM_STEPS, op("Add", "g shift", "f")], AfterLayerNorm(GAIN, SHIFT)),
    "in steps without shift": ([*NORM_STEPS, op("Identity", "g", "f")], AfterLayerNorm(GAIN, np.zeros(D))),
    "rms in steps": (RMS_STEPS, AfterRMSNorm(GAIN)),
    "rms op": ([op("SimplifiedLayerNormalization", "x gain", "f", axis=-1)], AfterRMSNorm(GAIN)),
    "last position": ([LN, op("Gather", "l last", "f", axis=1)],
                      AfterLayerNorm(GAIN, SHIFT)),
    "mean of positions": ([LN, op("ReduceMean", "l", "f", axes=[1], keepdims=0)],
                          None),
    "rows": ([LN, op("Reshape", "l rows", "f")], AfterLayerNorm(GAIN, SHIFT)),
    "over several axes": ([op("LayerNormalization", "x gain2 shift2", "f", axis=1)], AllInputs()),
    "then moved": ([LN, op("Transpose", "l", "f", perm=[0, 2, 1])], AllInputs()),
    "then mixed": ([LN, op("Reshape", "l mixed", "f")], AllInputs()),
}  # fmt: skip


@pytest.mark.parametrize("way", NORMS)
def test_a_norm_over_the_features_is_recognised_and_no_other(way, tmp_path):
    nodes, expected = NORMS[way]
    constants = PLAIN | {
        "gain": GAIN,
        "shift": SHIFT,
        "two": np.float32(2),
        "eps": np.float32(1e-5),
        "last": np.array(-1),
    }
    constants |= {"gain2": np.tile(GAIN, (D, 1)), "shift2": np.tile(SHIFT, (D, 1))}
    constants |= {"rows": np.array([-1, D]), "mixed": np.array([2, -1, D // 2, 2])}
    last = SOFTMAX
    if way == "then mixed":
        last = [op("MatMul", "f w2", "z"), op("Softmax", "z", "p", axis=-1)]
        constants["w2"] = W.T[:2]
    head = check_agrees(save(tmp_path, model([*nodes, *last], constants, shape=(2, D, D))), features(2, D, D))
    if expected is None:
        assert isinstance(head.inputs, AfterLayerNorm)
    else:
        assert head.inputs == expected


def test_sixteen_bit_activations_may_pass_a_bound_by_their_rounding(tmp_path):
    nodes = [op("Cast", "x", "h", to=10), op("Sigmoid", "h", "s"), op("Mul", "h s", "f"), *SOFTMAX]
    path = save(tmp_path, model(nodes, {"w": W.T.astype(np.float16), "b": B.astype(np.float16)}))
    head = gonio.load(path)
    (F,) = run(path, np.linspace(-1.3, -1.25, 400 * D, dtype=np.float32).reshape(400, D), ["f"])
    assert head.inputs.contains(F.astype(np.float32)).all()
    assert -0.28 < float(head.inputs.low) <= -0.2785


@pytest.mark.filterwarnings("ignore")  # the exporter warns of its own age
@pytest.mark.parametrize("kind", ["LayerNorm", "GELU", "SiLU", "Hardswish", "LSTM", "GRU"])
def test_what_torch_exports_is_read(kind, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed; make test installs it")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layer = getattr(torch.nn, kind)
            self.recurrent = kind in ("LSTM", "GRU")
            self.before = (
                layer(D, D, batch_first=True) if self.recurrent else layer(D) if kind == "LayerNorm" else layer()
            )
            self.head = torch.nn.Linear(D, N)

        def forward(self, x):
            f = self.before(x)
            return torch.softmax(self.head(f[0] if self.recurrent else f), -1), f[0] if self.recurrent else f

    torch.manual_seed(0)
    net, x = Net().eval(), torch.from_numpy(features(2, 5, D))
    path = tmp_path / "net.onnx"
    try:
        torch.onnx.export(
            net, (x,), str(path), dynamo=False, opset_version=14, input_names=["x"], output_names=["p", "f"]
        )
    except ImportError as e:
        pytest.skip(f"this torch exports only with more packages: {e}")
    head = check_agrees(path, x.numpy(), slack=1e-6 if kind == "GRU" else 0)
    np.testing.assert_array_equal(head.W, net.head.weight.detach().numpy())
    bounds = {"GELU": Box(-0.1701, np.inf), "SiLU": LOW, "Hardswish": SIX, "LSTM": Box(-1, 1), "GRU": Box(-1, 1)}
    assert isinstance(head.inputs, AfterLayerNorm) if kind == "LayerNorm" else head.inputs == bounds[kind]
