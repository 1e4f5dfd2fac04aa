"""Does Steck's ambiguity arise in deep models? One small network, trained in six ways from three seeds each.

Runs that predict equally well on held-out data are compared two by two, within one way of training and across ways:

    cosines      Pearson correlation of the label-label cosines of the two output tables
    neighbours   share of the nearest labels that both name by cosine
    inputs       correlation of the cosines of the states of held-out inputs (item-item, before the head)
    logits       Pearson correlation of the centred-logit correlations over the same held-out inputs

Steck, Ekanadham and Kallus proved the first arbitrary for linear models with a penalty on the product, and left open
what becomes of it in deep ones. Here are handwritten digits (10 labels) and MovieLens (films as labels of a user).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.correlations import pearson
from gonio.core.errors import missing_extra
from gonio.diagnostics.agreement_of_heads import overlap
from gonio.studies.centred_logits import correlations, nearest, root_of_covariance
from gonio.studies.kept_arrays import Arrays, digest_of, kept
from gonio.studies.study import Measured, StudyResult

if TYPE_CHECKING:
    from jaxtyping import Float

QUESTION = "How much do cosines of labels vary between runs of one deep network that predict equally well?"


@dataclass(frozen=True)
class TrainingWay:
    """A way of training."""

    name: str
    dropout: float = 0.0
    decay: float = 0.0
    norm: bool = False
    cosine: bool = False


WAYS = (
    TrainingWay("plain"),
    TrainingWay("dropout", dropout=0.5),
    TrainingWay("weight decay", decay=0.5),
    TrainingWay("both", dropout=0.5, decay=0.5),
    TrainingWay("LayerNorm", norm=True),
    TrainingWay("cosine loss", cosine=True),
)
SEEDS = (0, 1, 2)


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs and targets, each target a distribution over labels; the held-out ones; how long to train."""

    name: str
    X: Float[np.ndarray, "points width"]
    Y: Float[np.ndarray, "points labels"]
    held_x: Float[np.ndarray, "held width"]
    held_y: Float[np.ndarray, "held labels"]
    steps: int
    hidden: int = 64


@dataclass(frozen=True, eq=False)
class Trained:
    """One run: output table, held-out states, held-out score of each input (larger is better)."""

    way: str
    seed: int
    W: Float[np.ndarray, "labels dim"]
    F: Float[np.ndarray, "held dim"]
    score: Float[np.ndarray, " held"]


def train(data: Data, way: TrainingWay, seed: int) -> Trained:
    """Train the network one way from one seed; kept by a digest of data and settings."""
    digest = digest_of(data.X, data.Y, data.held_x, data.held_y, data.steps, data.hidden, asdict(way), seed, 2)
    made = kept("run", digest, lambda: _fit(data, way, seed))
    return Trained(way.name, seed, made["W"], made["F"], made["score"])


def _fit(data: Data, way: TrainingWay, seed: int) -> Arrays:
    try:
        import torch
    except ImportError:
        raise missing_extra("study", "torch", "torch") from None
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        width, labels, dim = data.X.shape[1], data.Y.shape[1], data.hidden // 2
        layers: list[Any] = [nn.Dropout(way.dropout / 2), nn.Linear(width, data.hidden), nn.ReLU()]
        layers += [nn.Dropout(way.dropout), nn.Linear(data.hidden, dim)]
        layers += [nn.LayerNorm(dim)] if way.norm else [nn.Tanh()]
        body = nn.Sequential(*layers)
        head = nn.Linear(dim, labels, bias=False)
        given = [torch.from_numpy(np.asarray(x, np.float32)) for x in (data.X, data.Y, data.held_x, data.held_y)]
        slope = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=3e-3, weight_decay=way.decay)

        def scores(states: Any) -> Any:
            if way.cosine:
                return 16 * nn.functional.normalize(states, dim=1) @ nn.functional.normalize(head.weight, dim=1).T
            return head(states)

        for _ in range(data.steps):
            rows = torch.randint(0, len(data.X), (128,))
            logs = torch.log_softmax(scores(body(given[0][rows])), dim=1)
            loss = -(given[1][rows] * logs).sum(dim=1).mean()
            slope.zero_grad()
            loss.backward()
            slope.step()
        body.eval()
        with torch.no_grad():
            F = body(given[2])
            W = head.weight
            if way.cosine:
                F, W = 4 * nn.functional.normalize(F, dim=1), 4 * nn.functional.normalize(W, dim=1)
            logs = torch.log_softmax(F @ W.T, dim=1)
            score = (given[3] * logs).sum(dim=1)
    return {k: v.detach().double().numpy() for k, v in (("W", W), ("F", F), ("score", score))}


def equal_runs(
    data: Data,
    *,
    ways: Sequence[TrainingWay] = WAYS,
    seeds: Sequence[int] = SEEDS,
    margin: float = 0.02,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> StudyResult:
    """Train every way from every seed and compare runs of equal held-out score two by two.

    Runs of two seeds predict equally well where the 95 % interval of the mean difference of their held-out
    log-likelihoods, input by input, lies within `margin` times the log of the number of labels, a guess's loss.
    """
    runs = []
    for k, (way, seed) in enumerate((w, s) for w in ways for s in seeds):
        if on_progress is not None:
            on_progress(k, len(ways) * len(seeds), f"{data.name}: {way.name}, seed {seed}")
        runs.append(train(data, way, seed))
    return compared(data.name, runs, margin)


def compared(name: str, runs: Sequence[Trained], margin: float = 0.02) -> StudyResult:
    """The comparison of runs that are there."""
    groups: dict[str, list[dict[str, float]]] = {}
    equal = 0
    for a, b in combinations(runs, 2):
        if a.seed == b.seed or not predicts_equally(a.score, b.score, margin * np.log(len(a.W))):
            continue  # runs from one seed began alike
        equal += 1
        found = agreement_of_runs(a, b)
        groups.setdefault("equal runs", []).append(found)
        if a.way == b.way:
            groups.setdefault(f"{a.way}, seeds", []).append(found)
    kinds = ("cosines", "neighbours", "inputs", "logits")
    possible = sum(a.seed != b.seed for a, b in combinations(runs, 2))
    out = [Measured("pairs of runs that predict equally well", float(equal), how=f"of {possible} of two seeds")]
    for group, rows in sorted(groups.items(), key=lambda x: x[0] != "equal runs"):
        for kind in kinds:
            values = np.array([r[kind] for r in rows])
            how = f"{len(rows)} pairs; from lowest to highest"
            out.append(
                Measured(f"{group}: {kind}", float(values.mean()), float(values.min()), float(values.max()), how)
            )
    pairs = [(r["cosines"], r["logits"]) for r in groups.get("equal runs", [])]
    share = float(np.mean([c < z for c, z in pairs])) if pairs else float("nan")
    out.append(Measured("pairs whose logits agree more than their cosines", share))
    numbers = {m.name: m for m in out}
    return StudyResult(
        "runs",
        QUESTION,
        f"{name}: {len(runs)} runs",
        tuple(out),
        verdict(numbers),
        against(numbers),
        "A small network on one data set; ranges are over pairs of runs, which share runs, so they are no intervals.",
    )


def verdict(n: dict[str, Measured]) -> str:
    """What the numbers say."""
    if n["pairs of runs that predict equally well"].value < 1:
        return "No two runs predict equally well, so nothing is told."
    c, z = n["equal runs: cosines"], n["equal runs: logits"]
    more = n["pairs whose logits agree more than their cosines"].value
    said = (
        f"Between runs that predict equally well label cosines correlate by {c.value:.2f} on average ({c.low:.2f} to "
        f"{c.high:.2f}), centred-logit correlations by {z.value:.2f} ({z.low:.2f} to {z.high:.2f})"
    )
    if more > 0.5 and z.value - c.value > 0.05:
        return f"{said}: the ambiguity arises, and logits agree more in {more:.0%} of the pairs."
    if more < 0.5 and c.value - z.value > 0.05:
        return f"{said}: training fixes cosines better than what is scored alike; logits agree more in only {more:.0%}."
    return f"{said}: no ambiguity of cosines beyond that of the model is shown (logits agree more in {more:.0%})."


def against(n: dict[str, Measured]) -> str:
    """Steck et al. name training by cosines, or a LayerNorm, as remedies; said where these fix cosines least."""
    plain = n.get("plain, seeds: cosines")
    told = [f"{way} {m.value:.2f}" for way in ("LayerNorm", "cosine loss") if (m := n.get(f"{way}, seeds: cosines"))
            and plain is not None and m.high is not None and plain.low is not None and m.high < plain.low]  # fmt: skip
    if not told or plain is None:
        return ""
    return (
        f"Steck et al. name a LayerNorm and training by cosines as remedies; from seed to seed cosines agree less "
        f"with them ({', '.join(told)}) than with plain training ({plain.value:.2f})."
    )


def predicts_equally(a: np.ndarray, b: np.ndarray, margin: float) -> bool:
    """Whether two runs' held-out log-likelihoods differ by less than a margin in nats, with 95 % confidence."""
    d = a - b
    half = 1.96 * d.std(ddof=1) / np.sqrt(len(d))
    return bool(abs(d.mean()) + half < margin)


def agreement_of_runs(a: Trained, b: Trained) -> dict[str, float]:
    """The four agreements of two runs."""
    upper = np.triu_indices(len(a.W), 1)
    k = 1 if len(a.W) <= 20 else 10
    C = [correlations(r.W) for r in (a, b)]
    Z = [correlations((r.W - r.W.mean(axis=0)) @ root_of_covariance(r.F)) for r in (a, b)]
    some = slice(None, None, max(1, len(a.F) // 300))
    inputs = [correlations(r.F[some]) for r in (a, b)]
    pairs = np.triu_indices(len(inputs[0]), 1)
    return {
        "cosines": pearson(C[0][upper], C[1][upper]),
        "neighbours": overlap(nearest(C[0], k), nearest(C[1], k)),
        "inputs": pearson(inputs[0][pairs], inputs[1][pairs]),
        "logits": pearson(Z[0][upper], Z[1][upper]),
    }
