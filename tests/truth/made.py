"""A dozen small models of which everything is known, each written as the file a user would have.

`Truth` holds what the file was made from; the oracles compute every claim from it again, naively.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import gonio
from gonio.core.states import States, rows_digest
from gonio.files.write.states_file import save_states
from gonio.files.write.tensors import write_safetensors

RNG = 20_26


@dataclass(frozen=True)
class Truth:
    """What a made model is.

    typed     how a command line names it
    W, b      rows and bias as the head scores with them
    link      what the table is; `assumed` where the file does not say it and gonio may only assume it
    kind      the inputs: "all", "box", "rms", "layer", "users"
    padded    rows without a label
    tied      the head is the input table too
    offset    whether something takes up a vector added to all rows
    known     whether gonio may say anything that hangs on the link
    """

    typed: tuple[str, ...]
    W: np.ndarray
    link: str
    b: np.ndarray | None = None
    labels: tuple[str, ...] = ()
    kind: str = "all"
    gain: np.ndarray | None = None
    shift: np.ndarray | None = None
    low: float = -np.inf
    high: float = np.inf
    users: np.ndarray | None = None
    padded: tuple[int, ...] = ()
    tied: bool = False
    offset: bool = False
    assumed: bool = False
    trained: str | None = None
    softcap: float | None = None
    states: np.ndarray | None = None
    documents: np.ndarray | None = None
    tokens: np.ndarray | None = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.W)

    def bias(self) -> np.ndarray:
        return np.zeros(self.n) if self.b is None else self.b

    def name(self, i: int) -> str:
        return self.labels[i] if self.labels else str(i)

    def index(self, name: str) -> int:
        return self.labels.index(name) if self.labels else int(name)

    def label(self, i: int) -> str:
        """A label as it is typed."""
        return self.labels[i] if self.labels else f"#{i}"


def rows(n: int, d: int, seed: int) -> np.ndarray:
    return np.random.default_rng([RNG, seed]).standard_normal((n, d)).astype(np.float32)


def words(n: int) -> tuple[str, ...]:
    return tuple(f"word{i}" for i in range(n))


def _checkpoint(folder: Path, config: dict[str, Any], tensors: dict[str, np.ndarray], tokens: tuple[str, ...]) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"})
    (folder / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}))


def padded_twins(at: Path) -> Truth:
    """A language model after an RMSNorm whose eight zero rows are on top where every real logit is negative."""
    W = rows(24, 6, 1)
    W[:16] += 1.5
    W[16:] = 0
    gain = np.linspace(0.5, 2, 6).astype(np.float32)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 24, "hidden_size": 6,
              "tie_word_embeddings": False, "rms_norm_eps": 1e-6}  # fmt: skip
    tensors = {"lm_head.weight": W, "model.norm.weight": gain, "model.embed_tokens.weight": rows(24, 6, 2)}
    _checkpoint(at / "llm", config, tensors, words(16))
    labels = (*words(16), *(f"[padded {i}]" for i in range(16, 24)))
    return Truth((str(at / "llm"),), W, "softmax", labels=labels, kind="rms", gain=gain, padded=tuple(range(16, 24)))


def hidden_twins(at: Path) -> Truth:
    """A softmax head with two equal rows far inside the hull of the others, and two equal ones outside."""
    W = np.array([[4, 4], [4, -4], [-4, 4], [-4, -4], [1, 0], [1, 0], [0, 9], [0, 9], [0.5, 0.5]], np.float32)
    np.savez(at / "twins.npz", W=W, labels=np.array(words(9)), link="softmax")
    return Truth((str(at / "twins.npz"),), W, "softmax", labels=words(9))


def encoder(at: Path) -> Truth:
    """A BERT without a head: its word table is input, and token types are added to every row."""
    W = rows(18, 4, 3) + np.float32(0.7)
    config = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 18, "hidden_size": 4}
    tensors = {
        "embeddings.word_embeddings.weight": W,
        "embeddings.token_type_embeddings.weight": rows(2, 4, 4),
        "embeddings.position_embeddings.weight": rows(8, 4, 5),
        "embeddings.LayerNorm.weight": np.ones(4, np.float32),
    }
    _checkpoint(at / "encoder", config, tensors, words(18))
    return Truth((str(at / "encoder"),), W, "input", labels=words(18), offset=True)


def rotary_table(at: Path) -> Truth:
    """The input embeddings of an untied model with rotary positions: nothing is added to its rows."""
    W = rows(14, 4, 6)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 14, "hidden_size": 4,
              "tie_word_embeddings": False}  # fmt: skip
    tensors = {
        "lm_head.weight": rows(14, 4, 7),
        "model.norm.weight": np.ones(4, np.float32),
        "model.embed_tokens.weight": W,
    }
    _checkpoint(at / "rotary", config, tensors, words(14))
    return Truth((str(at / "rotary"), "--tensor", "model.embed_tokens.weight"), W, "input", labels=words(14))


def tied_softcap(at: Path) -> Truth:
    """A tied language model with soft-capped logits after an RMSNorm that adds 1 to its weight."""
    W = rows(15, 4, 8)
    gain = np.linspace(-0.3, 0.4, 4).astype(np.float32)
    config = {"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "vocab_size": 15, "hidden_size": 4,
              "tie_word_embeddings": True, "final_logit_softcapping": 30.0}  # fmt: skip
    _checkpoint(at / "capped", config, {"model.embed_tokens.weight": W, "model.norm.weight": gain}, words(15))
    return Truth(
        (str(at / "capped"),), W, "softmax", labels=words(15), kind="rms", gain=1 + gain, tied=True, softcap=30.0
    )


def layer_norm(at: Path) -> Truth:
    """A tied GPT-2: LayerNorm with a shift before the head."""
    W = rows(16, 5, 9)
    gain, shift = np.linspace(0.5, 1.5, 5).astype(np.float32), rows(1, 5, 10)[0]
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 16, "n_embd": 5}
    tensors = {"wte.weight": W, "wpe.weight": rows(8, 5, 11), "ln_f.weight": gain, "ln_f.bias": shift}
    _checkpoint(at / "gpt2", config, tensors, words(16))
    return Truth((str(at / "gpt2"),), W, "softmax", labels=words(16), kind="layer", gain=gain, shift=shift, tied=True)


def with_states(at: Path) -> Truth:
    """A softmax head with the states of twelve documents that reached it, and the tokens read there."""
    W = rows(20, 4, 23) + np.float32(0.5)
    rng = np.random.default_rng([RNG, 24])
    of = np.repeat(np.arange(12), 15)
    F = (rng.standard_normal((12, 4))[of] + 0.7 * rng.standard_normal((180, 4))).astype(np.float32)
    tokens = np.argmax(F @ W.T + rng.gumbel(size=(180, 20)), axis=1)
    np.savez(at / "lm.npz", W=W, labels=np.array(words(20)), link="softmax")
    head = gonio.load(at / "lm.npz")
    save_states(States(F, of, np.tile(np.arange(15), 12), tokens, rows_digest(head), {"layer": "final"}), at / "F.npy")
    return Truth(
        (str(at / "lm.npz"),), W, "softmax", labels=words(20), states=F, documents=of, tokens=tokens,
        more={"audit": ("--embeddings", str(at / "F.npy"))},
    )  # fmt: skip


def sigmoid_box(at: Path) -> Truth:
    """A multi-label head with a bias over a box, in which two labels are never on and one is never off."""
    W = rows(9, 3, 12)
    b = np.zeros(9, np.float32)
    b[2], b[5], b[7] = -np.abs(W[2]).sum() - 0.5, -np.abs(W[5]).sum() - 1, np.abs(W[7]).sum() + 0.5
    np.savez(at / "labels.npz", W=W, b=b, labels=np.array(words(9)), link="sigmoid", inputs="box:-1,1")
    return Truth((str(at / "labels.npz"),), W, "sigmoid", b, words(9), "box", low=-1.0, high=1.0)


def _pair(at: Path, name: str, seed: int) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    users, items = rows(40, 3, seed).astype(np.float64), rows(14, 3, seed + 1).astype(np.float64)
    items[9] = items[4]
    np.save(at / f"{name}-users.npy", users)
    np.save(at / f"{name}-items.npy", items)
    return users, items, ("--users", str(at / f"{name}-users.npy"), "--items", str(at / f"{name}-items.npy"))


def factors_open(at: Path) -> Truth:
    """Users and items of whose training nothing is told."""
    users, items, typed = _pair(at, "open", 13)
    return Truth(typed, items, "dot", kind="users", users=users, trained="product")


def factors_penalised(at: Path) -> Truth:
    """Users and items trained with a penalty on each factor, as the user says."""
    users, items, typed = _pair(at, "penalised", 15)
    return Truth(
        typed, items, "dot", kind="users", users=users, trained="factors", more={"audit": ("--trained", "factors")}
    )


def word2vec_text(at: Path) -> Truth:
    W = rows(13, 4, 17)
    lines = [f"{w} {' '.join(repr(float(v)) for v in row)}" for w, row in zip(words(13), W, strict=True)]
    (at / "w2v.txt").write_text("13 4\n" + "\n".join(lines) + "\n")
    return Truth((str(at / "w2v.txt"),), W, "vectors", labels=words(13))


def glove_text(at: Path) -> Truth:
    W = rows(13, 4, 18)
    lines = [f"{w} {' '.join(repr(float(v)) for v in row)}" for w, row in zip(words(13), W, strict=True)]
    (at / "glove.txt").write_text("\n".join(lines) + "\n")
    return Truth((str(at / "glove.txt"),), W, "vectors", labels=words(13), offset=True)


def cosine_trained(at: Path) -> Truth:
    W = rows(12, 4, 19)
    np.savez(at / "unit.npz", W=W, labels=np.array(words(12)), link="cosine")
    return Truth((str(at / "unit.npz"),), W, "cosine", labels=words(12))


def unknown_array(at: Path) -> Truth:
    W = rows(12, 4, 20)
    np.save(at / "bare.npy", W)
    return Truth((str(at / "bare.npy"),), W, "unknown")


def assumed_head(at: Path) -> Truth:
    """A layer that by its name is a head; how its scores become predictions nothing says."""
    W = rows(11, 3, 21)
    np.savez(at / "named.npz", **{"lm_head.weight": W})
    return Truth((str(at / "named.npz"),), W, "softmax", assumed=True)


def rank_deficient(at: Path) -> Truth:
    """A softmax head whose rows lie in a plane, small whole numbers."""
    W = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 2], [2, 1, 3], [-1, 2, 1], [3, -1, 2], [0, 0, 0], [2, 2, 4]], np.float64)
    np.savez(at / "flat.npz", W=W, labels=np.array(words(8)), link="softmax")
    return Truth((str(at / "flat.npz"),), W, "softmax", labels=words(8))


def full_rank(at: Path) -> Truth:
    """Fewer labels than dimensions: every whitened cosine is the same number, and nothing may be recommended."""
    W = rows(5, 8, 22)
    np.savez(at / "full.npz", W=W, labels=np.array(words(5)), link="softmax")
    return Truth((str(at / "full.npz"),), W, "softmax", labels=words(5))


def near_degenerate(at: Path) -> Truth:
    """Figure 4 as decimals: three points that are collinear but for the rounding of 0.55 and the like."""
    A = np.array([[1, -0.8, 1], [1, 0.8, 1], [1, 0.55, -0.5], [1, -1, -1], [1, 1, -1]])
    np.savez(at / "figure4.npz", W=A, labels=np.array(words(5)), link="sigmoid")
    return Truth((str(at / "figure4.npz"),), A, "sigmoid", labels=words(5), more={"label sets": (22, 20)})


MODELS: dict[str, Callable[[Path], Truth]] = {
    f.__name__: f
    for f in (
        padded_twins, hidden_twins, encoder, rotary_table, tied_softcap, layer_norm, with_states, sigmoid_box, factors_open,
        factors_penalised, word2vec_text, glove_text, cosine_trained, unknown_array, assumed_head, rank_deficient, full_rank,
        near_degenerate,
    )
}  # fmt: skip
