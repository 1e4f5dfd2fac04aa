"""Tiny random models of many families, a tokenizer that knows a hundred words, and a text for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; make test installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; make test installs it")

WORDS = [f"w{i}" for i in range(60)]
SPECIAL = ["<pad>", "<s>", "<mask>", "</s>", "<unk>"]
VOCABULARY = 72  # more rows than the tokenizer has words: the rest are padded
T = transformers
SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 3,
}  # fmt: skip
GPT2: dict[str, Any] = {"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64,
                        "bos_token_id": 1, "eos_token_id": 3, "pad_token_id": 0}  # fmt: skip
OPT: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
                       "ffn_dim": 32, "max_position_embeddings": 64}  # fmt: skip
T5: dict[str, Any] = {"vocab_size": VOCABULARY, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
                      "decoder_start_token_id": 0}  # fmt: skip
TWO_HEADS = {"num_key_value_heads": 2}

FAMILIES = {
    "gpt2": lambda: T.GPT2LMHeadModel(T.GPT2Config(**GPT2)),
    "llama": lambda: T.LlamaForCausalLM(T.LlamaConfig(**SMALL)),
    "llama tied, bfloat16": lambda: T.LlamaForCausalLM(T.LlamaConfig(**SMALL, tie_word_embeddings=True)).to(
        torch.bfloat16
    ),
    "gemma2 with soft-cap": lambda: T.Gemma2ForCausalLM(
        T.Gemma2Config(**SMALL, **TWO_HEADS, head_dim=8, final_logit_softcapping=5.0)
    ),
    "qwen2": lambda: T.Qwen2ForCausalLM(T.Qwen2Config(**SMALL, **TWO_HEADS)),
    "mistral": lambda: T.MistralForCausalLM(T.MistralConfig(**SMALL, **TWO_HEADS)),
    "cohere with logit scale": lambda: T.CohereForCausalLM(T.CohereConfig(**SMALL, **TWO_HEADS, logit_scale=0.0625)),
    "granite with logit scale": lambda: T.GraniteForCausalLM(T.GraniteConfig(**SMALL, **TWO_HEADS, logits_scaling=3.0)),
    "opt": lambda: T.OPTForCausalLM(T.OPTConfig(**OPT, word_embed_proj_dim=16)),
    "opt projected": lambda: T.OPTForCausalLM(T.OPTConfig(**OPT, word_embed_proj_dim=8)),
    "bert": lambda: T.BertForMaskedLM(T.BertConfig(**SMALL)),
    "roberta": lambda: T.RobertaForMaskedLM(T.RobertaConfig(**SMALL)),
    "albert": lambda: T.AlbertForMaskedLM(T.AlbertConfig(**SMALL, embedding_size=8)),
    "t5 tied": lambda: T.T5ForConditionalGeneration(T.T5Config(**T5)),
    "t5 untied": lambda: T.T5ForConditionalGeneration(T.T5Config(**T5, tie_word_embeddings=False)),
    "bert classifier": lambda: T.BertForSequenceClassification(T.BertConfig(**SMALL, num_labels=4)),
    "gpt2 classifier": lambda: T.GPT2ForSequenceClassification(T.GPT2Config(**GPT2, num_labels=5)),
    "bert tagger": lambda: T.BertForTokenClassification(T.BertConfig(**SMALL, num_labels=7)),
}
POSITIONS = {"bert": 2, "roberta": 2, "albert": 2}  # masked: about 15 in 100


def model(name: str, seed: int = 0) -> Any:
    """A model of a family with random weights that are not nearly zero."""
    torch.manual_seed(seed)
    made = FAMILIES[name]()
    with torch.no_grad():
        for p in made.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return made.eval()


def tokenizer() -> Any:
    """A fast tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {w: i for i, w in enumerate([*SPECIAL, *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return T.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", mask_token="<mask>", eos_token="</s>",
        unk_token="<unk>", cls_token="<s>", sep_token="</s>",
    )  # fmt: skip


def documents(count: int = 30, seed: int = 0) -> list[str]:
    """Documents of 5 to 40 words, each fond of some of them."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        fond = rng.dirichlet(np.full(len(WORDS), 0.3))
        out.append(" ".join(WORDS[i] for i in rng.choice(len(WORDS), rng.integers(5, 40), p=fond)))
    return out


def saved(folder: Path, name: str = "llama", seed: int = 0) -> Path:
    """A model's folder with its tokenizer, as users have it."""
    made = model(name, seed)
    made.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
