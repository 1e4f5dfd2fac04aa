"""Capturing states against the plain forward passes over the same batches; counting what was seen, one product."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np

from benchmarks import Case, Cases
from benchmarks.bench_can_win import product
from gonio import Head, audit, can_win
from gonio.core.errors import missing_extra
from gonio.diagnostics.labels_on_text import seen_labels


class Numbers:
    """A tokenizer of texts that are token numbers already."""

    is_fast, pad_token_id, all_special_ids = False, 0, ()

    def __call__(self, text: str) -> list[int]:
        return [int(x) for x in text.split()]


def cases(toy: bool) -> Cases:
    try:
        import torch
        import transformers
    except ImportError as e:
        raise missing_extra("bench_states", str(e.name), "transformers") from None
    from gonio.models import load, states
    from gonio.models.batches import text_batches, windows
    from gonio.models.tasks import Task

    vocabulary, width, layers, count = (300, 16, 2, 400) if toy else (49_152, 576, 6, 8_000)
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers, num_attention_heads=2 if toy else 9,
            intermediate_size=2 * width, max_position_embeddings=256,
        )
    ).eval()  # fmt: skip
    texts = [" ".join(map(str, rng.integers(0, vocabulary, 128))) for _ in range(count // 128 + 1)]
    head = load(model)

    def plain() -> np.ndarray:
        found = windows(Numbers(), texts, 256, count, Task.CAUSAL)
        out: list[Any] = []
        with torch.no_grad():
            for b in text_batches(found, Numbers(), model, Task.CAUSAL, vocabulary, 0, False):
                z = model(**{k: torch.from_numpy(v) for k, v in b.inputs.items()}, use_cache=False).logits
                out.append(z.reshape(-1, vocabulary)[::64].argmax(-1).numpy())
        return np.concatenate(out)

    def ours() -> np.ndarray:
        return head.logits(states(model, Numbers(), texts, tokens=10**9, head=head).F[::64]).argmax(axis=1)

    yield Case(
        f"states of {count:,} tokens, {layers} layers of width {width}, against the plain forward passes",
        ours,
        plain,
        lambda a, b: bool(np.mean(a == b[: len(a)]) > 0.95),  # windows of one length come in the same order
        most=1.1,
        repeats=3,
        extra=lambda: {"peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6},
    )
    n, d, points = (500, 16, 300) if toy else (49_152, 576, 20_000)
    W = rng.standard_normal((n, d)).astype(np.float32)
    F = rng.standard_normal((points, d)).astype(np.float32)
    alone = Head(W, link="softmax")

    def winners() -> np.ndarray:
        tops = [np.argmax(F[s : s + 512] @ W.T, axis=1) for s in range(0, points, 512)]
        return np.concatenate(tops)

    yield Case(
        f"winners, lists and largest probabilities of {points:,} states, {n:,} labels, against the product and argmax",
        lambda: seen_labels(alone, F).winners,
        winners,
        lambda a, b: bool(np.mean(a == b) > 0.999),
        most=2.5,
        repeats=3,
    )
    never = len(can_win(alone).never)
    yield Case(
        f"the audit of {n:,} x {d} with {points:,} states against one float32 W W'",
        lambda: audit(alone, embeddings=F)["never-wins"].value,
        lambda: product(W) and never,
        lambda a, b: a == b,
        most=3.0,
        repeats=1,
    )
