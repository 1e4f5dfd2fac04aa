"""The output head of an ONNX model, told by what the graph does and not by how it is spelled.

From the outputs back to the nearest products with a constant; for each, the steps after it are cut out and run on
random features, in a process of their own. The head is the product whose  W f + b,  under softmax, log-softmax or
sigmoid, or as it is, gives the outputs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gonio.core import checks
from gonio.core.row_table import RowTable
from gonio.files.read.head_draft import Draft
from gonio.files.read.onnx.cut import ALLOWED, piece
from gonio.files.read.onnx.examine import ExaminedHead, examine, rows_of
from gonio.files.read.onnx.file import read
from gonio.files.read.onnx.graph import MOST_STEPS, Graph, shaped
from gonio.files.read.onnx.inputs import fed_by
from gonio.files.read.onnx.labels import labels_of
from gonio.files.read.onnx.measure import measured
from gonio.files.read.onnx.product import PRODUCTS, NotAHead, Product, product_at

MOST_PRODUCTS = 8  # that are tried before an output is given up


@np.errstate(over="ignore", invalid="ignore")  # numbers out of range are refused by name when the rows are surveyed
def draft(path: Path, tensor: str | None) -> Draft:
    """Read the output head of an ONNX model.

    Parameters
    ----------
    path : the .onnx file; external data must lie in its folder
    tensor : the weight's name (an initializer, or the output of a Constant node), where the guess is wrong
    """
    graph = read(Path(path))
    found = _search(graph) if tensor is None else _named(graph, tensor)
    if found is None:
        return _table(graph, str(tensor))
    p, weight, s = found.product, found.weight, found.scores
    rows = rows_of(weight, s.factor, s.span)
    n, dim = rows.shape
    kind = weight.array.dtype
    half = kind if checks.is_float(kind) and kind.itemsize == 2 else None
    inputs, why, guess = fed_by(graph, p.x, axis=p.axis, width=dim, half=half, rounding=p.rounding)
    bias = s.bias if found.bias or s.bias.any() else None
    if bias is not None and (bias == bias.astype(np.float32)).all():
        bias = bias.astype(np.float32)
    out = Draft(str(path), "onnx", rows, bias, found.seen.link or "softmax", inputs=inputs, softcap=s.softcap)
    way = f"{weight.name} ({n} rows of {dim}, {kind.name}), which the {p.node.op} before the output multiplies"
    ran = f"run on random features, the graph gave W f + b within {max(s.error, 1e-12):.0e} of |W| |f| + |b|"
    out.decide("weight", "; ".join([f"{weight.name}, named by the caller" if tensor else way, ran, *found.notes]))
    added = f"{found.bias or 'what the graph gives where the features are zero'}, added after it"
    out.decide("bias", added if bias is not None else "nothing is added to the scores")
    out.decide("link", found.seen.said, assumed=not found.seen.link)
    out.decide("inputs", why + (measured(graph, p.x, p.axis, dim) if guess else ""), assumed=guess)
    out.labels, out.decided["labels"] = labels_of(graph, n, p.node)
    out.fed_by = (p.x, p.axis)
    out.tensors = {"W": weight.name} | ({"bias": found.bias} if bias is not None and found.bias else {})
    out.bytes_read = graph.bytes_read
    return out


def _search(graph: Graph) -> ExaminedHead:
    """The head of the first output that has one; an output after a softmax or sigmoid goes first."""
    found: list[ExaminedHead] = []
    reasons: list[str] = []
    for output in graph.outputs[:64]:
        candidates, why = _products_before(graph, output)
        for p in candidates[:MOST_PRODUCTS]:
            try:
                found.append(examine(graph, p, [output]))
                break
            except NotAHead as e:
                why = [str(e), *why]
        else:
            reasons.append(f"output {output!r} {why[0]}")
    if not found:
        raise graph.problem(
            f"no label head leads to its outputs ({', '.join(reasons)[:300]}); "
            f"a product of the features with a constant is needed, so name it with tensor=: {_candidates(graph)}."
        )
    linked = [f for f in found if f.seen.link] or found
    best = next((f for f in linked if len(f.scores.bias) > 1), linked[0])
    same = [f for f in linked if f.product.node is best.product.node]
    best = max(same, key=lambda f: len(f.notes))  # of a label and its probabilities, the one with more to tell
    others = dict.fromkeys(f.weight.name for f in found)
    others.pop(best.weight.name)
    best.notes += [f"other outputs come from {', '.join(list(others)[:3])} (name one with tensor=)"] if others else []
    return best


def _products_before(graph: Graph, output: str) -> tuple[list[Product], list[str]]:
    """The products with a constant nearest to the output, and why other paths lead to none."""
    found: list[Product] = []
    reasons: list[str] = []
    frontier, seen = [output], {output}
    while frontier and len(seen) < MOST_STEPS:
        after: list[str] = []
        for name in frontier:
            node = graph.producers.get(name)
            try:
                if node is None:
                    raise NotAHead(
                        "is a constant" if name in graph.tensors else "comes straight from the graph's input"
                    )
                p = product_at(graph, node)
                if p is None and node.op not in ALLOWED:
                    raise NotAHead(f"comes from a {node.op}")
                if p is None and node.op in PRODUCTS:
                    raise NotAHead(f"comes from a {node.op} of computed values")
                found += [p] if p else []
                after += [i for i in node.inputs if i and graph.constant(i) is None] if p is None else []
            except NotAHead as e:
                reasons.append(str(e))
        frontier = [i for i in dict.fromkeys(after) if i not in seen]
        seen.update(frontier)
    return found, [*reasons, "is the end of a long chain (or a cycle) without a product in it"]


def _named(graph: Graph, tensor: str) -> ExaminedHead | None:
    """The head whose weight is called `tensor`; None where it is a table that no product uses."""
    if tensor not in graph.tensors:
        raise graph.problem(f"there is no constant {tensor!r}; the tables are: {_candidates(graph)}.")
    for node in dict.fromkeys(graph.producers.values()):
        try:
            p = product_at(graph, node) if node.op in PRODUCTS else None
            if p is not None and p.weights[0].name == tensor:
                return examine(graph, p, _followers(graph, p), named=True)
        except NotAHead:
            continue
    return None


def _followers(graph: Graph, p: Product) -> list[str]:
    """The tensors that follow a product and need no other features."""
    out, frontier = list(p.node.outputs[:1]), list(p.node.outputs[:1])
    for _ in range(24):
        after = [n for name in frontier for n in graph.consumers.get(name, []) if n.op in ALLOWED - set(PRODUCTS)]
        frontier = []
        for name in dict.fromkeys(n.outputs[0] for n in after if n.outputs[0] not in out):
            try:
                piece(graph, p.x, [name])
                frontier.append(name)
            except NotAHead:
                continue
        out += frontier
    return out[:64]


def _table(graph: Graph, tensor: str) -> Draft:
    """A table that no product uses, an embedding: taken as it is stored."""
    c = graph.constant(tensor)
    if c is None or c.array.ndim != 2 or not checks.is_float(c.array.dtype):
        shape, kind = graph.describe(tensor)
        raise graph.problem(
            f"{tensor!r} is {shaped(shape)} {kind} and no product of the graph uses it as rows of labels; "
            f"the tables are: {_candidates(graph)}."
        )
    out = Draft(str(graph.path), "onnx", RowTable(c.array), bytes_read=graph.bytes_read, tensors={"W": tensor})
    out.decide("weight", f"{tensor}, named by the caller; no product uses it, so its rows are taken as stored")
    out.decide("bias", "no product uses the table, so none")
    out.labels, out.decided["labels"] = labels_of(graph, c.array.shape[0], None)
    return out


def _candidates(graph: Graph, most: int = 8) -> str:
    described = [(name, *graph.describe(name)) for name in graph.tensors]
    shown = [
        f"{name} ({shaped(shape)} {kind})"
        for name, shape, kind in described
        if len(shape) == 2 and min(shape) > 0 and ("float" in kind or kind in ("int8", "uint8"))
    ]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) + more) or "but no constant of the file has two axes"
