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
from gonio.load.onnx.product import PRODUCTS, NotAHead, Product, product_at
from gonio.load.onnx.sandbox import CannotRun
from gonio.rows import Affine8, Rows, Scaled

MOST_PRODUCTS = 8  # that are tried before an output is given up


@dataclass
class Found:
    """A product, the scores it leads to and what the outputs are of them."""

    product: Product
    weight: Constant
    scores: Scores
    seen: Seen
    bias_name: str
    notes: list[str] = field(default_factory=list)

    @property
    def n(self) -> int:
        """How many labels reach the output."""
        return self.scores.vectors.shape[1]


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
    bias = s.bias if found.bias_name or s.bias.any() else None
    if bias is not None and (bias == bias.astype(np.float32)).all():
        bias = bias.astype(np.float32)
    out = Draft(str(path), "onnx", rows, bias, found.seen.link or "softmax", inputs=inputs, softcap=s.softcap)
    way = f"{weight.name} ({n} rows of {dim}, {kind.name}), which the {p.node.op} before the output multiplies"
    ran = f"run on random features, the graph gives W f + b within {max(s.error, 1e-9):.0e} of |W| |f| + |b|"
    way = "; ".join([way if tensor is None else f"{weight.name}, named by the caller", ran, *found.notes])
    out.decide("weight", way)
    named = f"{found.bias_name or 'the scores of features that are zero'}, added after it"
    out.decide("bias", named if bias is not None else "nothing is added to the scores")
    out.decide("link", found.seen.note, assumed=not found.seen.link)
    out.decide("inputs", why, assumed=guess)
    out.labels, out.decided["labels"] = labels_of(graph, n, p.node)
    out.tensors = {"W": weight.name} | ({"bias": found.bias_name} if bias is not None and found.bias_name else {})
    out.bytes_read = graph.bytes_read
    return out


def _search(graph: Graph) -> Found:
    """The head of the first output that has one; an output after a softmax or sigmoid goes first."""
    reasons: list[str] = []
    leads: dict[int, tuple[Product, list[str]]] = {}
    for output in graph.outputs[:64]:
        candidates, why = _products_before(graph, output)
        reasons += [f"output {output!r} {w}" for w in why[:1] if not candidates]
        for p in candidates:
            leads.setdefault(id(p.node), (p, []))[1].append(output)
    found: list[Found] = []
    for p, outputs in list(leads.values())[:MOST_PRODUCTS]:
        for output in outputs:
            try:
                found.append(_examine(graph, p, [output]))
            except NotAHead as e:
                reasons.append(f"output {output!r} {e}")
    if not found:
        raise graph.problem(
            f"no label head leads to its outputs ({', '.join(dict.fromkeys(reasons))[:300]}); "
            f"a product of the features with a constant is needed, so name it with tensor=: {_candidates(graph)}."
        )
    linked = [f for f in found if f.seen.link] or found
    best = next((f for f in linked if f.n > 1), linked[0])
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
            if node is None:
                reasons += ["comes straight from the graph's input" if name not in graph.tensors else "is a constant"]
                continue
            try:
                p = product_at(graph, node)
            except NotAHead as e:
                reasons.append(str(e))
                continue
            if p is not None:
                found.append(p)
            elif node.op not in ALLOWED:
                reasons.append(f"comes from a {node.op}")
            elif node.op != "Shape":
                after += [i for i in node.inputs if i and graph.constant(i) is None]
        frontier = [i for i in dict.fromkeys(after) if i not in seen]
        seen.update(frontier)
    return found, reasons or ["is the end of a long chain (or a cycle) without a product in it"]


def _examine(graph: Graph, p: Product, targets: list[str], *, named: bool = False) -> Found:
    """Run what follows the product on random features, and say what it is; NotAHead where it is no head."""
    rows = [rows_of(w, 1.0, slice(None)) for w in p.weights]
    n, width = rows[0].shape
    norms = rows[0].survey().norms  # complains of numbers that are none
    rng = np.random.default_rng(0)
    probe = products(rows[0], rng.standard_normal((1, width))).std() or float(norms.max()) or 1.0
    why = ""
    for start, axis in starts(graph, p, width):
        try:
            part = piece(graph, start, [*targets, p.x])
        except NotAHead as e:
            why = why or str(e)
            continue
        results: list[Found | str] = []
        for tries in shapes(graph, start, axis, width, p.rank if start == p.x else None):
            for shape in tries:
                try:
                    feeds = random_features(rng, shape, axis, 2.0 / probe)
                    values = part.run(graph, feeds)
                except CannotRun as e:
                    if e.final:
                        raise graph.problem(
                            f"the steps after the product with {p.weights[0].name!r} were run, and {e}; if the file "
                            f"can be trusted, save that table with np.save and load it."
                        ) from None
                    why = why or f"cannot be run on random features ({e})"
                    continue
                results.append(_told(graph, p, part, values, rows, targets, named))
                if isinstance(results[-1], Found):
                    break
        heads = [r for r in results if isinstance(r, Found)]
        if heads and len({h.seen.link for h in heads}) > 1:
            heads[0].seen = Seen(None, "the link depends on how many axes the features have, so softmax is assumed")
        if heads:
            return heads[0]
        why = next((r for r in results if isinstance(r, str)), why)
        if results:
            break
    raise NotAHead(why or "cannot be run on random features")


def _told(
    graph: Graph, p: Product, part: Piece, values: dict[str, np.ndarray], rows: list[Rows], targets: list[str], named: bool
) -> Found | str:
    """What the numbers of the runs say, or why they are no head's."""
    X = values[p.x]
    F = np.moveaxis(X, p.axis + 1 if p.axis >= 0 else p.axis, -1)[EQUAL]
    F = F.reshape(F.shape[0], -1, F.shape[-1])[:, 0]
    told = "is not W f + b of any tensor on the way"
    best: tuple[Constant, Scores, Seen] | None = None
    winners = [n.input(0) for n in part.nodes if n.op in ("ArgMax", "TopK")]
    for w, r in zip(p.weights, rows, strict=True):
        S = products(r, F)
        size = np.linalg.norm(F, axis=1) * r.survey().norms.max()
        scores: list[Scores] = []
        for name in _between(part, p, None if named else targets[0]):
            fit = scores_of(name, values[name], S, size, scores[-1] if scores else None) if name in values else None
            scores += [fit] if fit else []
        for s in scores[::-1]:  # the last tensor that is W f + b, unless an earlier one tells the link
            seen = next((x for t in [*targets, *winners] if t in values and (x := link_of(t, values[t], s))), None)
            if seen is None and named:
                seen = Seen(None, "no output was reached")
            rank = (bool(seen and seen.link), s.factor == 1)
            if seen is not None and (best is None or rank > (bool(best[2].link), best[1].factor == 1)):
                best = w, s, seen
            told = "is no softmax, log-softmax or sigmoid of the scores, nor the scores themselves"
    if best is None:
        n, shape = rows[0].shape[0], values[targets[0]].shape[1:] if targets[0] in values else ()
        return told if n in shape or len(shape) < 2 else f"splits the {n} scores into the shape {shaped(shape)}"
    weight, s, seen = best
    if not seen.link and "assumed" not in seen.note:
        seen = Seen(None, f"{seen.note}, so softmax is assumed")
    before = [part.nodes[i] for i in _ancestors(part, s.name)]
    notes = [f"scores are multiplied by {s.factor:g}"] if s.factor != 1 and not s.softcap else []
    if s.span != slice(None):
        notes.append(f"only rows {s.span.start} to {s.span.stop - 1} reach the output")
    if any(n.op in ("QuantizeLinear", "QLinearMatMul", "QLinearConv") or len(n.inputs) > 8 for n in before):
        notes.append("the model rounds the scores to 8 bits")
    notes += [seen.after] if seen.after else []
    return Found(p, weight, s, seen, _bias_name(graph, p, before, s), notes)


def _between(part: Piece, p: Product, target: str | None) -> list[str]:
    """The tensors from the product to the target, in the order in which they are computed."""
    wanted = range(len(part.nodes)) if target is None else _ancestors(part, target)
    inside = set(p.node.outputs)
    out = []
    for i in sorted(wanted):
        node = part.nodes[i]
        if node is p.node or inside & set(node.inputs):
            inside |= set(node.outputs)
            out += [o + more for o in node.outputs for more in ("/product", "/scores", "")]
    return out


def _ancestors(part: Piece, name: str) -> set[int]:
    """The nodes that a tensor needs, by number."""
    makers = {o: i for i, n in enumerate(part.nodes) for o in n.outputs}
    found: set[int] = set()
    stack = [name.removesuffix("/scores").removesuffix("/product")]
    while stack:
        i = makers.get(stack.pop())
        if i is not None and i not in found:
            found.add(i)
            stack += part.nodes[i].inputs
    return found


def _bias_name(graph: Graph, p: Product, before: list[Node], s: Scores) -> str:
    """The constants that are added between the product and the scores."""
    names = [p.bias] if p.bias else []
    after = False
    for node in before:
        after = after or node is p.node
        if after and node.op in ("Add", "Sub"):
            names += [i for i in node.inputs if (c := graph.constant(i)) is not None and c.array.dtype.kind == "f"]
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
    frontier, seen = [tensor], {tensor}
    for _ in range(24):
        nodes = [node for name in frontier for node in graph.consumers.get(name, [])]
        for node in nodes:
            try:
                p = product_at(graph, node)
                if p is not None and p.weights[0].name == tensor:
                    return _examine(graph, p, _reached(graph, p), named=True)
            except NotAHead:
                continue
        frontier = [o for o in dict.fromkeys(o for node in nodes for o in node.outputs) if o not in seen][:200]
        seen.update(frontier)
    return None


def _reached(graph: Graph, p: Product) -> list[str]:
    """The tensors that follow a product and need no other features."""
    out = list(p.node.outputs[:1])
    frontier = list(out)
    for _ in range(24):
        after = [n for name in frontier for n in graph.consumers.get(name, []) if n.op in ALLOWED - set(PRODUCTS)]
        frontier = []
        for node in after:
            try:
                piece(graph, p.x, [node.outputs[0]])
            except NotAHead:
                continue
            frontier += [o for o in node.outputs if o and o not in out]
        frontier = list(dict.fromkeys(frontier))
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
    shown: list[str] = []
    for name in graph.tensors:
        shape, kind = graph.describe(name)
        if len(shape) == 2 and min(shape) > 0 and ("float" in kind or kind in ("int8", "uint8")):
            shown.append(f"{name} ({shaped(shape)} {kind})")
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) + more) or "but no constant of the file has two axes"
