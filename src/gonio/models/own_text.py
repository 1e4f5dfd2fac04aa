"""Text that a causal model writes itself: samples from several starts with a fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.models.capture import undisturbed
from gonio.models.tasks import Task, task_of

LENGTH = 128  # tokens of one sample
AT_ONCE = 16


def written_by(
    model: Any,
    tokenizer: Any,
    tokens: int,
    seed: int,
    length: int = LENGTH,
    on_batch: Callable[[int, int, str], None] | None = None,
) -> list[str]:
    """Texts sampled from the model at temperature 1, about `tokens` tokens in all; each is a document.

    The first token of each sample is drawn at random among those of its vocabulary that stand for text, so that the
    starts differ; what follows is the model's own.
    """
    if task_of(model) is not Task.CAUSAL:
        raise GonioError(
            f"states: a {type(model).__name__} does not write text from left to right; give a text with --text FILE."
        )
    if tokenizer is None:
        raise GonioError("states: a tokenizer is needed to let the model write; give the model's own (tokenizer=).")
    import torch

    length = min(length, int(getattr(model.config, "max_position_embeddings", None) or length))
    count = max(10, -(-tokens // length))
    rng = np.random.default_rng(seed)
    starts = _starts(model, tokenizer, count, rng)
    device = next(model.parameters()).device
    out: list[str] = []
    with undisturbed(model), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for s in range(0, count, AT_ONCE):
            first = torch.tensor(starts[s : s + AT_ONCE], device=device)
            given = model.generate(
                input_ids=first,
                attention_mask=torch.ones_like(first),
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                max_new_tokens=length - first.shape[1],
                pad_token_id=_pad(model, tokenizer),
            )
            out += tokenizer.batch_decode(given, skip_special_tokens=True)
            if on_batch is not None:
                on_batch(len(out), count, "texts written by the model")
    kept = [x.replace("\n", " ").strip() for x in out]
    kept = [x for x in kept if x]
    if not kept:
        raise GonioError("states: the model wrote nothing but special tokens; give a text with --text FILE.")
    return kept


def _starts(model: Any, tokenizer: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """A first token for each sample, behind the token that begins a text where the model has one."""
    special = set(getattr(tokenizer, "all_special_ids", None) or ())
    plain = [i for i in range(min(len(tokenizer), int(model.config.vocab_size))) if i not in special]
    drawn = rng.choice(plain, count)[:, None]
    begin = getattr(tokenizer, "bos_token_id", None)
    return drawn if begin is None else np.hstack([np.full_like(drawn, int(begin)), drawn])


def _pad(model: Any, tokenizer: Any) -> int:
    for x in (getattr(tokenizer, "pad_token_id", None), getattr(model.config, "eos_token_id", None)):
        if isinstance(x, int):
            return x
        if isinstance(x, (list, tuple)) and x:
            return int(x[0])
    return 0
