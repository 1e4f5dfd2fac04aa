"""What enters the head of a live torch model, captured while it runs; the model is left as it was found.

A hook on the head's own module sees its input. Nothing is moved, trained or changed: gradients are off, training mode
is put back, hooks are taken off even after an error, and no more than a batch is in memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.models.batches import Batch
from gonio.models.own_numbers import CHECKED, OwnNumbers


@dataclass(frozen=True, eq=False)
class Captured:
    """The states of one batch, and where each came from."""

    F: np.ndarray
    documents: np.ndarray
    positions: np.ndarray
    tokens: np.ndarray


@contextmanager
def undisturbed(model: Any) -> Iterator[None]:
    """Evaluation mode without gradients; every module gets its own mode back."""
    import torch

    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


class Capture:
    """A live model, the module of its head, and what passes through it."""

    def __init__(self, model: Any, module: Any, own: OwnNumbers | None, layer: int | None = None) -> None:
        self.model, self.module, self.own, self.layer = model, module, own, layer
        self.device = next((p.device for p in model.parameters()), None)
        self.names = _arguments(model)

    def batches(self, batches: Iterable[Batch]) -> Iterator[Captured]:
        """Run the batches and give what was captured of each."""
        with undisturbed(self.model):
            for number, batch in enumerate(batches):
                yield self._one(batch, number)

    def run(self, batch: Batch) -> Any:
        """One forward pass; the arrays go where the model is, in the type that it computes in."""
        import torch

        given = {}
        for name, a in batch.inputs.items():
            if self.names is not None and name not in self.names:
                if name in ("attention_mask", "decoder_attention_mask"):
                    continue
                raise GonioError(f"states: the model takes no {name!r}; it takes {', '.join(sorted(self.names))}.")
            t = torch.from_numpy(np.array(a)).to(self.device)
            given[name] = t.to(_float_type(self.model)) if t.is_floating_point() else t
        if self.layer is not None:
            given["output_hidden_states"] = True
        if self.names is not None and "use_cache" in self.names:
            given["use_cache"] = False
        if self.names is None:
            return self.model(*given.values())
        return self.model(**given)

    def _one(self, batch: Batch, number: int) -> Captured:
        calls: list[tuple[Any, Any]] = []

        def seen(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            calls.append((args[0] if args else next(iter(kwargs.values())), output))

        hook = None if self.layer is not None else self.module.register_forward_hook(seen, with_kwargs=True)
        try:
            out = self.run(batch)
        finally:
            if hook is not None:
                hook.remove()
        if self.layer is not None:
            return self._of_layer(out, batch, number)
        if len(calls) != 1:
            raise GonioError(
                f"states: the head was passed {len(calls)} times in one run; it must be passed once to tell its inputs."
            )
        f, own = calls[0][0], _scores(out, self.module)
        if own is None:
            own = calls[0][1]
        f, own, kept = _aligned(f, calls[0][1], own, batch)
        F = _array(f)
        _must_be_finite(F, kept[0], number)
        if self.own is not None:
            some = np.unique(np.linspace(0, len(F) - 1, CHECKED).astype(int))
            self.own.check(F[some], _array(own[some]), f"batch {number}")
            assert self.own.scale is not None
            F = F * np.float32(self.own.scale) if self.own.scale != 1 else F
        return Captured(F, *kept)

    def _of_layer(self, out: Any, batch: Batch, number: int) -> Captured:
        hidden = getattr(out, "hidden_states", None) or getattr(out, "decoder_hidden_states", None)
        if hidden is None or not -len(hidden) <= int(self.layer or 0) < len(hidden):
            many = 0 if hidden is None else len(hidden)
            raise GonioError(f"states: layer {self.layer} was asked for; the model has layers 0 to {many - 1}.")
        f = hidden[int(self.layer or 0)]
        keep = batch.keep if batch.keep is not None else np.ones(tuple(f.shape[:2]), bool)
        F = _array(f)[keep]
        kept = batch.origins(keep)
        _must_be_finite(F, kept[0], number)
        return Captured(F, *kept)


def _aligned(f: Any, raw: Any, own: Any, batch: Batch) -> tuple[Any, Any, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The kept states and the model's scores there, one a row, and where they came from."""
    import torch

    lead = tuple(f.shape[:-1])
    rows = len(batch.documents)
    if f.ndim == 3 and own.ndim == 2 and lead[0] == own.shape[0] and batch.keep is None:
        # A classifier that scores every position and then takes one of them: the one whose scores came out.
        at = (raw - own[:, None, :]).abs().amax(dim=2).argmin(dim=1)
        pick = torch.arange(rows, device=f.device)
        places = np.zeros(lead, bool)
        places[np.arange(rows), at.cpu().numpy()] = True
        return f[pick, at], own, batch.origins(places)
    f, own = f.reshape(-1, f.shape[-1]), own.reshape(-1, own.shape[-1])
    if len(f) != len(own):
        raise GonioError(
            f"states: {len(f):,} states entered the head and {len(own):,} rows of scores came out of the model; they "
            f"cannot be matched."
        )
    if batch.keep is not None and lead == batch.keep.shape:
        which = torch.from_numpy(np.flatnonzero(batch.keep)).to(f.device)
        return f[which], own[which], batch.origins(batch.keep)
    if batch.keep is not None and lead == (int(batch.keep.sum()),):
        return f, own, batch.origins(batch.keep)
    each = len(f) // rows
    if each * rows != len(f):
        raise GonioError(f"states: {rows} inputs gave {len(f)} states, which cannot be matched.")
    return f, own, batch.origins(np.ones((rows, each), bool))


def _scores(out: Any, module: Any) -> Any:
    """The scores among a model's outputs: as wide as the head, by name where they have one."""
    import torch

    wide = module.weight.shape[1] if type(module).__name__ == "Conv1D" else module.weight.shape[0]
    named = [getattr(out, k, None) for k in ("logits", "prediction_logits")]
    if isinstance(out, dict):
        named += list(out.values())
    elif isinstance(out, (tuple, list)):
        named += list(out)
    else:
        named.append(out)
    return next((t for t in named if isinstance(t, torch.Tensor) and t.ndim and t.shape[-1] == wide), None)


def _array(t: Any) -> np.ndarray:
    """A tensor in float32 on this side; float64 stays."""
    import torch

    return t.detach().to("cpu", t.dtype if t.dtype == torch.float64 else torch.float32).numpy()


def _float_type(model: Any) -> Any:
    import torch

    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


def _arguments(model: Any) -> set[str] | None:
    """The names of the model's arguments; None where they go by place (a plain module with one array)."""
    if not hasattr(model, "config"):
        return None
    given = inspect.signature(model.forward).parameters
    if any(p.kind is p.VAR_KEYWORD for p in given.values()):
        return {k for k, p in given.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    return set(given)


def _must_be_finite(F: np.ndarray, documents: np.ndarray, number: int) -> None:
    bad = ~np.isfinite(F).all(axis=1)
    if bad.any():
        raise GonioError(
            f"states: the model gives states that are not finite (document {int(documents[bad][0])}, batch {number}); "
            f"run it in float32, or leave that document out."
        )
