"""What feeds the head of a checkpoint: the final norm or activation before it, so that its inputs are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from gonio.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Inputs, Nonnegative
from gonio.load.archive import Archive

Told = tuple[Inputs, str, bool]  # the inputs, how that was decided, and whether it is more than a guess

GELU = Box(-0.1701, np.inf)  # the least value of gelu is -0.16997, of its tanh approximation -0.17004
ONE_PLUS = ("gemma", "gemma2", "gemma3", "gemma3_text", "recurrent_gemma", "paligemma", "qwen3_next", "nemotron")
CENTRED = (
    "cohere",
    "cohere2",
    "modernbert",
    "modernbert-decoder",
    "dbrx",
    "mpt",
    "olmo",
    "nemotron",
)  # LayerNorm, even without shift
ROOT_MEAN_SQUARE = (
    "llama",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "qwen3_next",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "recurrent_gemma",
    "t5",
    "mt5",
    "umt5",
    "longt5",
    "phi3",
    "mamba",
    "mamba2",
    "olmo2",
    "olmo3",
    "granite",
    "deepseek_v2",
    "deepseek_v3",
    "internlm2",
    "baichuan",
    "jamba",
    "smollm3",
    "exaone",
    "glm",
    "glm4",
    "minicpm",
    "xglm_rms",
    "stablelm_rms",
    "falcon_mamba",
    "gpt_oss",
)
# Norms that stand right before a token head, surest first.
TOKEN_NORMS = (
    "cls.predictions.transform.LayerNorm",
    "predictions.LayerNorm",
    "lm_head.layer_norm",
    "vocab_layer_norm",
    "generator_predictions.LayerNorm",
    "lm_predictions.lm_head.LayerNorm",
    "mlm_head.norm",
    "head.norm",
    "decoder.final_layer_norm",
    "decoder.layer_norm",
)
# Models whose layers end in a norm and that have none behind the last layer: that layer's last norm feeds the head.
POST_NORM = {
    "bart": r"decoder\.layers\.(\d+)\.final_layer_norm",
    "marian": r"decoder\.layers\.(\d+)\.final_layer_norm",
    "blenderbot-small": r"decoder\.layers\.(\d+)\.final_layer_norm",
    "openai-gpt": r"h\.(\d+)\.ln_2",
}
ENCODER_END = (r"encoder\.layer\.(\d+)\.output\.LayerNorm", r"transformer\.layer\.(\d+)\.output_layer_norm")
# A norm outside the numbered layers that is not the embeddings' own.
FINAL = re.compile(
    r"(^|\.)(norm|ln_f|norm_f|final_norm|final_layer_?norm|ln_out|layernorm|layer_norm|final_layernorm)\.weight$"
)
NOT_FINAL = re.compile(r"\.\d+\.|embed|vision|visual|image|audio|encoder\.|q_norm|k_norm|projector|pooler")


def inputs_of(archive: Archive, config: Mapping[str, Any], task: str, name: str, dim: int) -> Told:
    """The inputs of a checkpoint's head, and how they were told."""
    kind = str(config.get("model_type", ""))
    if task == "classes":
        return _before_classes(archive, config, kind, name, dim)
    return _before_tokens(archive, config, kind, dim)


def _before_tokens(archive: Archive, config: Mapping[str, Any], kind: str, dim: int) -> Told:
    if any(n.endswith("project_out.weight") for n in archive.entries):
        return AllInputs(), "a projection (project_out) stands between the final norm and the head", False
    for stem in TOKEN_NORMS:
        norm = _named(archive, stem, dim)
        if norm:
            return _norm(archive, norm, kind)
    if kind in POST_NORM:
        norm = _last(archive, POST_NORM[kind], dim)
        if norm:
            return _norm(archive, norm, kind)
    if kind == "olmo":
        return AfterLayerNorm(np.ones(dim)), "olmo ends in a LayerNorm without gain or shift", True
    finals = [
        n for n, e in archive.entries.items() if FINAL.search(n) and not NOT_FINAL.search(n) and e.shape == (dim,)
    ]
    if len(finals) == 1:
        return _norm(archive, finals[0].removesuffix(".weight"), kind)
    found = "no final norm was recognised" if not finals else f"{len(finals)} norms could be the final one"
    return AllInputs(), f"{found}, so nothing is excluded", False


def _before_classes(archive: Archive, config: Mapping[str, Any], kind: str, name: str, dim: int) -> Told:
    def has(ending: str) -> bool:
        return any(n == ending or n.endswith("." + ending) for n in archive.entries)

    if has("pre_classifier.weight"):
        return Nonnegative(), "a ReLU stands before the classifier (pre_classifier)", True
    if name.endswith("ForSequenceClassification"):
        if has("classifier.out_proj.weight") and has("classifier.dense.weight"):
            if kind == "electra":
                return GELU, "a gelu stands before classifier.out_proj", True
            return Box(-1, 1), "a tanh stands before classifier.out_proj", True
        if has("classification_head.dense.weight"):
            return Box(-1, 1), "a tanh stands before classification_head.out_proj", True
        if has("score.weight"):
            return _before_tokens(archive, config, kind, dim)
        if kind in ("deberta", "deberta-v2") and str(config.get("pooler_hidden_act", "gelu")) == "gelu":
            return GELU, "a gelu stands before the classifier (the pooler)", True
        if has("pooler.dense.weight") or (kind == "albert" and has("pooler.weight")):
            return Box(-1, 1), "a tanh stands before the classifier (the pooler)", True
    if name.endswith("ForTokenClassification"):
        if has("score.weight"):
            return _before_tokens(archive, config, kind, dim)
        for pattern in ENCODER_END:
            norm = _last(archive, pattern, dim)
            if norm and kind not in ("deberta-v2",):
                return _norm(archive, norm, kind)
    if name.endswith("ForImageClassification") and kind in ("vit", "deit"):
        norm = _named(archive, "layernorm", dim)
        if norm:
            return _norm(archive, norm, kind)
    return AllInputs(), f"what feeds the classifier of {name or 'this model'} is not known here", False


def _named(archive: Archive, stem: str, dim: int) -> str | None:
    """The norm whose name ends so and is as wide as the head."""
    for n, e in archive.entries.items():
        if (n == stem + ".weight" or n.endswith("." + stem + ".weight")) and e.shape == (dim,):
            return n.removesuffix(".weight")
    return None


def _last(archive: Archive, pattern: str, dim: int) -> str | None:
    """The norm of the layer with the highest number."""
    found: list[tuple[int, str]] = []
    for n, e in archive.entries.items():
        hit = re.search(pattern + r"\.weight$", n)
        if hit and e.shape == (dim,):
            found.append((int(hit.group(1)), n.removesuffix(".weight")))
    return max(found)[1] if found else None


def _norm(archive: Archive, stem: str, kind: str) -> Told:
    gain = archive.vector(stem + ".weight").astype(np.float64)
    one_plus = kind in ONE_PLUS
    if one_plus:
        gain = gain + 1.0
    told = f"{stem}{', gain 1 + weight' if one_plus else ''}"
    if stem + ".bias" in archive.entries:
        return AfterLayerNorm(gain, archive.vector(stem + ".bias")), f"LayerNorm {told}", True
    if kind in CENTRED:
        return AfterLayerNorm(gain), f"LayerNorm {told}, without shift", True
    sure = kind in ROOT_MEAN_SQUARE
    why = "" if sure else " (a gain without shift is taken for an RMSNorm)"
    return AfterRMSNorm(gain), f"RMSNorm {told}{why}", sure
