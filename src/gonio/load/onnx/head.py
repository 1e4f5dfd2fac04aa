"""The output head of an ONNX model, told by what the graph does and not by how it is spelled.

From the outputs back to the nearest products with a constant; for each, the steps after it are cut out and run on
random features, in a process of their own. The head is the product whose  W f + b,  under softmax, log-softmax or
sigmoid, or as it is, gives the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gonio import check
from gonio.errors import LoadError
from gonio.load.draft import Draft, read_only
from gonio.load.onnx.cut import ALLOWED, Piece, piece, shapes, starts
from gonio.load.onnx.file import read
from gonio.load.onnx.graph import MOST_STEPS, Constant, Graph, Node, shaped
from gonio.load.onnx.inputs import fed_by
from gonio.load.onnx.labels import labels_of
from gonio.load.onnx.match import EQUAL, Scores, Seen, link_of, products, random_features, scores_of
from gonio.load.onnx.measure import measured
from gonio.load.onnx.product import PRODUCTS, NotAHead, Product, product_at
from gonio.load.onnx.sandbox import CannotRun
from gonio.rows import Affine8, Rows, Scaled

MOST_PRODUCTS = 8  # that are tried before an output is given up
MOST_FEATURES = 64  # that are not zero when a piece is run
MANY_LABELS = 20_000  # from here on, with few positions


@dataclass
class Found:
    """A product, the scores it leads to and what the output is of them."""

    product: Product
    weight: Constant
    scores: Scores
    seen: Seen
    bias: str
    notes: list[str] = field(default_factory=list)


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
    half = kind if check.is_float(kind) and kind.itemsize == 2 else None
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
    out.tensors = {"W": weight.name} | ({"bias": found.bias} if bias is not None and found.bias else {})
    out.bytes_read = graph.bytes_read
    return out


def _search(graph: Graph) -> Found:
    """The head of the first output that has one; an output after a softmax or sigmoid goes first."""
    found: list[Found] = []
    reasons: list[str] = []
    for output in graph.outputs[:64]:
        candidates, why = _products_before(graph, output)
        for p in candidates[:MOST_PRODUCTS]:
            try:
                found.append(_examine(graph, p, [output]))
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
                    raise NotAHead("is a constant" if name in graph.tensors else "comes straight from the graph's input")
                p = product_at(graph, node)
                if p is None and node.op not in ALLOWED:
                    raise NotAHead(f"comes from a {node.op}")
                found += [p] if p else []
                after += [i for i in node.inputs if i and graph.constant(i) is None] if p is None else []
            except NotAHead as e:
                reasons.append(str(e))
        frontier = [i for i in dict.fromkeys(after) if i not in seen]
        seen.update(frontier)
    return found, [*reasons, "is the end of a long chain (or a cycle) without a product in it"]


def _examine(graph: Graph, p: Product, targets: list[str], *, named: bool = False) -> Found:
    """Run what follows the product on random features, and say what it is; NotAHead where it is no head."""
    rows = [rows_of(w, 1.0, slice(None)) for w in p.weights]
    width = rows[0].shape[1]
    rng = np.random.default_rng(0)
    picked = np.sort(rng.permutation(width)[:MOST_FEATURES])
    norms = rows[0].survey().norms  # complains of numbers that are none
    probe = np.isin(np.arange(width), picked) * rng.standard_normal((1, width))
    size = 2.0 / (products(rows[0], probe).std() or norms.max() or 1.0)
    free = (2, 3, 2) if len(norms) < MANY_LABELS else (1, 2)
    why = "cannot be run on random features"
    for start, axis in starts(graph, p, width):
        heads: list[Found] = []
        try:
            part = piece(graph, start, [*targets, p.x])
            part.thin(p, picked)
            for tries in shapes(graph, start, axis, width, p.rank if start == p.x else None, free):
                for shape in tries:
                    try:
                        values = part.run(graph, random_features(rng, shape, axis, size, picked))
                        heads.append(_told(graph, p, part, values, rows, targets, named))
                        break
                    except (NotAHead, CannotRun) as e:
                        if isinstance(e, CannotRun) and e.final:
                            raise
                        why = str(e) if isinstance(e, NotAHead) else f"cannot be run on random features ({e})"
                        if "splits" not in why and isinstance(e, NotAHead):
                            break  # with one position less would be seen
        except NotAHead as e:
            why = str(e)
        except CannotRun as e:
            raise graph.problem(
                f"what follows the product with {p.weights[0].name!r} was run on random features, and {e}; "
                f"if the file is to be trusted, save that table with np.save and load it."
            ) from None
        if len({h.seen.link for h in heads}) > 1:
            said = "it depends on how many axes the features have, which the file does not tell, so softmax is assumed"
            heads[0].seen = Seen(None, said)
        if heads:
            return heads[0]
    raise NotAHead(why)


def _told(
    graph: Graph, p: Product, part: Piece, values: dict[str, np.ndarray], rows: list[Rows], targets: list[str], named: bool
) -> Found:
    """What the numbers of the runs say."""
    F = np.moveaxis(values[p.x], p.axis + 1 if p.axis >= 0 else p.axis, -1)[EQUAL]
    F = F.reshape(len(F), -1, F.shape[-1])[:, 0]
    after, inside = list[Node](), set(p.node.outputs)
    for node in part.nodes:
        if node is p.node or inside & set(node.inputs):
            after.append(node)
            inside.update(node.outputs)
    on_the_way = [o + more for node in after for o in node.outputs for more in ("/product", "/sum", "")]
    ends = [t for t in (*targets, *(n.input(0) for n in after if n.op in ("ArgMax", "TopK"))) if t in values]
    found: list[Found] = []
    why = "is no softmax, log-softmax or sigmoid of W f + b, nor W f + b itself"
    for weight, r in zip(p.weights, rows, strict=True):
        S = products(r, F)
        size = np.linalg.norm(F, axis=1) * r.survey().norms.max()
        scores: list[Scores] = []
        for name in on_the_way:
            fit = scores_of(name, values[name], S, size, scores[-1] if scores else None) if name in values else None
            scores += [fit] if fit else []
        for s in scores[::-1]:
            seen = [x for x in (link_of(t, values[t], s) for t in ends) if x]
            seen = [x for x in seen if x.link] + seen + [Seen(None, "no output of the graph was looked at")] * named
            found += [Found(p, weight, s, x, _bias_name(graph, p, after, s)) for x in seen[:1]]
    if not found:
        n, shape = rows[0].shape[0], values[targets[0]].shape[1:] if targets[0] in values else (rows[0].shape[0],)
        raise NotAHead(why if n in shape or len(shape) < 2 else f"splits the {n} scores into the shape {shaped(shape)}")
    # The last tensor that is W f + b, unless an earlier one tells the link; of several scales, the one that is all.
    best = max(found, key=lambda f: (bool(f.seen.link), f.scores.factor == 1))
    s, seen = best.scores, best.seen
    if not seen.link and "assumed" not in seen.said:
        best.seen = Seen(None, f"{seen.said}, so softmax is assumed")
    if s.factor != 1:
        best.notes.append(f"scores are multiplied by {s.factor:g}")
    if s.span != slice(None):
        best.notes.append(f"only rows {s.span.start} to {s.span.stop - 1} reach the output")
    if any(n.op == "QuantizeLinear" or n.op.startswith("QLinear") or len(n.inputs) > 8 for n in after):
        best.notes.append("the model rounds the scores to 8 bits")
    best.notes += [seen.note] if seen.note else []
    return best


def _bias_name(graph: Graph, p: Product, after: list[Node], s: Scores) -> str:
    """The constants that are added between the product and the scores."""
    names = [p.bias] if p.bias else []
    for node in after:
        if node.op in ("Add", "Sub"):
            names += [i for i in node.inputs if (c := graph.constant(i)) is not None and c.array.dtype.kind == "f"]
        if s.name in node.outputs:
            break
    known = [(graph.constant(i), i) for i in names]
    return " + ".join(dict.fromkeys(c.name if c else i for c, i in known))


def rows_of(w: Constant, factor: float, span: slice) -> Rows:
    """The rows as stored, with what must be done to them when they are read."""
    stored = w.array[span]
    if w.scale is not None and w.zero is not None:
        if w.axis in (None, 0):
            scale, zero = (v if v.ndim == 0 else v[span] for v in (w.scale, w.zero))
            return Rows(read_only(stored), unpack=Affine8(scale * np.float32(factor), zero), kind=w.array.dtype.name)
        stored = w.dense()[span]  # scales along the features: no row has one scale
    elif not check.is_float(stored.dtype):
        raise LoadError(
            f"load: the weight {w.name!r} has type {stored.dtype}; floats, or integers with a scale, will do."
        )
    stored = read_only(stored)
    return Rows(stored) if factor == 1 else Rows(stored, unpack=Scaled(factor), kind=stored.dtype.name)


def _named(graph: Graph, tensor: str) -> Found | None:
    """The head whose weight is called `tensor`; None where it is a table that no product uses."""
    if tensor not in graph.tensors:
        raise graph.problem(f"there is no constant {tensor!r}; the tables are: {_candidates(graph)}.")
    for node in dict.fromkeys(graph.producers.values()):
        try:
            p = product_at(graph, node) if node.op in PRODUCTS else None
            if p is not None and p.weights[0].name == tensor:
                return _examine(graph, p, _followers(graph, p), named=True)
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
    if c is None or c.array.ndim != 2 or not check.is_float(c.array.dtype):
        shape, kind = graph.describe(tensor)
        raise graph.problem(
            f"{tensor!r} is {shaped(shape)} {kind} and no product of the graph uses it as rows of labels; "
            f"the tables are: {_candidates(graph)}."
        )
    out = Draft(str(graph.path), "onnx", Rows(c.array), bytes_read=graph.bytes_read, tensors={"W": tensor})
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
