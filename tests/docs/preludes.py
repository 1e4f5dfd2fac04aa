"""What the Python of a page takes for granted: `head`, `F`, files of the reader's. Small ones, made here.

By page: a function that fills the names (and the current folder), and words that are replaced, each with what it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gonio

WORDS = ["dog", "cat", "pet", "car", "bus", "tree", "sky", "sea", "sun", "moon", "red", "blue"]


def a_head(names: dict[str, Any], n: int = 12, d: int = 3, **more: Any) -> gonio.Head:
    """A head of words, its inputs, and the modules that readers have imported."""
    rng = np.random.default_rng(0)
    labels = WORDS if n == len(WORDS) else [*WORDS, *(f"word {i}" for i in range(n - len(WORDS)))]
    head = gonio.Head(rng.normal(size=(n, d)), link="softmax", labels=labels, **more)
    names |= {"gonio": gonio, "np": np, "head": head, "F": rng.normal(size=(400, d)), "head_a": head, "head_b": head}
    return head


def readme(names: dict[str, Any]) -> None:
    pa = pytest.importorskip("pyarrow", reason="pip install 'gonio[arrow]'")
    import pyarrow.parquet as pq

    a_live_model(names)
    names["model"].save_pretrained(".")
    names["tokenizer"].save_pretrained(".")
    rng = np.random.default_rng(0)
    names["F"] = rng.normal(size=(400, 16))
    for name in ("corpus", "old", "queries"):
        rows = rng.normal(size=(60, 4)).tolist()
        pq.write_table(pa.table({"id": [str(i) for i in range(60)], "embedding": rows}), f"{name}.parquet")
    names["X"] = rng.poisson(1.0, size=(80, 60)).astype(float)
    names["head_a"] = names["head_b"] = gonio.load("model.safetensors")


def a_live_model(names: dict[str, Any]) -> None:
    """A tiny language model of random weights and a tokenizer of words."""
    torch = pytest.importorskip("torch", reason="pip install 'gonio[transformers]'")
    transformers = pytest.importorskip("transformers", reason="pip install 'gonio[transformers]'")
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(0)
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*WORDS, "[UNK]"])}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    names["tokenizer"] = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")
    config = transformers.LlamaConfig(
        vocab_size=13, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        tie_word_embeddings=False,
    )  # fmt: skip
    names["model"] = transformers.LlamaForCausalLM(config).eval()
    rng = np.random.default_rng(0)
    names["texts"] = [" ".join(rng.choice(WORDS, 30)) for _ in range(20)]
    names["gonio"] = gonio


def of_cluster(names: dict[str, Any]) -> None:
    pytest.importorskip("distributed", reason="pip install 'gonio[cluster]'")
    pytest.importorskip("faiss", reason="pip install 'gonio[faiss]'")
    a_head(names)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 64)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    names |= {"X": X, "Q": X[:50] + 0}


def of_diagnostics(names: dict[str, Any]) -> None:
    head = a_head(names, 60, 8)
    rng = np.random.default_rng(1)
    names |= {"frequencies": rng.integers(1, 1000, 60), "a": head, "b": head}
    names["F_a"] = names["F_b"] = rng.normal(size=(400, 8))


def of_embeddings(names: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    a_head(names)
    names["X"] = _frame(rng.normal(size=(40, 4)), "d")
    names["Q"] = _frame(rng.normal(size=(9, 4)), "q")


def _frame(rows: np.ndarray, letter: str) -> Any:
    pd = pytest.importorskip("pandas", reason="make test installs it")
    return pd.DataFrame({"id": [f"{letter}{i}" for i in range(len(rows))], "embedding": list(rows)})


def of_factors(names: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    a_head(names)
    names["X"] = rng.poisson(1.0, size=(80, 60)).astype(float)
    names |= {"users": rng.normal(size=(80, 5)), "items": rng.normal(size=(60, 5))}


def of_gauge(names: dict[str, Any]) -> None:
    a_head(names)
    rng = np.random.default_rng(0)
    names |= {"v": rng.normal(size=3), "M": rng.normal(size=(3, 3)) + 3 * np.eye(3)}


def of_measures(names: dict[str, Any]) -> None:
    a_head(names, 60, 6)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    pairs = rng.integers(0, 300, size=(120, 2))
    names |= {"a": [0, 1], "b": [2, 3], "X": X, "pairs": pairs, "scores": rng.normal(size=120), "queries": X[:5]}


def of_patterns(names: dict[str, Any]) -> None:
    np.savez("model.npz", W=np.random.default_rng(0).normal(size=(6, 3)), labels=np.array(WORDS[:6]))


def of_tutorial(names: dict[str, Any]) -> None:
    from gonio.papers import g2pm
    from tests import real

    wheel = real.wheel("g2pM")
    Path("demo").mkdir()
    g2pm.save(wheel, Path("demo/g2pM.npz"))
    np.save("demo/states.npy", g2pm.states(wheel).astype(np.float32))


PRELUDES = {
    "README": (readme, {"fit(X, 50,": ("fit(X, 5,", "is more dimensions than a small table has")}),
    "cluster": (
        of_cluster,
        {
            'client = Client("tcp://scheduler:8786")\n': ("", "is an address of the reader's cluster"),
            'with joblib.parallel_config(backend="dask"):': ("if True:", "needs it; tests/cluster runs it"),
            '"IVF1024,Flat"': ('"IVF16,Flat"', "wants more rows than are made here"),
        },
    ),
    "diagnostics": (of_diagnostics, {}),
    "embeddings": (of_embeddings, {}),
    "factors": (of_factors, {'"Toy Story"': ("3", "is a film of the reader's")}),
    "gauge": (of_gauge, {}),
    "measures": (of_measures, {}),
    "patterns": (of_patterns, {}),
    "regions": (a_head, {}),
    "states": (a_live_model, {}),
    "tutorial": (of_tutorial, {}),
}
