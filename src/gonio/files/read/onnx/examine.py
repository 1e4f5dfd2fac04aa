"""One product with a constant: what follows it is run on random features, and told from the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gonio.core import checks
from gonio.core.archive import read_only
from gonio.core.errors import LoadError
from gonio.core.row_table import Affine8, RowTable, Scaled
from gonio.files.read.onnx.cut import GraphPiece, piece, shapes, starts
from gonio.files.read.onnx.graph import Constant, Graph, Node, shaped
from gonio.files.read.onnx.match import EQUAL, Scores, TailOutputs, link_of, products, random_features, scores_of
from gonio.files.read.onnx.product import NotAHead, Product
from gonio.files.read.onnx.sandbox import CannotRun

MOST_FEATURES = 64  # that are not zero when a piece is run
MANY_LABELS = 20_000  # from here on, with few positions


@dataclass
class ExaminedHead:
    """A product, the scores it leads to and what the output is of them."""

    product: Product
    weight: Constant
    scores: Scores
    seen: TailOutputs
    bias: str
    notes: list[str] = field(default_factory=list)


def examine(graph: Graph, p: Product, targets: list[str], *, named: bool = False) -> ExaminedHead:
    """Run what follows the product on random features, and say what it is; NotAHead where it is no head.

    `named` : the caller names the weight, so that scores will do of which no target is a link.
    """
    rows = [rows_of(w, 1.0, slice(None)) for w in p.weights]
    why = "cannot be run on random features"
    for start, axis in starts(graph, p, rows[0].shape[1]):
        try:
            part = piece(graph, start, [*targets, p.x])
            heads = list(_heads(graph, p, part, axis, rows, targets, named))
        except NotAHead as e:
            why = str(e)
            continue
        if len({h.seen.link for h in heads}) > 1:
            said = "it depends on how many axes the features have, which the file does not tell, so softmax is assumed"
            heads[0].seen = TailOutputs(None, said)
        return heads[0]
    raise NotAHead(why)


def _heads(
    graph: Graph, p: Product, part: GraphPiece, axis: int, rows: list[RowTable], targets: list[str], named: bool
) -> Iterator[ExaminedHead]:
    """The head for each rank that the features may have; NotAHead where there is none for any."""
    n, width = rows[0].shape
    rng = np.random.default_rng(0)
    picked = np.sort(rng.permutation(width)[:MOST_FEATURES])
    part.thin(p, picked)
    probe = np.isin(np.arange(width), picked) * rng.standard_normal((1, width))
    size = 2.0 / (products(rows[0], probe).std() or rows[0].survey().norms.max() or 1.0)
    why, count = "cannot be run on random features", 0
    free = (2, 3, 2) if n < MANY_LABELS else (1, 2)
    for tries in shapes(graph, part.start, axis, width, p.rank if part.start == p.x else None, free):
        for shape in tries:
            try:
                values = part.run(graph, random_features(rng, shape, axis, size, picked))
                found = _told(graph, p, part, values, rows, targets, named)
            except CannotRun as e:
                if e.final:
                    raise graph.problem(
                        f"what follows the product with {p.weights[0].name!r} was run on random features, and {e}; "
                        f"if the file is to be trusted, save that table with np.save and load it."
                    ) from None
                why = f"cannot be run on random features ({e})"
                continue
            except NotAHead as e:
                why = str(e)
                if "splits" in why:
                    continue
                break  # with lengths of one, less would be seen
            found.notes += [f"told with features of shape {shaped(shape)}, which longer ones do not fit"] * (
                shape != tries[0]
            )
            yield found
            count += 1
            break
    if not count:
        raise NotAHead(why)


def _told(
    graph: Graph,
    p: Product,
    part: GraphPiece,
    values: dict[str, np.ndarray],
    rows: list[RowTable],
    targets: list[str],
    named: bool,
) -> ExaminedHead:
    """What the numbers of the runs say; NotAHead where they are no head's."""
    if p.x not in values:
        raise NotAHead("comes from features that are not numbers")
    F = np.moveaxis(values[p.x], p.axis + 1 if p.axis >= 0 else p.axis, -1)[EQUAL]
    F = F.reshape(len(F), -1, F.shape[-1])[:, 0]
    after, inside = list[Node](), set(p.node.outputs)
    for node in part.nodes:
        if node is p.node or inside & set(node.inputs):
            after.append(node)
            inside.update(node.outputs)
    ends = [t for t in (*targets, *(n.input(0) for n in after if n.op in ("ArgMax", "TopK"))) if t in values]
    found: list[ExaminedHead] = []
    for weight, r in zip(p.weights, rows, strict=True):
        mine: list[ExaminedHead] = []
        for s in _all_scores(after, values, products(r, F), np.linalg.norm(F, axis=1) * r.survey().norms.max())[::-1]:
            seen = [x for x in (link_of(t, values[t], s) for t in ends) if x]
            seen = (
                [x for x in seen if x.link] + seen + [TailOutputs(None, "no output of the graph was looked at")] * named
            )
            mine += [ExaminedHead(p, weight, s, x, _bias_name(graph, p, after, s)) for x in seen[:1]]
        # The last tensor that is W f + b, unless an earlier one tells the link.
        found += [next((f for f in mine if f.seen.link), mine[0])] if mine else []
    if not found:
        n, shape = rows[0].shape[0], values[targets[0]].shape[1:] if targets[0] in values else ()
        if len(shape) > 1 and n not in shape:
            raise NotAHead(f"splits the {n} scores into the shape {shaped(shape)}")
        raise NotAHead("is no softmax, log-softmax or sigmoid of W f + b, nor W f + b itself")
    best = max(found, key=lambda f: (bool(f.seen.link), f.scores.factor == 1))  # of several scales, the one that is all
    if not best.seen.link and "assumed" not in best.seen.said:
        best.seen = TailOutputs(None, f"{best.seen.said}, so softmax is assumed", best.seen.note)
    best.notes += _notes(best, after)
    return best


def _all_scores(after: list[Node], values: dict[str, np.ndarray], S: np.ndarray, size: np.ndarray) -> list[Scores]:
    """The tensors that are W f + b, in the order in which they are computed."""
    out: list[Scores] = []
    for name in [o + more for node in after for o in node.outputs for more in ("/product", "/sum", "")]:
        fit = scores_of(name, values[name], S, size, out[-1] if out else None) if name in values else None
        out += [fit] if fit else []
    return out


def _notes(found: ExaminedHead, after: list[Node]) -> list[str]:
    s = found.scores
    notes = [f"scores are multiplied by {s.factor:g}"] if s.factor != 1 else []
    if s.span != slice(None):
        notes.append(f"only rows {s.span.start} to {s.span.stop - 1} reach the output")
    if any(n.op == "QuantizeLinear" or n.op.startswith("QLinear") or len(n.inputs) > 8 for n in after):
        notes.append("the model rounds the scores to 8 bits")
    return [*notes, found.seen.note] if found.seen.note else notes


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


def rows_of(w: Constant, factor: float, span: slice) -> RowTable:
    """The rows as stored, with what must be done to them when they are read."""
    stored = w.array[span]
    if w.scale is not None and w.zero is not None:
        if w.axis in (None, 0):
            scale, zero = (v if v.ndim == 0 else v[span] for v in (w.scale, w.zero))
            return RowTable(
                read_only(stored), unpack=Affine8(scale * np.float32(factor), zero), kind=w.array.dtype.name
            )
        stored = w.dense()[span]  # scales along the features: no row has one scale
    elif not checks.is_float(stored.dtype):
        raise LoadError(
            f"load: the weight {w.name!r} has type {stored.dtype}; floats, or integers with a scale, will do."
        )
    stored = read_only(stored)
    return RowTable(stored) if factor == 1 else RowTable(stored, unpack=Scaled(factor), kind=stored.dtype.name)
