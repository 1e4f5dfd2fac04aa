"""A whole model rewritten so that the cosine of its output rows is their centred-logit correlation over some states.

In a pre-norm RMSNorm model the last states are f = g * z, z the residual stream over its root mean square. With
S^-1/2 diag(g) = U Sigma V',

    head  J W S^1/2 U        final gain  Sigma        residual stream  V' h  in place of  h

gives the same centred logits, since a rotation leaves the root mean square alone. V' goes into everything that writes
to the residual stream, V into everything that reads it, and the gains of the inner norms into what reads behind them
first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.whole_folder import whole_folder
from gonio.gauge.canonicalising import root_of_states
from gonio.models.capture import undisturbed
from gonio.models.opening import open_model, quiet

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
PROBES = 24  # tokens on which the rewritten model is compared with the old one


def can_be_written(model: Any) -> bool:
    """Whether the rewriting is exact for this kind of model."""
    config = getattr(model, "config", None)
    return getattr(config, "model_type", "") in FAMILIES and type(model).__name__.endswith("ForCausalLM")


def write_canonical(
    place: str | Path, F: np.ndarray, out: str | Path, *, overwrite: bool = False
) -> tuple[Path, float]:
    """Write the rewritten model into a new folder; gives it, and the largest difference of a probability seen.

    The new model is loaded again from what was written and both read the same tokens.
    """
    import torch

    opened = open_model(place, "canonicalise")
    if not can_be_written(opened.model):
        kind = getattr(getattr(opened.model, "config", None), "model_type", type(opened.model).__name__)
        raise GonioError(
            f"canonicalise: a checkpoint can be written exactly for {', '.join(FAMILIES)} models, and this is {kind}; "
            f"leave out --checkpoint to write the table and its map alone."
        )
    model = opened.model.to(torch.float64)
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, model.config.vocab_size, (1, PROBES)))
    before = _probabilities(model, ids)
    rewrite(model, np.asarray(F))
    with whole_folder(out, "canonicalise", overwrite=overwrite) as folder, quiet():
        model.to(torch.float32).save_pretrained(folder)
        if opened.tokenizer is not None:
            opened.tokenizer.save_pretrained(folder)
    again = open_model(out, "canonicalise").model
    return Path(out), float((before - _probabilities(again, ids)).abs().max())


def rewrite(model: Any, F: np.ndarray) -> None:
    """Change the weights of a live model in place; its predictions stay."""
    import torch

    root, inverse = root_of_states(F)
    body = model.model
    with torch.no_grad():
        # What reads behind an inner norm takes up its gain, which a rotation could not pass otherwise.
        for layer in body.layers:
            _fold(layer.input_layernorm, (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj))
            _fold(layer.post_attention_layernorm, (layer.mlp.gate_proj, layer.mlp.up_proj))
        W = model.lm_head.weight.detach().to(torch.float64).numpy()
        gain = body.norm.weight.detach().to(torch.float64).numpy()
        U, sigma, Vt = np.linalg.svd(inverse * gain)
        rows = (W - W.mean(axis=0)) @ root @ U
        V = torch.from_numpy(np.ascontiguousarray(Vt.T))
        _untie(model)
        _set(body.embed_tokens.weight, body.embed_tokens.weight.to(torch.float64) @ V)
        for layer in body.layers:
            for reads in (*_attention(layer)[:3], layer.mlp.gate_proj, layer.mlp.up_proj):
                _set(reads.weight, reads.weight.to(torch.float64) @ V)
            for writes in (layer.self_attn.o_proj, layer.mlp.down_proj):
                _set(writes.weight, V.T @ writes.weight.to(torch.float64))
                if writes.bias is not None:
                    _set(writes.bias, V.T @ writes.bias.to(torch.float64))
        _set(body.norm.weight, torch.from_numpy(sigma))
        _set(model.lm_head.weight, torch.from_numpy(rows))


def _attention(layer: Any) -> tuple[Any, Any, Any, Any]:
    a = layer.self_attn
    return a.q_proj, a.k_proj, a.v_proj, a.o_proj


def _fold(norm: Any, readers: tuple[Any, ...]) -> None:
    for m in readers:
        m.weight.mul_(norm.weight[None, :].to(m.weight.dtype))
    norm.weight.fill_(1.0)


def _untie(model: Any) -> None:
    """A head of its own, where it was the table of input embeddings."""
    import torch

    if model.lm_head.weight is model.model.embed_tokens.weight:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    model.config.tie_word_embeddings = False


def _set(parameter: Any, value: Any) -> None:
    parameter.copy_(value.to(parameter.dtype))


def _probabilities(model: Any, ids: Any) -> Any:
    import torch

    with undisturbed(model):
        return torch.softmax(model(input_ids=ids).logits[0].to(torch.float64), dim=-1)
