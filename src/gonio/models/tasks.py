"""What a transformers model is trained to do, and so at which positions its states are taken."""

from __future__ import annotations

from enum import Enum
from typing import Any

from gonio.core.errors import GonioError


class Task(Enum):
    """The value says which states are taken."""

    CAUSAL = "at every position of the text"
    MASKED = "at masked positions, 15 in 100"
    SEQUENCE = "one a document"
    TOKENS = "at every token of the text"
    WRITING = "at every position of the decoder, which reads the same text as the encoder"
    FED = "at every position of the arrays that were fed"


def task_of(model: Any) -> Task:
    """The task of a transformers model, by its class."""
    name = type(model).__name__
    config = getattr(model, "config", None)
    if config is None:
        raise GonioError(
            f"states: a {name} says nothing of how to read text; give its inputs as arrays (feed=, --feed inputs.npz)."
        )
    if name.endswith(("ForImageClassification", "ForAudioClassification", "ForSpeechSeq2Seq")):
        return Task.FED
    if name.endswith("ForSequenceClassification"):
        return Task.SEQUENCE
    if name.endswith("ForTokenClassification"):
        return Task.TOKENS
    if getattr(config, "is_encoder_decoder", False):
        return Task.WRITING
    if name.endswith(("ForMaskedLM", "WithLMHeadModel", "ForPreTraining")) and not getattr(config, "is_decoder", False):
        return Task.MASKED
    if name.endswith(("ForCausalLM", "LMHeadModel", "DoubleHeadsModel", "ForConditionalGeneration")):
        return Task.CAUSAL
    raise GonioError(
        f"states: a {name} has no head that gonio runs; models for causal or masked language modelling, for sequence "
        f"or token classification and encoder-decoders are run, and others with feed= (--feed inputs.npz)."
    )
