"""Checkpoints that transformers writes: the head read by gonio predicts what the model predicts.

Each model is tiny, random and made here. The strongest test there is: what enters the model's own last layer is
recorded, and gonio's head must turn it into the model's own probabilities; and it must lie in the head's inputs.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import gonio
from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, Nonnegative

torch = pytest.importorskip("torch", reason="torch is not installed; make test installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; make test installs it")
pytestmark = pytest.mark.filterwarnings("ignore")  # transformers' own

SMALL = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
DECODER = SMALL | dict(num_key_value_heads=2, max_position_embeddings=64)
ROWS = 97


def build(architecture: str, config: str, **settings):
    torch.manual_seed(0)
    made = getattr(transformers, config)(**settings)
    model = getattr(transformers, architecture)(made).eval()
    with torch.no_grad():  # norms are made of ones and zeros; give them something to say
        for name, p in model.named_parameters():
            if "norm" in name.lower() or "ln_" in name:
                p.add_(0.3 * torch.randn_like(p))
            elif name.endswith("bias"):
                p.add_(0.1 * torch.randn_like(p))
    return model


def predictions(model, head, **inputs):
    """What enters the model's last layer, and the logits that come out of the model."""
    kept = {}
    W = head.W.shape
    layers = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and tuple(m.weight.shape) == W]
    last = layers[-1]
    hook = last.register_forward_pre_hook(lambda m, args: kept.update(F=args[0]))
    with torch.no_grad():
        logits = model(**inputs).logits
    hook.remove()
    return kept["F"].reshape(-1, W[1]).double().numpy(), logits.reshape(-1, W[0]).double().numpy()


def tokens(rows=3, length=11, vocabulary=ROWS):
    return torch.randint(3, vocabulary, (rows, length), generator=torch.Generator().manual_seed(1))


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


GPT2 = dict(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=64)
LANGUAGE_MODELS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2, AfterLayerNorm),
    "llama untied": ("LlamaForCausalLM", "LlamaConfig", DECODER | dict(tie_word_embeddings=False), AfterRMSNorm),
    "llama tied": ("LlamaForCausalLM", "LlamaConfig", DECODER | dict(tie_word_embeddings=True), AfterRMSNorm),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", DECODER | dict(head_dim=8), AfterRMSNorm),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", DECODER | dict(head_dim=8, final_logit_softcapping=0.5), AfterRMSNorm),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", DECODER | dict(head_dim=8), AfterRMSNorm),
    "neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL, AfterLayerNorm),
    "cohere": ("CohereForCausalLM", "CohereConfig", DECODER | dict(logit_scale=0.25), AfterLayerNorm),
    "granite": ("GraniteForCausalLM", "GraniteConfig", DECODER | dict(logits_scaling=4.0), AfterRMSNorm),
    "olmo": ("OlmoForCausalLM", "OlmoConfig", DECODER, AfterLayerNorm),
    "phi": ("PhiForCausalLM", "PhiConfig", DECODER, AfterLayerNorm),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, word_embed_proj_dim=32),
        AfterLayerNorm,
    ),
    "opt projected": (
        "OPTForCausalLM",
        "OPTConfig",
        dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, word_embed_proj_dim=16),
        AllInputs,
    ),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(vocab_size=97, hidden_size=32, n_layer=2, n_head=4), AfterLayerNorm),
    "mamba": ("MambaForCausalLM", "MambaConfig", dict(vocab_size=97, hidden_size=32, num_hidden_layers=2), AfterRMSNorm),
    "bert": ("BertForMaskedLM", "BertConfig", SMALL, AfterLayerNorm),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", SMALL, AfterLayerNorm),
    "distilbert": (
        "DistilBertForMaskedLM", "DistilBertConfig", dict(vocab_size=97, dim=32, n_layers=2, n_heads=4, hidden_dim=48), AfterLayerNorm
    ),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", SMALL | dict(embedding_size=16), AfterLayerNorm),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", SMALL | dict(embedding_size=16), AfterLayerNorm),
    "rembert": ("RemBertForMaskedLM", "RemBertConfig", SMALL | dict(input_embedding_size=16, output_embedding_size=16), AfterLayerNorm),
    "xlnet": ("XLNetLMHeadModel", "XLNetConfig", dict(vocab_size=97, d_model=32, n_layer=2, n_head=4, d_inner=48), AllInputs),
    "xlm": ("XLMWithLMHeadModel", "XLMConfig", dict(vocab_size=97, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=64), AllInputs),
    "mpt, its unused logit_scale": (
        "MptForCausalLM", "MptConfig", dict(vocab_size=97, d_model=32, n_heads=4, n_layers=2, logit_scale=0.5), AfterLayerNorm
    ),
    "vaultgemma": ("VaultGemmaForCausalLM", "VaultGemmaConfig", DECODER | dict(head_dim=8), AfterRMSNorm),
    "gpt2 with two heads": ("GPT2DoubleHeadsModel", "GPT2Config", GPT2, AfterLayerNorm),
    "bert generation": ("BertGenerationDecoder", "BertGenerationConfig", SMALL | dict(is_decoder=True), AllInputs),
    "modernbert": (
        "ModernBertForMaskedLM", "ModernBertConfig", SMALL | dict(pad_token_id=0, cls_token_id=1, sep_token_id=2,
        bos_token_id=1, eos_token_id=2), AfterLayerNorm,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_a_language_models_head_predicts_what_the_model_predicts(kind, tmp_path):
    architecture, config, settings, fed = LANGUAGE_MODELS[kind]
    model = build(architecture, config, **settings)
    model.save_pretrained(tmp_path)
    head = gonio.load(tmp_path)
    assert head.shape[0] == ROWS
    assert head.link == "softmax"
    assert "link" not in head.source.assumed
    assert type(head.inputs) is fed
    F, logits = predictions(model, head, input_ids=tokens())
    assert head.inputs.contains(F).all()
    assert np.allclose(head.probabilities(F), softmax(logits), atol=1e-5)
    assert np.allclose(head.logits(F), logits, atol=2e-4 * max(1, np.abs(logits).max()))
    if fed is AfterLayerNorm:
        z = (F - head.inputs.shift) / head.inputs.gain
        assert np.abs(z.sum(axis=1)).max() < 1e-3
        assert (0.9 * F.shape[1] < (z * z).sum(axis=1)).all()  # epsilon keeps it just below the sphere
        assert ((z * z).sum(axis=1) < F.shape[1] * (1 + 1e-5)).all()
    elif fed is AfterRMSNorm:
        z = F / head.inputs.gain
        assert (0.9 * F.shape[1] < (z * z).sum(axis=1)).all()  # epsilon keeps it just below the sphere
        assert ((z * z).sum(axis=1) < F.shape[1] * (1 + 1e-5)).all()
    assert gonio.load(model).digest == head.digest  # the model in memory is read by the same rules


CLASSIFIERS = {
    "bert": ("BertForSequenceClassification", "BertConfig", SMALL, Box),
    "roberta": ("RobertaForSequenceClassification", "RobertaConfig", SMALL, Box),
    "electra": ("ElectraForSequenceClassification", "ElectraConfig", SMALL, Box),
    "distilbert": (
        "DistilBertForSequenceClassification", "DistilBertConfig", dict(vocab_size=97, dim=32, n_layers=2, n_heads=4, hidden_dim=48), Nonnegative
    ),
    "albert": ("AlbertForSequenceClassification", "AlbertConfig", SMALL | dict(embedding_size=16), Box),
    "llama": ("LlamaForSequenceClassification", "LlamaConfig", DECODER | dict(pad_token_id=0), AfterRMSNorm),
    "bert tokens": ("BertForTokenClassification", "BertConfig", SMALL, AfterLayerNorm),
    "distilbert tokens": (
        "DistilBertForTokenClassification", "DistilBertConfig", dict(vocab_size=97, dim=32, n_layers=2, n_heads=4, hidden_dim=48), AfterLayerNorm
    ),
}  # fmt: skip


@pytest.mark.parametrize("problem", [None, "single_label_classification", "multi_label_classification"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_classifiers_head_predicts_what_the_model_predicts(kind, problem, tmp_path):
    architecture, config, settings, fed = CLASSIFIERS[kind]
    names = {0: "joy", 1: "anger", 2: "fear", 3: "none"}
    model = build(
        architecture,
        config,
        id2label=names,
        label2id={v: k for k, v in names.items()},
        problem_type=problem,
        **settings,
    )
    model.save_pretrained(tmp_path)
    head = gonio.load(tmp_path)
    assert head.labels == tuple(names.values())
    assert head.link == ("sigmoid" if problem and problem.startswith("multi") else "softmax")
    assert type(head.inputs) is fed
    F, logits = predictions(model, head, input_ids=tokens())
    if kind == "llama":  # every position is scored, the last one is given out
        F = F.reshape(3, -1, F.shape[1])[:, -1]
    assert np.allclose(head.logits(F), logits, atol=1e-5)
    if fed in (Box, Nonnegative):
        assert head.inputs.contains(F).all()


T5 = dict(vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0)
BART = dict(vocab_size=97, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48)  # fmt: skip
MORE_CLASSIFIERS = {  # architectures whose classifier is fed in another way, or by what is not known
    "bart": ("BartForSequenceClassification", "BartConfig", BART, Box),
    "mpnet": ("MPNetForSequenceClassification", "MPNetConfig", SMALL, Box),
    "big bird": ("BigBirdForSequenceClassification", "BigBirdConfig", SMALL, AllInputs),
    "roformer": ("RoFormerForSequenceClassification", "RoFormerConfig", SMALL, AllInputs),
    "gemma2": ("Gemma2ForSequenceClassification", "Gemma2Config", DECODER | dict(head_dim=8, final_logit_softcapping=0.5), AfterRMSNorm),
    "t5": ("T5ForSequenceClassification", "T5Config", T5 | dict(eos_token_id=2), Box),
    "t5 tokens": ("T5ForTokenClassification", "T5Config", T5, AllInputs),
    "xlm-roberta tokens": ("XLMRobertaForTokenClassification", "XLMRobertaConfig", SMALL, AfterLayerNorm),
    "megatron tokens": ("MegatronBertForTokenClassification", "MegatronBertConfig", SMALL, AllInputs),
    "canine tokens": ("CanineForTokenClassification", "CanineConfig", SMALL | dict(local_transformer_stride=4), AllInputs),
}  # fmt: skip


@pytest.mark.parametrize("kind", MORE_CLASSIFIERS)
def test_what_feeds_a_classifier_is_told_only_where_it_is_known(kind, tmp_path):
    architecture, config, settings, fed = MORE_CLASSIFIERS[kind]
    model = build(architecture, config, num_labels=4, **({"pad_token_id": 0} | settings))
    model.save_pretrained(tmp_path)
    head = gonio.load(tmp_path)
    assert type(head.inputs) is fed
    assert ("inputs" in head.source.assumed) == (fed is AllInputs)
    assert head.softcap is None
    ids = tokens(3, 8)
    ids[:, -1] = 2  # the end of the sequence, which bart and t5 look for
    F, logits = predictions(model, head, input_ids=ids)
    if len(F) > len(logits):  # every position is scored, the last one is given out
        F = F.reshape(3, -1, F.shape[1])[:, -1]
    assert np.allclose(head.logits(F), logits, atol=1e-5)
    assert head.inputs.contains(F).all()


def test_a_base_model_is_an_embedding_table_and_no_tied_head(tmp_path):
    for architecture, config in (("BertModel", "BertConfig"), ("LlamaModel", "LlamaConfig")):
        settings = SMALL if config == "BertConfig" else DECODER
        build(architecture, config, **settings).save_pretrained(tmp_path / architecture)
        head = gonio.load(tmp_path / architecture)
        assert head.link == "input"
        assert head.shape == (97, 32)
        assert "reads these rows as its input" in head.source.decided["link"]
        assert (head.offset_in is not None) == (architecture == "BertModel")  # rotary positions are not added


def test_seq2seq_heads_are_read(tmp_path):
    marian = BART | dict(decoder_start_token_id=0, pad_token_id=0)
    led = BART | dict(attention_window=4, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64)
    pegasus = BART | dict(attention_type="original_full")
    for architecture, config, settings, fed in (
        ("T5ForConditionalGeneration", "T5Config", T5, AfterRMSNorm),
        ("T5ForConditionalGeneration", "T5Config", T5 | dict(tie_word_embeddings=False), AfterRMSNorm),
        ("BartForConditionalGeneration", "BartConfig", BART, AfterLayerNorm),
        ("MarianMTModel", "MarianConfig", marian, AfterLayerNorm),
        ("LEDForConditionalGeneration", "LEDConfig", led, AfterLayerNorm),
        ("BigBirdPegasusForConditionalGeneration", "BigBirdPegasusConfig", pegasus, AllInputs),
    ):
        folder = tmp_path / f"{architecture}{settings.get('tie_word_embeddings', '')}"
        model = build(architecture, config, **settings)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias += torch.arange(97.0) / 97
        model.save_pretrained(folder)
        head = gonio.load(folder)
        assert type(head.inputs) is fed
        F, logits = predictions(model, head, input_ids=tokens(), decoder_input_ids=tokens(3, 5))
        if architecture.startswith("T5") and settings.get("tie_word_embeddings", True):
            F = F * 32**0.5  # transformers scales the embedding, gonio the rows
        assert np.allclose(head.logits(F), logits, atol=1e-4)
        assert head.inputs.contains(F).all()


def test_the_head_of_two_models_put_together_is_the_decoders(tmp_path):
    bert = transformers.BertConfig(**SMALL)
    made = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(bert, transformers.BertConfig(**SMALL))
    torch.manual_seed(0)
    model = transformers.EncoderDecoderModel(made).eval()
    model.save_pretrained(tmp_path)
    head = gonio.load(tmp_path)
    assert head.source.tensors["bias"] == "decoder.cls.predictions.bias"
    assert type(head.inputs) is AfterLayerNorm
    F, logits = predictions(model, head, input_ids=tokens(), decoder_input_ids=tokens(3, 5))
    assert np.allclose(head.logits(F), logits, atol=1e-5)


@pytest.mark.parametrize("architecture", ["Wav2Vec2ForCTC", "SEWForCTC"])
def test_the_norm_of_the_features_is_not_the_final_norm(architecture, tmp_path):
    sizes = dict(conv_dim=(32, 32), conv_stride=(4, 4), conv_kernel=(8, 8), num_feat_extract_layers=2)
    config = architecture.removesuffix("ForCTC") + "Config"
    settings = SMALL | sizes | dict(num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2)
    model = build(architecture, config, **settings)
    model.save_pretrained(tmp_path)
    head = gonio.load(tmp_path)
    assert head.shape == (97, 32)
    assert head.inputs == AllInputs()
    F, logits = predictions(model, head, input_values=torch.randn(2, 800))
    assert np.allclose(head.logits(F), logits, atol=1e-5)


def test_a_gain_without_shift_in_an_unknown_architecture_is_not_guessed_at(tmp_path):
    build("LlamaForCausalLM", "LlamaConfig", **DECODER).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "mystery"}))
    head = gonio.load(tmp_path)
    assert head.inputs == AllInputs()
    assert "inputs" in head.source.assumed
    assert "what kind of norm it is in the model type 'mystery' is not known" in head.source.decided["inputs"]


def test_a_tensor_that_is_the_head_anyway_may_be_named(tmp_path):
    settings = DECODER | dict(head_dim=8, final_logit_softcapping=0.5)
    build("Gemma2ForCausalLM", "Gemma2Config", **settings).save_pretrained(tmp_path)
    head = gonio.load(tmp_path, tensor="model.embed_tokens.weight")
    assert head.digest == gonio.load(tmp_path).digest
    assert head.softcap == 0.5


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sixteen_bit_sharded_checkpoints_are_read_in_place(kind, tmp_path):
    model = build("LlamaForCausalLM", "LlamaConfig", **DECODER).to(getattr(torch, kind))
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    head = gonio.load(tmp_path)
    assert head.rows.kind == kind
    assert head.rows.stored.base is not None  # a view of the file
    assert np.array_equal(head.W, model.lm_head.weight.detach().float().numpy())


def test_labels_come_from_the_tokenizer_and_rows_beyond_it_are_padded(tmp_path):
    build("GPT2LMHeadModel", "GPT2Config", **GPT2).save_pretrained(tmp_path)
    table = {f"Ġw{i}": i for i in range(90)}
    (tmp_path / "vocab.json").write_text(json.dumps(table))
    head = gonio.load(tmp_path)
    assert head.labels[:2] == ("Ġw0", "Ġw1")
    assert head.labels[96] == "[padded 96]"
    assert head.padded.tolist() == list(range(90, 97))
    assert head.index(" w7") == 7
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<pad>": 90}))
    assert gonio.load(tmp_path).padded.tolist() == list(range(91, 97))
    tokenizer = {"model": {"vocab": table}, "added_tokens": [{"id": 95, "content": "<|end|>"}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    head = gonio.load(tmp_path)
    assert head.labels[95] == "<|end|>"
    assert head.padded.tolist() == [90, 91, 92, 93, 94, 96]


def test_a_bin_folder_is_read_as_the_safetensors_folder(tmp_path):
    model = build("GPT2LMHeadModel", "GPT2Config", **GPT2)
    model.save_pretrained(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.json").write_bytes((tmp_path / "a" / "config.json").read_bytes())
    torch.save(model.state_dict(), tmp_path / "b" / "pytorch_model.bin")
    assert gonio.load(tmp_path / "a").digest == gonio.load(tmp_path / "b").digest


def test_heads_that_score_no_labels_are_refused(tmp_path):
    mobile = SMALL | dict(embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16)
    swift = dict(depths=[1, 1, 1, 1], embed_dims=[8, 8, 8, 8], num_labels=4)
    deit = dict(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8
    )
    mae = deit | dict(decoder_num_attention_heads=4, decoder_hidden_size=32, decoder_num_hidden_layers=1)
    for architecture, config, settings, said in (
        ("BertForQuestionAnswering", "BertConfig", SMALL, "scores positions, not labels"),
        ("ElectraForPreTraining", "ElectraConfig", SMALL, "detects replaced tokens with one row"),
        ("MobileBertForMaskedLM", "MobileBertConfig", mobile, "made of two tensors side by side"),
        ("SwiftFormerForImageClassification", "SwiftFormerConfig", swift, "averages two heads"),
        ("DeiTForImageClassificationWithTeacher", "DeiTConfig", deit, "averages two heads"),
        ("ViTMAEForPreTraining", "ViTMAEConfig", mae, "scores no tokens"),
    ):
        build(architecture, config, **settings).save_pretrained(tmp_path / architecture)
        with pytest.raises(gonio.GonioError, match=said) as e:
            gonio.load(tmp_path / architecture)
        assert "\n" not in str(e.value)


def test_a_pretraining_checkpoint_has_the_head_of_its_masked_tokens(tmp_path):
    build("BertForPreTraining", "BertConfig", **SMALL).save_pretrained(tmp_path)
    head = gonio.load(tmp_path)
    assert head.link == "softmax"
    assert head.source.tensors["bias"] == "cls.predictions.bias"


def test_an_untied_head_that_is_missing_is_not_replaced_by_the_embeddings(tmp_path):
    build("LlamaForCausalLM", "LlamaConfig", **(DECODER | dict(tie_word_embeddings=True))).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    with pytest.raises(gonio.GonioError, match="tie_word_embeddings false and no output head"):
        gonio.load(tmp_path)
