"""An ONNX file taken apart: names and attributes leave the protobuf once, so that a damaged file complains here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.archive import read_only
from gonio.core.errors import LoadError, missing_extra
from gonio.files.read.onnx.graph import Graph, Node
from gonio.files.read.onnx.tensors import as_text

DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")  # operators of another domain are never taken for these


def read(path: Path) -> Graph:
    """The graph of a model file."""
    try:
        import onnx
    except ImportError:
        raise missing_extra("load", "onnx", "onnx") from None
    graph = Graph(path)
    if not path.is_file():  # a pipe would be waited for
        raise graph.problem("this is not a file; the path of an ONNX model is needed.")
    try:
        model = onnx.load_model(path, format="protobuf", load_external_data=False)
        _fill(graph, model)
        graph.bytes_read = path.stat().st_size
    except OSError as e:
        raise graph.problem(f"the file cannot be read ({e.strerror or e}).") from None
    except LoadError:
        raise
    except Exception as e:  # protobuf raises what it likes, and nothing of the file has been believed yet
        raise graph.problem(
            f"this is not a whole ONNX model ({type(e).__name__} while parsing); fetch the file again."
        ) from None
    if not graph.producers or not graph.outputs:
        raise graph.problem("there is no graph with outputs in it; an ONNX model is needed, so fetch the file again.")
    return graph


def _fill(graph: Graph, model: Any) -> None:
    g = model.graph
    graph.opset = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")], default=1)
    graph.metadata = {as_text(p.key): as_text(p.value) for p in model.metadata_props}
    graph.outputs = [as_text(o.name) for o in g.output]
    for v in (*g.input, *g.value_info, *g.output):
        if v.type.tensor_type.HasField("shape"):
            dims = v.type.tensor_type.shape.dim
            graph.shapes[as_text(v.name)] = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param for d in dims)
    graph.tensors = {as_text(t.name): t for t in g.initializer}
    for n in g.node:
        inputs, outputs = (tuple(map(as_text, names)) for names in (n.input, n.output))
        op = as_text(n.op_type) if n.domain in DOMAINS else f"{as_text(n.domain)}::{as_text(n.op_type)}"
        node = Node(op, inputs, outputs, {as_text(a.name): _value(a) for a in n.attribute}, n)
        if node.op == "Constant" and node.outputs:
            value = next((v for k, v in node.attributes.items() if k.startswith("value")), None)
            if isinstance(value, (int, float)) or (isinstance(value, list) and value):
                value = read_only(np.array(value, np.int64 if np.array(value).dtype.kind == "i" else np.float32))
            if value is not None and not isinstance(value, (str, list)):
                graph.tensors[node.outputs[0]] = value
            continue
        for name in node.outputs:
            if name:
                graph.producers.setdefault(name, node)
        for name in dict.fromkeys(node.inputs):
            if name:
                graph.consumers.setdefault(name, []).append(node)


def _value(a: Any) -> Any:
    """A plain value, a TensorProto, or None for what is of no use here (subgraphs, types)."""
    if a.type in (3, 8):
        texts = [v.decode("utf-8", "replace") for v in (a.strings if a.type == 8 else [a.s])]
        return texts if a.type == 8 else texts[0]
    field = {1: "f", 2: "i", 4: "t", 6: "floats", 7: "ints"}.get(a.type)
    value = getattr(a, field) if field else None
    return list(value or ()) if a.type in (6, 7) else value
