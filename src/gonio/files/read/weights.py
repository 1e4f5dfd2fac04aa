"""Which tensor of a checkpoint is the head, and which its bias, where a config tells what the model is for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from gonio.core.archive import Archive
from gonio.core.errors import LoadError
from gonio.files.read import names

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


def named(archive: Archive, config: Mapping[str, Any], place: str, tensor: str) -> tuple[Task, str, str, str]:
    """Task and architecture where the caller names the tensor: known if it is the one that would be taken anyway."""
    weight, why = names.choose(archive, tensor).name, "named by the caller"
    try:
        task, name, usual, _ = weight_of(archive, config, place)
    except LoadError:  # the caller names a tensor because the usual way is barred
        task, name, usual = "none", "", None
    if weight == usual and task != "none":
        return task, name, weight, why
    if weight == _token_head(archive, config):
        return "tokens", "", weight, why
    if weight == find(archive, CLASS_HEADS):
        return "classes", "", weight, why
    if weight in (find(archive, EMBEDDINGS, vocabulary_of(config)), find(archive, EMBEDDINGS)):
        return "none", task_of(config, place)[1], weight, why
    return "unknown", "", weight, why


def vocabulary_of(config: Mapping[str, Any]) -> int | None:
    """How many rows the table of tokens has by the config, padded ones included; None where it does not tell."""
    sizes = (config.get(key) for key in ("padded_vocab_size", "vocab_size"))
    return next((n for n in sizes if isinstance(n, int) and n > 0), None)


def _token_head(archive: Archive, config: Mapping[str, Any]) -> str | None:
    """The output head: one with a row a token if there is one, else any whose name leaves no doubt."""
    vocabulary = vocabulary_of(config)
    return (find(archive, TOKEN_HEADS, vocabulary) if vocabulary else None) or find(archive, SURE)


def weight_of(archive: Archive, config: Mapping[str, Any], place: str) -> tuple[Task, str, str, str]:
    """Task, architecture, and the tensor of the head with the reason for it."""
    task, name = task_of(config, place)
    vocabulary = vocabulary_of(config)
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


def bias_of(archive: Archive, weight: str, rows: int, tied: bool) -> str | None:
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
