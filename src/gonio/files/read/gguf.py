"""GGUF, the file of llama.cpp: the output rows of a language model, dequantised only where they are asked for.

What llama.cpp computes from a file decides what is read here: which tensor is the head, which norm feeds it, and by
what the logits are multiplied.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gonio.core import inputs as _inputs
from gonio.core.errors import LoadError
from gonio.files.read.gguf_file import Gguf, open_model
from gonio.files.read.head_draft import Draft

LAYER_NORMS = frozenset({"command-r", "cohere2", "dbrx", "mpt", "olmo"})  # their final norm has no shift
DIVIDED = ("granite", "minicpm")  # architectures whose logit_scale divides the logits; elsewhere it multiplies
GROK = 0.5773502691896257  # grok's logit_scale where an old file does not say
SOFTCAPS = {"gemma2": 30.0, "gemma3n": 30.0}  # what llama.cpp takes where the file does not say


def draft(path: Path, tensor: str | None = None) -> Draft:
    """The head of a GGUF file: `output.weight`, or where that is absent the token embeddings it is tied to.

    A file without an output head (an encoder, an embedding model) gives its token embeddings as a table compared by
    cosine; a classifier or reranker gives its `cls.output.weight`.
    """
    model = open_model(Path(path))
    default, role, why = model.head()
    name = tensor or default
    if name is None:
        raise model.headless()
    if name != default:
        role, why = ("table" if name == "token_embd.weight" else "unknown"), "named by the caller"
    factor, scaling = _logit_scale(model, name) if role == "tokens" else (1.0, "")
    out = Draft(place=model.place, format="gguf", rows=model.rows(name, factor), tensors={"W": name})
    out.decide("weight", f"{name}, {why}")
    if factor != 1.0:
        out.decide("scale", scaling)
    bias = "output.bias" if role == "tokens" else f"{name.removesuffix('.weight')}.bias"
    if bias in model.entries:
        out.bias = model.sized(bias, out.rows.shape[0], "row")
        out.tensors["bias"] = bias
    out.decide("bias", bias if bias in model.entries else "none in the file")
    if role == "tokens":
        out.tied = name == "token_embd.weight"
        _language_model(model, out)
    elif role == "classes":
        _classifier(model, out)
    elif role == "table":
        out.link = "input"
        out.decide("link", f"{why}: the model reads these rows as its input")
        out.decide("inputs", "nothing feeds them: they are what a token becomes first")
        added = next((n for n in ("token_types.weight", "position_embd.weight") if n in model.entries), None)
        out.offset_in = added
        told = f"{added} is added to every row" if added else "no table is known that this model adds to every row"
        out.decide("offset", told)
    if not name.startswith("cls."):
        _name_rows(model, out, vocabulary=name in ("output.weight", "token_embd.weight"))
    out.bytes_read = model.bytes_read
    return out


def _language_model(model: Gguf, out: Draft) -> None:
    """Link, soft-cap and final norm of a language model."""
    arch, d = model.arch, out.rows.shape[1]
    if arch == "wavtokenizer-dec":
        raise LoadError(
            f"load: {model.place} is a {arch}, whose output rows make sound and name nothing; no head is there."
        )
    out.link = "softmax"
    if arch:
        out.decide("link", f"architecture {arch!r} is a language model: softmax over its vocabulary")
    else:
        out.decide("link", "the file names no architecture; taken for a language model", assumed=True)
    cap = model.number("final_logit_softcapping", SOFTCAPS.get(arch, 0.0))
    if cap:
        out.softcap = cap
        told = model.has("final_logit_softcapping")
        out.decide("softcap", f"{arch}.final_logit_softcapping" if told else f"what llama.cpp takes for {arch}")
    stems = ["dec.output_norm", "output_norm", *(["token_embd_norm"] if arch.startswith("lfm2") else [])]
    stem = next((s for s in stems if f"{s}.weight" in model.entries), None)
    if stem:
        _after_norm(model, out, stem)
    elif arch == "olmo":  # the one whose LayerNorm has nothing to learn, and so no tensor
        out.inputs = _inputs.AfterLayerNorm(np.ones(d))
        out.decide("inputs", "architecture 'olmo' ends in a LayerNorm without gain or shift")


def _after_norm(model: Gguf, out: Draft, stem: str) -> None:
    """The inputs that the norm called `stem` leaves, with its gain as stored (Gemma's 1 + weight is folded in)."""
    gain, d = f"{stem}.weight", out.rows.shape[1]
    out.tensors["gain"] = gain
    if f"{stem}.bias" in model.entries:
        out.tensors["shift"] = f"{stem}.bias"
        out.inputs = _inputs.AfterLayerNorm(
            model.sized(gain, d, "dimension"), model.sized(f"{stem}.bias", d, "dimension")
        )
        out.decide("inputs", f"{gain} and {stem}.bias: a LayerNorm feeds the head")
        return
    rms, layer = model.has("attention.layer_norm_rms_epsilon"), model.has("attention.layer_norm_epsilon")
    if model.arch in LAYER_NORMS or stem == "cls.norm" or (layer and not rms):
        out.inputs = _inputs.AfterLayerNorm(model.sized(gain, d, "dimension"))
        out.decide("inputs", f"{gain}: a LayerNorm without shift feeds the head")
    else:
        out.inputs = _inputs.AfterRMSNorm(model.sized(gain, d, "dimension"))
        out.decide("inputs", f"{gain}: an RMSNorm feeds the head", assumed=not rms)


def _logit_scale(model: Gguf, name: str) -> tuple[float, str]:
    """By what llama.cpp multiplies the logits, and where that is said."""
    arch, d = model.arch, model.entries[name].shape[-1]
    factor, why = model.number("logit_scale", GROK if arch == "grok" else 0.0), f"{arch}.logit_scale multiplies"
    if arch in ("minicpm", "minicpm3") and not factor:
        factor, why = 256.0 / d, f"{arch} multiplies by 256 / {d}"
    elif factor and arch.startswith(DIVIDED):
        factor, why = 1.0 / factor, f"{arch}.logit_scale divides"
    factor = factor or 1.0  # zero stands for "not set"
    scale = f"{name.removesuffix('.weight')}.scale"
    if scale in model.entries:
        factor *= float(model.sized(scale, 1, "tensor")[0])
        why += f", {scale} multiplies"
    if not 1e-30 < abs(factor) < 1e30:
        raise LoadError(f"load: {model.place}: {why} the logits by {factor}; a number of moderate size is needed.")
    return factor, f"{why} the logits, so rows are read times {factor:.6g}"


def _classifier(model: Gguf, out: Draft) -> None:
    """Link, inputs and class names of a classifier or reranker."""
    n = out.rows.shape[0]
    if n == 1:
        out.link = "sigmoid"
        out.decide("link", "one score: a reranker, whose relevance is a sigmoid of it", assumed=True)
    else:
        sure = model.arch in ("qwen3", "qwen3vl")  # llama.cpp itself takes the softmax there
        out.link = "softmax"
        out.decide("link", f"a classifier of {n} classes: softmax over them", assumed=not sure)
    names = model.texts(f"{model.arch}.classifier.output_labels")
    if names is not None and len(names) == n:
        out.labels = names
        out.decide("labels", f"{model.arch}.classifier.output_labels")
    if "cls.norm.weight" in model.entries:
        _after_norm(model, out, "cls.norm")
    elif out.tensors["W"] == "cls.output.weight" and "cls.weight" in model.entries:
        out.inputs = _inputs.Box(-1.0, 1.0)
        out.decide("inputs", "cls.weight: a dense layer with tanh feeds the classes")


def _name_rows(model: Gguf, out: Draft, vocabulary: bool) -> None:
    """Token names, and which rows are padding that no token uses; `vocabulary`: whether the rows surely are tokens."""
    n = out.rows.shape[0]
    tokens = model.texts("tokenizer.ggml.tokens") or []
    if not vocabulary:
        if len(tokens) == n:
            out.labels = tokens
            out.decide("labels", "tokenizer.ggml.tokens, which has as many", assumed=True)
        return
    size = int(model.number("vocab_size", 0))
    used = min(n, len(tokens) or n, size if size > 0 else n)
    # llama.cpp's converter fills a padded vocabulary up with tokens that are called after their own number.
    filled = (i for i, x in enumerate(tokens[:used]) if x.startswith("[PAD") and x == f"[PAD{i}]")
    out.padded = (*filled, *range(used, n))
    if tokens or out.padded:
        own = tokens[:n] if tokens else [str(i) for i in range(used)]
        out.labels = [*own, *(f"[padded {i}]" for i in range(len(own), n))]
    if tokens:
        spare = f"; it names {len(tokens):,} tokens and there are {n:,} rows, so the last names are left out"
        out.decide("labels", f"tokenizer.ggml.tokens{spare if len(tokens) > n else ''}", assumed=len(tokens) > n)
    if out.padded:
        out.decide("padded", f"{len(out.padded):,} of {n:,} rows are no token of the tokenizer or beyond vocab_size")
