"""Does the cosine of [CLS] states say how alike two sentences are? Where it was trained to be compared, and where not.

The same encoder is read at the same position twice: MiniLM as it is published, whose [CLS] state no loss ever compared
(its training compared means), and the same weights after a short training in which the cosine of [CLS] states is fitted
to judgements. Pooling is the same in both, so what differs is the training alone. Judged by Spearman's correlation with
people's judgements of STS-B's test pairs, which the training does not see; intervals draw pairs again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.correlations import spearman
from gonio.papers.real import minilm_model, sts_b

if TYPE_CHECKING:
    from jaxtyping import Float

STEPS, PAIRS, RATE = 150, 16, 3e-5


@dataclass(frozen=True)
class ClsToken:
    """Spearman's correlation with judgements, with its 95 % interval, of the cosine of [CLS] states and of means."""

    untrained: tuple[float, float, float]
    trained: tuple[float, float, float]
    mean: tuple[float, float, float]
    steps: int

    def __repr__(self) -> str:
        told = ", ".join(
            f"{name} {v[0]:.3f} ({v[1]:.3f} to {v[2]:.3f})"
            for name, v in (("untrained", self.untrained), ("trained", self.trained), ("mean", self.mean))
        )
        return f"ClsToken({told})"


def cls_token(steps: int = STEPS, seed: int = 0, test_pairs: int | None = None) -> ClsToken | None:
    """The two [CLS] states and the mean beside them, judged; None without the packages that carry them."""
    opened, train, test = minilm_model(), sts_b("train"), sts_b("test")
    if opened is None or train is None or test is None:
        return None
    model, tokenizer = opened
    some = slice(None, test_pairs)
    a, b, judged = test[0][some], test[1][some], test[2][some]
    before = [_states(model, tokenizer, side) for side in (a, b)]
    _train(model, tokenizer, train, steps, seed)
    after = [_states(model, tokenizer, side) for side in (a, b)]
    return ClsToken(
        _judged(before[0][0], before[1][0], judged),
        _judged(after[0][0], after[1][0], judged),
        _judged(before[0][1], before[1][1], judged),
        steps,
    )


def _train(model: Any, tokenizer: Any, data: Any, steps: int, seed: int) -> None:
    """Fit the cosine of [CLS] states to the judgements, over a fifth of their range each."""
    import torch

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    first, second, judged = data
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    model.train()
    for _ in range(steps):
        some = rng.choice(len(judged), PAIRS, replace=False)
        x, y = (_cls(model, tokenizer, [side[i] for i in some]) for side in (first, second))
        wanted = torch.tensor(judged[some] / 5, dtype=torch.float32)
        loss = ((torch.nn.functional.cosine_similarity(x, y) - wanted) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval()


def _cls(model: Any, tokenizer: Any, texts: list[str]) -> Any:
    given = tokenizer(texts, padding=True, truncation=True, max_length=64, return_tensors="pt")
    return model(**given).last_hidden_state[:, 0]


def _states(model: Any, tokenizer: Any, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The [CLS] states and the means of the last states."""
    import torch

    cls, mean = [], []
    with torch.no_grad():
        for s in range(0, len(texts), 64):
            given = tokenizer(texts[s : s + 64], padding=True, truncation=True, max_length=64, return_tensors="pt")
            hidden = model(**given).last_hidden_state
            mask = given["attention_mask"][:, :, None].to(hidden.dtype)
            cls.append(hidden[:, 0].numpy())
            mean.append(((hidden * mask).sum(1) / mask.sum(1)).numpy())
    return np.concatenate(cls), np.concatenate(mean)


def _judged(
    x: Float[np.ndarray, "pairs dim"], y: Float[np.ndarray, "pairs dim"], judged: Float[np.ndarray, " pairs"]
) -> tuple[float, float, float]:
    cosine = (x * y).sum(axis=1) / (np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1))
    rng = np.random.default_rng(0)
    draws = [spearman(cosine[i], judged[i]) for i in rng.integers(0, len(judged), (400, len(judged)))]
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(spearman(cosine, judged)), float(low), float(high)
