"""What enters the head of an ONNX model: onnxruntime runs the graph with the head's features as one more output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import GonioError, LoadError, missing_extra
from gonio.core.head import Head
from gonio.core.states import States, rows_digest
from gonio.models.batches import fed_batches
from gonio.models.capture import Captured
from gonio.models.state_capture import collected

CLOSE = 1e-3  # a probability may be off by so much: kernels fuse and round in their own order
CHECKED = 8


def states_of_onnx(
    place: str | Path,
    head: Head,
    feed: Mapping[str, Any],
    *,
    most: int = 20_000,
    out: str | Path | None = None,
    on_batch: Callable[[int, int, str], None] | None = None,
) -> States:
    """The states that reach the head of an ONNX model while it reads the arrays of `feed`, by its inputs' names."""
    try:
        import onnx
        import onnxruntime
    except ImportError as e:
        raise missing_extra("states", str(e.name), "onnx") from None
    features = head.source.fed_by if head.source else None
    if features is None:
        raise GonioError(f"states: the table read from {place} is multiplied by no features, so no state reaches it.")
    run = _Run(onnx, onnxruntime, Path(place), head, features)
    run.must_take(feed)
    F, where, stopped = collected(run.batches(feed), most, len(next(iter(feed.values()))), out, on_batch)
    about: dict[str, Any] = {
        "model": str(place),
        "layer": "final",
        "how": f"states at every position of the arrays that were fed ({', '.join(sorted(feed))})",
        "largest_difference": run.difference,
        "positions_checked": run.checked,
    }
    return States(F, *where, head=rows_digest(head), about=about | ({"stopped": True} if stopped else {}))


class _Run:
    """The graph with one more output, and what its own outputs say of the head."""

    def __init__(self, onnx: Any, onnxruntime: Any, place: Path, head: Head, fed_by: tuple[str, int]) -> None:
        self.head, (features, self.axis) = head, fed_by
        self.features = features
        self.difference, self.checked = 0.0, 0
        try:
            model = onnx.load_model(place)
            given = {i.name for i in model.graph.input}
            self.fed = features in given
            if not self.fed and features not in {o.name for o in model.graph.output}:
                model.graph.output.append(onnx.ValueInfoProto(name=features))
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            self.session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as e:
            told = " ".join(str(e).split())[:160]
            raise LoadError(f"states: {place} could not be run ({type(e).__name__}: {told}).") from None
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.inputs = {i.name: i.type for i in self.session.get_inputs()}

    def must_take(self, feed: Mapping[str, Any]) -> None:
        """Complain where arrays are missing, or go by other names."""
        if set(feed) != set(self.inputs):
            raise GonioError(
                f"states: the model reads {', '.join(sorted(self.inputs))}, and {', '.join(sorted(feed)) or 'nothing'} "
                f"was fed; name the arrays as the model does: np.savez('inputs.npz', NAME=array)."
            )

    def batches(self, feed: Mapping[str, Any]) -> Iterator[Captured]:
        """The states of each batch."""
        for number, batch in enumerate(fed_batches(feed, self.head.shape[0])):
            typed = {k: _as(np.ascontiguousarray(a), self.inputs[k]) for k, a in batch.inputs.items()}
            try:
                got = dict(zip(self.outputs, self.session.run(self.outputs, typed), strict=True))
            except Exception as e:
                told = " ".join(str(e).split())[:160]
                raise GonioError(
                    f"states: the model does not run on what was fed ({type(e).__name__}: {told})."
                ) from None
            f = np.asarray(typed[self.features] if self.fed else got[self.features])
            f = np.moveaxis(f, self.axis, -1)
            rows = len(batch.documents)
            flat = f.reshape(-1, f.shape[-1]).astype(np.float32)
            if flat.shape[1] != self.head.shape[1] or len(flat) % rows:
                raise GonioError(f"states: the head's features have shape {f.shape}; {rows} inputs were fed.")
            if not np.isfinite(flat).all():
                raise GonioError(f"states: the model gives states that are not finite (batch {number}).")
            self._check(flat, [np.asarray(got[k]) for k in self.outputs if k != self.features])
            each = len(flat) // rows
            yield Captured(flat, *batch.origins(np.ones((rows, each), bool)))

    def _check(self, f: np.ndarray, outputs: list[np.ndarray]) -> None:
        """Some output must be what the head makes of the states: scores, probabilities or their logarithms."""
        some = np.unique(np.linspace(0, len(f) - 1, CHECKED).astype(int))
        z = self.head.logits(f[some].astype(np.float64))
        meant = [z]
        if self.head.link in ("softmax", "sigmoid"):
            p = self.head.probabilities(f[some].astype(np.float64))
            with np.errstate(divide="ignore"):
                meant += [p, np.log(p)]
        n = self.head.shape[0]
        best = np.inf
        for a in outputs:
            if a.dtype.kind != "f" or n not in a.shape:
                continue
            for axis in [k for k, size in enumerate(a.shape) if size == n]:
                own = np.moveaxis(a, axis, -1).reshape(-1, n)
                if len(own) != len(f):
                    continue
                for m in meant:
                    with np.errstate(invalid="ignore"):
                        scale = max(1.0, float(np.abs(m[np.isfinite(m)]).max(initial=0)))
                        best = min(best, float(np.nan_to_num(np.abs(own[some] - m), nan=np.inf).max()) / scale)
        if best > CLOSE:
            told = f"{best:.3g} off" if np.isfinite(best) else "of another shape"
            raise GonioError(
                f"states: what the head gives from the captured states is {told} what the model puts out; another head "
                f"was read than the one that is used, so name it (--tensor)."
            )
        self.difference, self.checked = max(self.difference, best), self.checked + len(some)


def _as(a: np.ndarray, kind: str) -> np.ndarray:
    """An array in the type that the graph asks for, where that loses nothing by kind."""
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
             "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}  # fmt: skip
    wanted = types.get(kind)
    return a if wanted is None or a.dtype == wanted else a.astype(wanted)
