"""The head of g2pM, a published converter from Chinese characters to pinyin, read from its wheel without running it.

Its weights are a pickle, and a pickle can run code when it is opened. This one is opened by an unpickler that can
rebuild numpy arrays and nothing else.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.atomic_write import whole
from gonio.core.head import Head
from gonio.core.inputs import Nonnegative

ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("collections", "OrderedDict"),
    ("_codecs", "encode"),
}


class ArraysOnly(pickle.Unpickler):
    """An unpickler that knows how to rebuild arrays and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of an array; refused")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def unpickle_arrays(raw: bytes) -> Any:
    """The arrays, numbers and texts of a pickle; anything that could run code is refused."""
    return ArraysOnly(io.BytesIO(raw)).load()


def parts(wheel: Path) -> dict[str, Any]:
    """The network's weights, and its readings in the order of the head's rows."""
    with zipfile.ZipFile(wheel) as z:
        weights = unpickle_arrays(z.read("g2pM/np_ckpt.pkl"))
        order = unpickle_arrays(z.read("g2pM/class2idx.pkl"))
    readings = [""] * len(order)
    for reading, i in order.items():
        readings[i] = reading
    return {"weights": weights, "readings": readings}


def head(wheel: Path) -> Head:
    """876 readings x 32, after a ReLU."""
    p = parts(wheel)
    return Head(
        np.asarray(p["weights"]["logit_layer.2.weight"]),
        p["weights"]["logit_layer.2.bias"],
        link="softmax",
        labels=p["readings"],
        inputs=Nonnegative(),
    )


def save(wheel: Path, to: Path) -> Path:
    """The head as a .npz file that any tool can read."""
    h = head(wheel)
    assert h.bias is not None
    with whole(to, "g2pm") as temporary, temporary.open("wb") as f:
        about = {"labels": np.array(h.labels), "link": np.array(h.link), "inputs": np.array("nonnegative")}
        np.savez(f, W=h.W, b=h.bias, **about)  # type: ignore[arg-type]
    return to


# Sentences with characters that have several readings; the network is run on them, and on a question about each
# character.
SENTENCES = (
    "银行行长走在人行道上。",
    "他长得很高，头发也长。",
    "我们重新称一称这个重物。",
    "音乐让人快乐。",
    "他还没有还钱。",
    "数学老师数了数人数。",
    "天空中没有空位。",
    "种子要种在地里。",
    "他觉得睡觉很重要。",
    "这件事情得做得好。",
    "便宜的东西不一定方便。",
    "大夫说他的病不大。",
    "朝阳从东方升起，人们朝东走。",
    "把书放好，别磨蹭。",
    "他差点出差。",
    "教室里老师在教书。",
    "你为什么为他难过？",
    "曲折的小路通向歌曲的故乡。",
    "我和他一起唱和。",
    "这只船只有一个人。",
    "会计说会议开始了。",
    "他处理了很多处所的事。",
    "传说中的传记很有名。",
    "弹琴的人不怕子弹。",
    "相片里的宰相很严肃。",
    "应该应答老师的问题。",
    "血流了一地，流血了。",
    "干净的衣服不要弄干。",
    "他背着背包背书。",
    "好人都爱好和平。",
    "少年很少说话。",
    "调查员调了一杯水。",
    "角色的角度不同。",
    "参加人参的展览。",
    "都市里的人都很忙。",
    "看门的人看见了小偷。",
    "假期里别说假话。",
    "系统和鞋带都要系好。",
    "量一量这个数量。",
    "藏在西藏的宝藏。",
)


def states(wheel: Path) -> np.ndarray:
    """What reaches the head: the network's own states at characters of several readings, in the sentences above."""
    with zipfile.ZipFile(wheel) as z:
        number = unpickle_arrays(z.read("g2pM/char2idx.pkl"))
        readings = unpickle_arrays(z.read("g2pM/digest_cedict.pkl"))
    several = {c for c, r in readings.items() if len(r) > 1}
    weights = parts(wheel)["weights"]
    asked = [f"“{c}”字在这里怎么读？" for c in sorted(several) if len(c) == 1]
    out = []
    for text in (*SENTENCES, *asked):
        ids = [number["시"], *(number.get(c, number["<UNK>"]) for c in text), number["끝"]]
        x = np.asarray(weights["embedding.weight"], float)[ids]
        both = np.hstack([_lstm(x, weights, ""), _lstm(x[::-1], weights, "_reverse")[::-1]])
        here = [k + 1 for k, c in enumerate(text) if c in several]
        hidden = both[here] @ weights["logit_layer.0.weight"].T + weights["logit_layer.0.bias"]
        out.append(np.maximum(hidden, 0))
    return np.concatenate(out)


def _lstm(x: np.ndarray, weights: dict[str, np.ndarray], way: str) -> np.ndarray:
    """One direction of the LSTM, a state a character."""
    inner, outer = weights[f"lstm.weight_hh_l0{way}"], weights[f"lstm.weight_ih_l0{way}"]
    bias = weights[f"lstm.bias_ih_l0{way}"] + weights[f"lstm.bias_hh_l0{way}"]
    h = c = np.zeros(inner.shape[1])
    out = []
    for row in x:
        i, f, g, o = np.split(outer @ row + inner @ h + bias, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        out.append(h)
    return np.array(out)
