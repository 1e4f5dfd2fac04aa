"""The module of a live torch model whose rows are the head: by name, by what the model says, or by a run."""

from __future__ import annotations

from typing import Any

from gonio.core.errors import GonioError


def head_module(model: Any, named: str | None, tensor: str) -> tuple[str, Any] | None:
    """(name, module) of the head, before anything is run; None where only a run can tell.

    named    as the user said it: a module ("classifier") or its weight ("classifier.weight")
    tensor   the tensor from which the head's rows were read
    """
    modules = dict(model.named_modules())
    if named is not None:
        name = named.removesuffix(".weight")
        if name in modules and hasattr(modules[name], "weight"):
            return name, modules[name]
        near = [k for k, m in modules.items() if _is_linear(m)]
        raise GonioError(
            f"states: the model has no module {name!r} with a weight; its linear layers are "
            f"{', '.join(near[-5:]) or 'none'}."
        )
    output = getattr(model, "get_output_embeddings", lambda: None)()
    name = tensor.removesuffix(".weight")
    owner = modules.get(name)
    if owner is not None and _is_linear(owner):
        return name, owner
    if output is not None:
        return next((k for k, m in modules.items() if m is output), "the output embeddings"), output
    return None


def last_linear(model: Any, run: Any, labels: int | None) -> tuple[str, Any]:
    """The last linear layer that a run of the model passes through, as wide as its output where that is known."""
    seen: list[str] = []
    modules = {k: m for k, m in model.named_modules() if _is_linear(m)}
    hooks = [m.register_forward_hook(lambda *_, k=k: seen.append(k)) for k, m in modules.items()]
    try:
        run()
    finally:
        for h in hooks:
            h.remove()
    fit = [k for k in seen if labels in (None, modules[k].weight.shape[0])]
    if not fit:
        raise GonioError(
            "states: no linear layer of this model was passed in a run; name its head (head='classifier')."
        )
    return fit[-1], modules[fit[-1]]


def _is_linear(module: Any) -> bool:
    weight = getattr(module, "weight", None)
    is_linear = any(c.__name__ in ("Linear", "LinearBase", "Conv1D") for c in type(module).__mro__)
    return is_linear and weight is not None and weight.ndim == 2
