"""A Hugging Face checkpoint: config, tensors and tokenizer together tell what the head is.

Nothing here opens files: the tensors come as an Archive, the files beside them through a function, so that a folder,
a model in memory and a model on the hub are read by the same rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from gonio.errors import LoadError
from gonio.load import names
from gonio.load.archive import Archive
from gonio.load.draft import Draft
from gonio.load.feeds import inputs_of
from gonio.load.labels import Files, of_classes, of_tokens

Task = Literal["tokens", "classes", "none", "unknown"]

TOKEN_HEADS = (
    "lm_head.decoder.weight",
    "lm_head.weight",
    "embed_out.weight",
    "cls.predictions.decoder.weight",
    "predictions.decoder.weight",
    "vocab_projector.weight",
    "generator_lm_head.weight",
    "mlm_head.decoder.weight",
    "lm_predictions.lm_head.weight",
    "pred_layer.proj.weight",
    "output_layer.weight",
    "lm_loss.weight",
    "output.weight",
    "head.weight",
    "decoder.weight",
)
# Endings that other layers bear too: they are the token head only with one row a token.
COMMON = ("output.weight", "head.weight", "decoder.weight", "output_layer.weight")
SURE = tuple(h for h in TOKEN_HEADS if h not in COMMON)
CLASS_HEADS = (
    "classifier.out_proj.weight",
    "classification_head.out_proj.weight",
    "logits_proj.weight",
    "classifier.dense2.weight",
    "classifier.weight",
    "classifier.1.weight",
    "score.weight",
    "cls_classifier.weight",
    "head.weight",
    "fc.weight",
)
EMBEDDINGS = (
    "decoder.embed_tokens.weight",
    "embed_tokens.weight",
    "wte.weight",
    "tokens_embed.weight",
    "word_embeddings.weight",
    "embed_in.weight",
    "shared.weight",
    "tok_embeddings.weight",
    "word_embedding.weight",
    "word_embeddings.word_embeddings.weight",
    "tokens.weight",
    "embeddings.weight",
    "embedding.weight",
    "w.weight",
)
# Where a head keeps its bias when its weight is the table of token embeddings.
TIED_BIASES = (
    "lm_head.bias",
    "cls.predictions.bias",
    "cls.predictions.decoder.bias",
    "predictions.bias",
    "vocab_projector.bias",
    "generator_lm_head.bias",
    "final_logits_bias",
    "decoder.bias",
    "mlm_head.bias",
    "pred_layer.proj.bias",
    "lm_loss.bias",
)
TOKEN_TASKS = (
    "ForCausalLM",
    "LMHeadModel",
    "ForMaskedLM",
    "ForConditionalGeneration",
    "ForPreTraining",
    "ForLMHead",
    "ForTextToText",
    "MarianMTModel",
    "EncoderDecoderModel",
    "DoubleHeadsModel",
    "BertGenerationDecoder",
)  # read before the endings of headless models: some of these end in "Model" too
CLASS_TASKS = (
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForImageClassification",
    "ForAudioClassification",
    "ForVideoClassification",
    "ForAudioFrameClassification",
)
OTHER_TASKS = {
    "ForQuestionAnswering": "scores positions, not labels",
    "ForMultipleChoice": "scores its candidates with one row",
    "ForNextSentencePrediction": "has two rows; name them with tensor='cls.seq_relationship.weight'",
    "ElectraForPreTraining": "detects replaced tokens with one row",
    "FunnelForPreTraining": "detects replaced tokens with one row",
    "ForImageClassificationWithTeacher": "averages two heads",
}
NUMBERED = re.compile(r"\.\d+\.")
# The setting by which these model types multiply their logits.
MULTIPLIED = {
    "cohere": "logit_scale",
    "cohere2": "logit_scale",
    "cohere2_moe": "logit_scale",
    "cohere_compass_text": "logit_scale",
    "falcon_h1": "lm_head_multiplier",
    "hyperclovax": "logits_scaling",
    "muse_glimmer_text": "output_multiplier",
    "muse_spark_text": "output_multiplier",
}
SOFTCAPS = ("final_logit_softcapping", "logits_soft_cap", "output_logit_soft_cap")


def parse_config(raw: bytes, place: str) -> dict[str, Any]:
    """config.json as a dict; multimodal models keep the language model's part in text_config, which then leads."""
    try:
        config = json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise LoadError(f"load: {place} is not valid JSON ({e}); write it anew or remove it.") from None
    if not isinstance(config, dict):
        raise LoadError(f"load: {place} is not a JSON object; write it anew or remove it.")
    return config


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with its text_config (or decoder) laid over it; architectures stay the whole model's."""
    out = dict(config)
    for part in ("text_config", "language_config", "llm_config", "decoder"):
        inner = config.get(part)
        if isinstance(inner, Mapping):
            out |= {k: v for k, v in inner.items() if v is not None and k not in ("architectures",)}
            # Two whole models put together: whether the decoder's head is tied is the decoder's own affair.
            apart = str(config.get("model_type", "")).endswith("encoder-decoder")
            if config.get("tie_word_embeddings") is not None and not apart:
                out["tie_word_embeddings"] = config["tie_word_embeddings"]
            break
    return out


def task_of(config: Mapping[str, Any], place: str) -> tuple[Task, str]:
    """What the model is for, from its architecture's name."""
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        return "unknown", ""
    name = str(architectures[0])
    for ending, why in OTHER_TASKS.items():
        if name.endswith(ending):
            raise _refused(place, name, why)
    if name.endswith(TOKEN_TASKS):
        return "tokens", name
    if name.endswith(CLASS_TASKS):
        return "classes", name
    if name.endswith(("Model", "Encoder", "EncoderModel")):
        return "none", name
    return "unknown", name


def _refused(place: str, name: str, why: str) -> LoadError:
    return LoadError(f"load: {place} is a {name}, whose head {why}; gonio reads heads with one row a label.")


def has(archive: Archive, endings: tuple[str, ...]) -> bool:
    """Whether there is a tensor, of any shape, with one of these endings (whole name parts only)."""
    return any(n == ending or n.endswith("." + ending) for n in archive.entries for ending in endings)


def find(archive: Archive, endings: tuple[str, ...], rows: int | None = None) -> str | None:
    """The first tensor with one of these endings (whole name parts only), two axes, and that many rows if given.

    Numbered layers are passed over: what stands in one of them is no head, whatever its name.
    """
    for ending in endings:
        hits = [
            n
            for n, e in archive.entries.items()
            if e.is_matrix
            and (n == ending or n.endswith("." + ending))
            and (rows is None or e.shape[0] == rows)
            and not NUMBERED.search(n.removesuffix(ending))
        ]
        # Of several (an encoder's and a decoder's), the decoder's; of equals, the outermost.
        if hits:
            return min(hits, key=lambda n: ("encoder" in n, "vision" in n, n.count("."), n))
    return None


def draft(archive: Archive, whole: Mapping[str, Any], files: Files, tensor: str | None) -> Draft:
    """The head of a checkpoint."""
    config = flatten(whole)
    place = archive.place
    if tensor is not None:
        task, name, weight, why = _named(archive, config, place, tensor)
    else:
        task, name, weight, why = _weight(archive, config, place)
    if task == "none":
        out = Draft(place, archive.format, names.rows_of(archive, weight), link="cosine")
        out.decide(
            "link",
            f"{name or 'the config'} has no head: these are input embeddings, compared by cosine",
            assumed=not name,
        )
        out.decide("inputs", "embeddings compared with each other; nothing feeds them")
    else:
        tied = weight in (find(archive, EMBEDDINGS, _vocabulary(config)), find(archive, EMBEDDINGS))
        # Classifiers keep these settings in their config, but only a token head uses them.
        factor, scaling = _factor(config) if task == "tokens" else (1.0, "")
        out = Draft(place, archive.format, names.rows_of(archive, weight, factor=factor))
        out.factor = factor
        if scaling:
            out.decide("scale", scaling)
        _link(out, config, task, name)
        bias = _bias(archive, weight, out.rows.shape[0], tied)
        if bias:
            out.bias = archive.vector(bias)
            out.decide("bias", bias)
            out.tensors["bias"] = bias
        else:
            out.decide("bias", "")
        if task == "tokens":
            _softcap(out, config)
        if task != "unknown":
            out.inputs, told, known = inputs_of(archive, config, task, name, out.rows.shape[1])
            out.decide("inputs", told, assumed=not known)
    out.decide("weight", f"{weight}, {why}")
    out.tensors["W"], out.file = weight, archive.holder(weight)
    _labels(out, config, task, files)
    out.bytes_read = archive.bytes_read
    return out


def _named(archive: Archive, config: Mapping[str, Any], place: str, tensor: str) -> tuple[Task, str, str, str]:
    """Task and architecture where the caller names the tensor: known if it is the one that would be taken anyway."""
    weight, why = names.choose(archive, tensor).name, "named by the caller"
    try:
        task, name, usual, _ = _weight(archive, config, place)
    except LoadError:  # the caller names a tensor because the usual way is barred
        task, name, usual = "none", "", None
    if weight == usual and task != "none":
        return task, name, weight, why
    if weight == _token_head(archive, config):
        return "tokens", "", weight, why
    if weight == find(archive, CLASS_HEADS):
        return "classes", "", weight, why
    return "unknown", "", weight, why


def _vocabulary(config: Mapping[str, Any]) -> int | None:
    sizes = (config.get(key) for key in ("padded_vocab_size", "vocab_size"))
    return next((n for n in sizes if isinstance(n, int) and n > 0), None)


def _token_head(archive: Archive, config: Mapping[str, Any]) -> str | None:
    """The output head: one with a row a token if there is one, else any whose name leaves no doubt."""
    vocabulary = _vocabulary(config)
    return (find(archive, TOKEN_HEADS, vocabulary) if vocabulary else None) or find(archive, SURE)


def _weight(archive: Archive, config: Mapping[str, Any], place: str) -> tuple[Task, str, str, str]:
    """Task, architecture, and the tensor of the head with the reason for it."""
    task, name = task_of(config, place)
    vocabulary = _vocabulary(config)
    if task == "classes":
        if has(archive, ("dist_head.weight",)) and has(archive, ("head.weight",)):
            raise _refused(place, name, "averages two heads (head.weight and dist_head.weight)")
        weight = find(archive, CLASS_HEADS)
        if weight is None:
            choice = names.choose(archive, None)
            return task, name, choice.name, choice.why
        return task, name, weight, f"the head of {name}"
    if task in ("tokens", "unknown"):
        if config.get("model_type") == "mobilebert" and has(archive, ("cls.predictions.dense.weight",)):
            joined = "is made of two tensors side by side (the embeddings and cls.predictions.dense.weight)"
            raise _refused(place, name or "MobileBERT", joined)
        weight = _token_head(archive, config)
        if name.endswith("ForPreTraining") and weight is None and not has(archive, TIED_BIASES):
            raise _refused(place, name, "scores no tokens: no token head and no bias of one is in its files")
        if weight is not None:
            told = name or "by its name"
            return "tokens", name, weight, f"the output head ({told})"
    table = find(archive, EMBEDDINGS, vocabulary) or find(archive, EMBEDDINGS)
    if task == "tokens":
        if config.get("tie_word_embeddings") is False:
            raise LoadError(
                f"load: {place} is a {name} with tie_word_embeddings false and no output head in its files; it has "
                f"{archive.candidates()}. Name one with tensor=."
            )
        if table is None:
            raise LoadError(
                f"load: no output head and no token embeddings were found in {place}; it has "
                f"{archive.candidates()}. Name one with tensor=."
            )
        return task, name, table, f"the token embeddings, tied to the head of {name}"
    if task == "unknown":
        weight = find(archive, CLASS_HEADS)
        if weight is not None:
            return "classes", name, weight, "by its name"
    if table is None:
        choice = names.choose(archive, None)
        return "none", name, choice.name, choice.why
    return "none", name, table, "the token embeddings"


def _factor(config: Mapping[str, Any]) -> tuple[float, str]:
    """The constant by which some architectures multiply their logits."""
    kind = config.get("model_type")

    def number(key: str) -> float:
        value = config.get(key)
        return float(value) if isinstance(value, (int, float)) and value > 0 else 1.0

    # Only these: MPT's config has a logit_scale too, which transformers does not use.
    multiplied = MULTIPLIED.get(str(kind))
    if multiplied:
        factor = number(multiplied)
        return factor, f"rows times {factor:g} ({multiplied} of the config)" if factor != 1 else ""
    if kind in ("inkling_text", "inkling_mm_model"):
        factor = 1 / number("logits_mup_width_multiplier")
        return factor, f"rows times {factor:g} (logits_mup_width_multiplier of the config)" if factor != 1 else ""
    if "logits_scaling" in config:
        factor = 1 / number("logits_scaling")
        return factor, f"rows times {factor:g} (logits_scaling of the config)" if factor != 1 else ""
    if kind in ("minicpm", "minicpm3") and "dim_model_base" in config:
        factor = number("dim_model_base") / number("hidden_size")
        return factor, f"rows times {factor:g} (dim_model_base of the config)" if factor != 1 else ""
    # Newer T5 configs say outright whether they scale; older ones do whenever the head is tied.
    scaled = config.get("scale_decoder_outputs", config.get("tie_word_embeddings") is not False)
    if kind in ("t5", "mt5", "umt5", "longt5", "switch_transformers", "udop") and "d_model" in config and scaled:
        factor = number("d_model") ** -0.5
        return factor, f"rows times {factor:g} ({kind} scales its decoder's output by d_model^-1/2)"
    return 1.0, ""


def _link(out: Draft, config: Mapping[str, Any], task: Task, name: str) -> None:
    problem = config.get("problem_type")
    if task == "classes" and problem == "multi_label_classification":
        out.link = "sigmoid"
        out.decide("link", "problem_type is multi_label_classification")
    elif task == "classes" and (problem == "regression" or out.rows.shape[0] == 1):
        out.link = "dot"
        out.decide("link", "a regression: its scores are not turned into choices")
    elif task == "classes" and problem is None and name:
        out.decide("link", f"{name} without a problem_type chooses one class")
    elif task in ("tokens", "classes") and name:
        out.decide("link", f"{name} chooses one {'token' if task == 'tokens' else 'class'}")


def _bias(archive: Archive, weight: str, rows: int, tied: bool) -> str | None:
    """The bias of the head: beside the weight, on its parent, or where tied heads keep it."""
    usual = None if tied else names.bias_of(archive, weight)
    tries = [*([usual] if usual else []), *TIED_BIASES]
    for ending in tries:
        for n, e in archive.entries.items():
            if (n == ending or n.endswith("." + ending)) and e.shape in ((rows,), (1, rows)) and "float" in e.dtype:
                stem = re.sub(r"\.?(decoder\.)?(weight|bias)$", "", weight)
                if n == usual or tied or n.startswith(stem) or ending == "final_logits_bias":
                    return n
    return None


def _softcap(out: Draft, config: Mapping[str, Any]) -> None:
    key = next((k for k in SOFTCAPS if config.get(k)), None)
    if key is not None:
        try:
            out.softcap = float(config[key])
        except (TypeError, ValueError):
            raise LoadError(f"load: {key} of {out.place} is {config[key]!r}; a number is needed.") from None
        out.decide("softcap", f"{key} of the config")


def _labels(out: Draft, config: Mapping[str, Any], task: Task, files: Files) -> None:
    n = out.rows.shape[0]
    if task == "classes":
        out.labels = of_classes(config, n)
        if out.labels:
            out.decide("labels", "id2label of the config")
        return
    found = of_tokens(files, n)
    vocabulary = config.get("vocab_size")
    if found is not None:
        out.labels, out.padded, where = found
        out.decide("labels", where)
        if out.padded:
            out.decide("padded", f"{len(out.padded)} of {n} rows have no token in {where}")
    elif isinstance(vocabulary, int) and 0 < vocabulary < n:
        out.padded = tuple(range(vocabulary, n))
        out.decide("padded", f"the table has {n} rows and vocab_size is {vocabulary}")
