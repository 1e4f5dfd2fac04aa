"""What feeds the head of a checkpoint: the final norm or activation before it, so that its inputs are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from gonio.core.archive import Archive
from gonio.core.inputs import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Inputs, Nonnegative

Told = tuple[Inputs, str, bool]  # the inputs, how that was decided, and whether it is more than a guess

GELU = Box(-0.1701, np.inf)  # the least value of gelu is -0.16997, of its tanh approximation -0.17004
# Model types whose gain is 1 + weight; all but nemotron's are RMSNorms.
ONE_PLUS = (
    "gemma", "gemma2", "gemma3", "gemma3_text", "minimax_m3_vl", "minimax_m3_vl_text", "nemotron", "paligemma",
    "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next", "recurrent_gemma", "step3p5",
    "step3p7", "t5_gemma_module", "t5gemma", "t5gemma2", "t5gemma2_decoder", "t5gemma2_text", "vaultgemma",
)  # fmt: skip
# LayerNorms, even where they have no shift.
CENTRED = (
    "cohere", "cohere2", "cohere2_moe", "cohere_compass_text", "dbrx", "modernbert", "modernbert-decoder", "mpt",
    "nemotron", "olmo",
)  # fmt: skip
# RMSNorms whose gain is the weight. A gain without shift alone does not tell: LayerNorms may have no shift too.
ROOT_MEAN_SQUARE = (
    "afmoe", "apertus", "arcee", "aria_text", "axk1", "axk2", "baichuan", "bailing_hybrid", "bamba", "beam", "bitnet",
    "chameleon", "csm", "cwm", "deepseek_ocr2_text", "deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4",
    "dia_decoder", "diffllama", "doge", "dots1", "emu3_text_model", "ernie4_5", "ernie4_5_moe",
    "ernie4_5_vl_moe_text", "exaone", "exaone4", "exaone_moe", "falcon_h1", "falcon_mamba", "flex_olmo", "flint",
    "gemma3n_text", "gemma4_text", "gemma4_unified_text", "glm", "glm4", "glm4_moe", "glm4_moe_lite",
    "glm4v_moe_text", "glm4v_text", "glm5_next_text", "glm_moe_dsa", "glm_ocr_text", "gpt_oss", "granite",
    "granite4_vision_text", "granite_swa", "granitemoe", "granitemoe_swa", "granitemoehybrid", "granitemoeshared",
    "helium", "higgs_audio_v2", "hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text", "hy_v3", "hy_v4",
    "hyperclovax", "inkling_text", "internlm2", "jamba", "jetmoe", "kimi_linear", "kolibri1", "kyutai_speech_to_text",
    "laguna", "lfm2", "lfm2_moe", "llama", "llama4_text", "longcat_flash", "longt5", "mamba", "mamba2", "mellum",
    "mimo_v2_flash", "minicpm", "minicpm3", "minimax", "minimax_m2", "ministral", "ministral3", "mistral", "mistral4",
    "mistral_large4_text", "mixtral", "mllama_text_model", "molmo2_text", "moshi", "mt5", "muse_glimmer_text",
    "muse_spark_text", "nemotron_h", "olmo2", "olmo3", "olmo_hybrid", "olmoe", "openai_privacy_filter",
    "paddleocr_vl_text", "phi3", "phi4_multimodal", "pix2struct_text_model", "pop2piano", "qwen2",
    "qwen2_5_omni_text", "qwen2_5_vl_text", "qwen2_moe", "qwen2_vl_text", "qwen3", "qwen3_moe", "qwen3_omni_moe_text",
    "qwen3_vl_moe_text", "qwen3_vl_text", "seed_oss", "smollm3", "solar_open", "switch_transformers", "t5", "udop",
    "umt5", "unlimited_ocr_text", "voxtral_realtime_text", "youtu", "zamba", "zamba2", "zaya",
)  # fmt: skip
# What stands before the classifier of a sequence, by model type, as transformers' source has it.
TANH_POOLER = (
    "albert", "bert", "canine", "ernie", "fnet", "gte", "layoutlm", "luke", "markuplm", "megatron-bert", "mobilebert",
    "nezha", "nomic_bert", "rembert", "roc_bert", "squeezebert", "tapas",
)  # fmt: skip
TANH_OUT_PROJ = (
    "camembert", "data2vec-text", "esm", "ibert", "jina_embeddings_v3", "layoutlmv3", "lilt", "longformer", "mpnet",
    "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
)  # fmt: skip
TANH_HEAD = ("bart", "bigbird_pegasus", "led", "mbart", "mt5", "mvp", "plbart", "t5", "umt5")
# Model types whose token classifier is fed by the last norm of the encoder's last layer, and by nothing behind it.
ENCODER_END_FEEDS = (
    "bert", "big_bird", "camembert", "convbert", "data2vec-text", "deberta", "distilbert", "electra", "ernie", "fnet",
    "layoutlm", "longformer", "luke", "markuplm", "mpnet", "mra", "nystromformer", "rembert", "roberta", "roc_bert",
    "roformer", "xlm-roberta", "yoso",
)  # fmt: skip
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
    "led": r"decoder\.layers\.(\d+)\.final_layer_norm",
    "mvp": r"decoder\.layers\.(\d+)\.final_layer_norm",
    "plbart": r"decoder\.layers\.(\d+)\.final_layer_norm",
    "trocr": r"decoder\.layers\.(\d+)\.final_layer_norm",
    "openai-gpt": r"h\.(\d+)\.ln_2",
}
ENCODER_END = (r"encoder\.layer\.(\d+)\.output\.LayerNorm", r"transformer\.layer\.(\d+)\.output_layer_norm")
# A norm outside the numbered layers that is not the embeddings' own.
FINAL = re.compile(
    r"(^|\.)(norm|ln_f|norm_f|final_norm|final_layer_?norm|ln_out|layernorm|layer_norm|final_layernorm)\.weight$"
)
# In sew models layer_norm stands behind the feature extractor, before all layers.
NOT_FINAL = re.compile(
    r"\.\d+\.|embed|vision|visual|image|audio|feature|(^|\.)sew_?d?\.|encoder\.|q_norm|k_norm|projector|pooler"
)


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
            if kind in TANH_OUT_PROJ:
                return Box(-1, 1), "a tanh stands before classifier.out_proj", True
        if has("classification_head.dense.weight") and kind in TANH_HEAD:
            return Box(-1, 1), "a tanh stands before classification_head.out_proj", True
        if has("score.weight"):
            return _before_tokens(archive, config, kind, dim)
        if kind in ("deberta", "deberta-v2") and str(config.get("pooler_hidden_act", "gelu")) == "gelu":
            return GELU, "a gelu stands before the classifier (the pooler)", True
        # albert has its pooler's weight without "dense"; mobilebert may have been made without a pooler.
        if kind in TANH_POOLER and (has("pooler.dense.weight") or has("pooler.weight")):
            return Box(-1, 1), "a tanh stands before the classifier (the pooler)", True
    if name.endswith("ForTokenClassification"):
        if has("score.weight"):
            return _before_tokens(archive, config, kind, dim)
        for pattern in ENCODER_END if kind in ENCODER_END_FEEDS else ():
            norm = _last(archive, pattern, dim)
            if norm:
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
    told = f"{stem}{', gain 1 + weight' if kind in ONE_PLUS else ''}"
    shifted = stem + ".bias" in archive.entries
    if not shifted and kind not in ONE_PLUS + CENTRED + ROOT_MEAN_SQUARE:
        what = f"the model type {kind!r}" if kind else "this model"
        return AllInputs(), f"{stem} feeds the head, but what kind of norm it is in {what} is not known here", False
    gain = archive.vector(stem + ".weight").astype(np.float64)
    if kind in ONE_PLUS:
        gain = gain + 1.0
    if shifted:
        return AfterLayerNorm(gain, archive.vector(stem + ".bias")), f"LayerNorm {told}", True
    if kind in CENTRED:
        return AfterLayerNorm(gain), f"LayerNorm {told}, without shift", True
    return AfterRMSNorm(gain), f"RMSNorm {told}", True
