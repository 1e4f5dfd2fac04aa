"""Tokens that a model cannot repeat: candidates for rows that were never trained, put to the model itself.

A model that knows a token repeats it when asked to. Three prompts ask for it, and the largest probability it ever gets
in the place where it belongs decides, by the bounds of Land and Bartolo (2024):

    above 0.9      it is repeated at once: trained
    above 0.1      mostly repeated: probably trained
    below 0.001    never, in any of the prompts: undertrained, confirmed
    between        weak: it may be undertrained

The prompts are gonio's own, so shares of confirmed tokens are not those of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.models.capture import undisturbed
from gonio.models.tasks import Task, task_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SHOTS = ("dog", "river", "seven", "blue", "music", "table", "Paris", "green", "house", "window")
AT_ONCE = 16


class Repeated(Enum):
    """Whether a token is repeated when asked for; the value is the sentence to print."""

    AT_ONCE = "the model repeats it: it was trained"
    MOSTLY = "the model repeats it with some doubt: probably trained"
    WEAK = "the model hardly repeats it: it may be undertrained"
    NEVER = "the model never repeats it: undertrained, confirmed"


@dataclass(frozen=True, eq=False, repr=False)
class Repetition:
    """What asking for some tokens gave.

    tokens        their numbers
    probability   the largest each got where it belonged, over all prompts
    verdicts      one a token
    """

    tokens: Int[np.ndarray, " tokens"]
    probability: Float[np.ndarray, " tokens"]
    verdicts: tuple[Repeated, ...]

    @property
    def confirmed(self) -> Int[np.ndarray, " confirmed"]:
        """The tokens that the model never repeats."""
        return self.tokens[[v is Repeated.NEVER for v in self.verdicts]]

    def __repr__(self) -> str:
        return f"Repetition({len(self.tokens):,} tokens)\n  {len(self.confirmed):,} are never repeated"


def repeat(
    model: Any, tokenizer: Any, tokens: Sequence[int], on_batch: Callable[[int, int, str], None] | None = None
) -> Repetition:
    """Ask a causal model to repeat some tokens, and see how likely each becomes."""
    if task_of(model) is not Task.CAUSAL:
        raise GonioError(
            f"undertrained: a {type(model).__name__} does not write from left to right; it cannot be asked."
        )
    import torch

    wanted = [int(t) for t in tokens]
    best = np.zeros(len(wanted))
    device = next(model.parameters()).device
    with undisturbed(model):
        for s in range(0, len(wanted), AT_ONCE):
            part = wanted[s : s + AT_ONCE]
            for make in (_few_shots, _asked, _many_times):
                made = [make(tokenizer, t) for t in part]
                width = max(len(ids) for ids, _ in made)
                ids = torch.zeros((len(part), width), dtype=torch.long, device=device)
                mask = torch.zeros_like(ids)
                for r, (x, _) in enumerate(made):
                    ids[r, : len(x)] = torch.tensor(x)
                    mask[r, : len(x)] = 1
                z = model(input_ids=ids, attention_mask=mask).logits
                for r, (_, places) in enumerate(made):
                    p = torch.softmax(z[r, places].to(torch.float64), dim=-1)[:, part[r]]
                    best[s + r] = max(best[s + r], float(p.max()))
            if on_batch is not None:
                on_batch(min(s + AT_ONCE, len(wanted)), len(wanted), "tokens asked for")
    return Repetition(np.array(wanted, np.int64), best, tuple(_verdict(p) for p in best))


def never_written(tokenizer: Any, count: int) -> Int[np.ndarray, " tokens"]:
    """The tokens that the tokenizer never makes of text: their own text comes back as other tokens.

    Special tokens, which text does not hold, and parts of characters, which have no text of their own, do not count.
    """
    special = set(getattr(tokenizer, "all_special_ids", None) or ())
    ids = [i for i in range(min(count, len(tokenizer))) if i not in special]
    texts = tokenizer.batch_decode([[i] for i in ids])
    whole = [(i, t) for i, t in zip(ids, texts, strict=True) if t and "�" not in t]
    out = []
    for s in range(0, len(whole), 4096):
        part = whole[s : s + 4096]
        again = tokenizer([t for _, t in part], add_special_tokens=False)["input_ids"]
        # Some tokenizers put a space before every text: behind a letter the token must come back as well.
        behind = tokenizer([f"a{t}" for _, t in part], add_special_tokens=False)["input_ids"]
        out += [i for (i, _), a, b in zip(part, again, behind, strict=True) if i not in a and i not in b]
    return np.array(out, np.int64)


def _verdict(p: float) -> Repeated:
    if p > 0.9:
        return Repeated.AT_ONCE
    if p > 0.1:
        return Repeated.MOSTLY
    return Repeated.NEVER if p < 0.001 else Repeated.WEAK


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _few_shots(tokenizer: Any, token: int) -> tuple[list[int], list[int]]:
    """Words repeated after themselves, then the token once: where it belongs a second time."""
    arrow, end = _ids(tokenizer, " ->"), _ids(tokenizer, "\n")
    ids: list[int] = []
    for word in SHOTS:
        w = _ids(tokenizer, f" {word}")
        ids += [*w, *arrow, *w, *end]
    ids += [token, *arrow]
    return ids, [len(ids) - 1]


def _asked(tokenizer: Any, token: int) -> tuple[list[int], list[int]]:
    """A sentence that asks for it."""
    ids = [*_ids(tokenizer, 'Please repeat the string exactly: "'), token, *_ids(tokenizer, '". The string is: "')]
    return ids, [len(ids) - 1]


def _many_times(tokenizer: Any, token: int) -> tuple[list[int], list[int]]:
    """The token many times over: behind each it belongs again."""
    return [token] * 30, [9, 19, 29]
