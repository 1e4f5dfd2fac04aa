"""Small language models trained here: two seeds x tied or untied x weight decay or dropout, on one text.

Each is a causal transformer of two blocks over the most frequent words. The same held-out positions are read by all of
them, so their logits can be compared input by input. Trained on CPU within minutes, kept by a digest of text and
settings in the user's cache folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError, missing_extra
from gonio.core.head import Head
from gonio.studies.kept_arrays import Arrays, digest_of, kept

if TYPE_CHECKING:
    from jaxtyping import Float, Int

UNKNOWN = "<other>"


@dataclass(frozen=True)
class Setting:
    """How one model is trained; `tied`: one table reads words and scores them."""

    seed: int = 0
    tied: bool = True
    decay: float = 0.0
    dropout: float = 0.0
    words: int = 2000
    dim: int = 64
    blocks: int = 2
    context: int = 32
    steps: int = 1200
    batch: int = 24
    rate: float = 3e-3

    @property
    def name(self) -> str:
        held = "weight decay" if self.decay else "dropout" if self.dropout else "no penalty"
        return f"{'tied' if self.tied else 'untied'}, {held}, seed {self.seed}"


EIGHT = tuple(
    Setting(seed, tied, decay, dropout)
    for seed in (0, 1)
    for tied in (True, False)
    for decay, dropout in ((0.1, 0.0), (0.0, 0.2))
)


@dataclass(frozen=True, eq=False)
class TinyModel:
    """A trained model: its head, what reaches it at the held-out positions, its loss there in nats a word."""

    setting: Setting
    head: Head
    F: Float[np.ndarray, "points dim"]
    loss: float
    counts: Int[np.ndarray, " labels"]


def numbered(texts: Sequence[str], words: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """(vocabulary, counts, the text as word numbers): the most frequent words; all others are one."""
    cut = [re.findall(r"[a-z]+|[.,;?!]", t.lower()) for t in texts]
    counts = Counter(w for line in cut for w in line)
    kept_words = [w for w, _ in sorted(counts.items(), key=lambda x: (-x[1], x[0]))[: words - 1]]
    at = {w: i for i, w in enumerate(kept_words, 1)}
    ids = np.array([at.get(w, 0) for line in cut for w in line], np.int64)
    names = [UNKNOWN, *kept_words]
    return names, np.bincount(ids, minlength=len(names)), ids


def tiny_models(
    texts: Sequence[str],
    settings: Sequence[Setting] = EIGHT,
    *,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> tuple[TinyModel, ...]:
    """The models of the settings, trained on the first nine tenths of the text and read on the rest."""
    out = []
    for k, s in enumerate(settings):
        if on_progress is not None:
            on_progress(k, len(settings), s.name)
        names, counts, ids = numbered(texts, s.words)
        if len(ids) < 40 * s.context:
            raise GonioError(f"tiny_models: the text has {len(ids):,} words; at least {40 * s.context:,} are needed.")
        made = kept("tiny", digest_of(ids, asdict(s), 1), lambda ids=ids, s=s, names=names: _train(ids, len(names), s))
        head = Head(made["W"], link="softmax", labels=names)
        out.append(TinyModel(s, head, made["F"], float(made["loss"]), counts))
    return tuple(out)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise missing_extra("study", "torch", "torch") from None
    return torch


def _network(torch: Any, n: int, s: Setting) -> Any:
    nn = torch.nn

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.read = nn.Embedding(n, s.dim)
            self.place = nn.Parameter(0.02 * torch.randn(s.context, s.dim))
            block = nn.TransformerEncoderLayer(
                s.dim, 4, 4 * s.dim, s.dropout, activation="gelu", batch_first=True, norm_first=True
            )
            self.blocks = nn.TransformerEncoder(block, s.blocks, norm=nn.LayerNorm(s.dim), enable_nested_tensor=False)
            self.score = nn.Linear(s.dim, n, bias=False)
            nn.init.normal_(self.read.weight, std=0.05)
            nn.init.normal_(self.score.weight, std=0.05)
            if s.tied:
                self.score.weight = self.read.weight
            self.mask = nn.Transformer.generate_square_subsequent_mask(s.context)

        def forward(self, ids: Any) -> Any:
            return self.blocks(self.read(ids) + self.place, mask=self.mask, is_causal=True)

    return Words()


def _train(ids: np.ndarray, n: int, s: Setting) -> Arrays:
    torch = _torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(s.seed)
        net = _network(torch, n, s)
        cut = int(0.9 * len(ids))
        text = torch.from_numpy(ids[:cut])
        slope = torch.optim.AdamW(net.parameters(), lr=s.rate, weight_decay=s.decay)
        fall = torch.optim.lr_scheduler.OneCycleLR(slope, s.rate, total_steps=s.steps)
        span = torch.arange(s.context + 1)
        for _ in range(s.steps):
            rows = text[torch.randint(0, cut - s.context - 1, (s.batch, 1)) + span]
            scores = net.score(net(rows[:, :-1]))
            loss = torch.nn.functional.cross_entropy(scores.reshape(-1, n), rows[:, 1:].reshape(-1))
            slope.zero_grad()
            loss.backward()
            slope.step()
            fall.step()
        return _read(torch, net.eval(), ids[cut:], n, s)


def _read(torch: Any, net: Any, ids: np.ndarray, n: int, s: Setting, most: int = 3000) -> Arrays:
    """The states at held-out positions, the same for every model of one context length, and the loss there."""
    rows = ids[: (len(ids) - 1) // s.context * s.context + 1]
    given = torch.from_numpy(rows[:-1].reshape(-1, s.context))
    target = torch.from_numpy(rows[1:].reshape(-1, s.context))
    keep = max(1, len(given) // max(1, -(-most // s.context)))  # spread over the held-out text
    given, target = given[::keep], target[::keep]
    with torch.no_grad():
        states = net(given)
        scores = net.score(states)
        loss = torch.nn.functional.cross_entropy(scores.reshape(-1, n), target.reshape(-1))
    F = states.reshape(-1, s.dim).numpy()
    W = net.score.weight.detach().numpy()
    return {"W": W.astype(np.float32), "F": F.astype(np.float32), "loss": np.array(float(loss))}
