"""A Hugging Face checkpoint: config, tensors and tokenizer together tell what the head is.

Nothing here opens files: the tensors come as an Archive, the files beside them through a function, so that a folder,
a model in memory and a model on the hub are read by the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gonio.core.archive import Archive
from gonio.core.errors import LoadError
from gonio.files.read import names
from gonio.files.read.added import table_added_to
from gonio.files.read.final_norm import inputs_of
from gonio.files.read.head_draft import Draft
from gonio.files.read.labels import Files, of_classes, of_tokens
from gonio.files.read.weights import EMBEDDINGS, Task, bias_of, find, named, vocabulary_of, weight_of

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


def draft(archive: Archive, whole: Mapping[str, Any], files: Files, tensor: str | None) -> Draft:
    """The head of a checkpoint."""
    config = flatten(whole)
    place = archive.place
    if tensor is not None:
        task, name, weight, why = named(archive, config, place, tensor)
    else:
        task, name, weight, why = weight_of(archive, config, place)
    if task == "none":
        out = _input_table(archive, config, files, name, weight)
    else:
        tied = weight in (find(archive, EMBEDDINGS, vocabulary_of(config)), find(archive, EMBEDDINGS))
        # Classifiers keep these settings in their config, but only a token head uses them.
        factor, scaling = _factor(config) if task == "tokens" else (1.0, "")
        out = Draft(place, archive.format, names.rows_of(archive, weight, factor=factor))
        out.factor, out.tied = factor, tied and task == "tokens"
        if scaling:
            out.decide("scale", scaling)
        _link(out, config, task, name)
        bias = bias_of(archive, weight, out.rows.shape[0], tied)
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


def _input_table(archive: Archive, config: Mapping[str, Any], files: Files, name: str, weight: str) -> Draft:
    """The token embeddings of a model, which no prediction reads directly, and what can take up an offset of them."""
    out = Draft(archive.place, archive.format, names.rows_of(archive, weight))
    if weight not in (find(archive, EMBEDDINGS), find(archive, EMBEDDINGS, vocabulary_of(config))):
        out.decide("inputs", "not known, like what the rows are")
        return out
    out.link = "input"
    trained = _compared_by(files)
    out.decide(
        "link",
        f"{name or 'the model'} reads these rows as its input"
        + (f"; what is compared by {trained} is its outputs, not this table" if trained else ""),
        assumed=not name,
    )
    out.decide("inputs", "nothing feeds them: they are what a token becomes first")
    added = table_added_to(archive, config, weight)
    if added is not None:
        out.offset_in = out.tensors["offset"] = added
        # These read token types, where a caller gives some, from the word table itself.
        unless = " (in calls without token_type_ids)" if config.get("model_type") in ("gpt2", "openai-gpt") else ""
        out.decide("offset", f"{added} is added to every row{unless}, so it can take up a vector added to all of them")
    else:
        out.decide("offset", "no table is known that this model adds to every row")
    return out


def _compared_by(files: Files) -> str:
    """How a sentence-transformers folder says that its outputs are compared; empty where it does not say."""
    for name, key in (("config_sentence_transformers.json", "similarity_fn_name"), ("modules.json", "type")):
        raw = files(name)
        try:
            data = json.loads(raw) if raw is not None else None
        except (ValueError, RecursionError):
            continue
        if isinstance(data, Mapping) and isinstance(data.get(key), str):
            return str(data[key])
        if isinstance(data, list) and any(
            str(m.get(key, "")).endswith("Normalize") for m in data if isinstance(m, Mapping)
        ):
            return "cosine (its last module normalises)"
    return ""


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
    out.link = "softmax"
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
    elif task in ("tokens", "classes"):
        out.decide("link", f"by its name the tensor scores {task}; one of them is taken to be chosen", assumed=True)
    else:
        out.link = "unknown"


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
