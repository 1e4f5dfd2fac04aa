"""Dialled checkpoints, read back by transformers: every prediction as before."""

from __future__ import annotations

import os

import pytest

import gonio
from gonio import dial
from gonio.gauge.export import export, measure, measure_tables
from gonio.gauge.reach import cosine

_safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed; make test installs it")
load_file, save_file = _safetensors.load_file, _safetensors.save_file

torch = pytest.importorskip("torch", reason="torch is not installed; make test installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; make test installs it")

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=97)
DECODER = SMALL | dict(num_key_value_heads=2, max_position_embeddings=64)
MODELS = {
    "gpt2": ("GPT2LMHeadModel", dict(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=64)),
    "llama untied": ("LlamaForCausalLM", DECODER | dict(tie_word_embeddings=False)),
    "llama": ("LlamaForCausalLM", DECODER | dict(tie_word_embeddings=True)),
    "mistral": ("MistralForCausalLM", DECODER | dict(tie_word_embeddings=True)),
    "qwen2": ("Qwen2ForCausalLM", DECODER | dict(tie_word_embeddings=True)),
    "qwen3": ("Qwen3ForCausalLM", DECODER | dict(tie_word_embeddings=True, head_dim=8)),
    "gemma": ("GemmaForCausalLM", DECODER | dict(head_dim=8)),
    "gemma3": ("Gemma3ForCausalLM", DECODER | dict(head_dim=8)),
    "phi3": ("Phi3ForCausalLM", DECODER | dict(tie_word_embeddings=True, pad_token_id=0)),
    "olmo2": ("Olmo2ForCausalLM", DECODER | dict(tie_word_embeddings=True)),
    "stablelm": ("StableLmForCausalLM", DECODER | dict(tie_word_embeddings=True)),
    "falcon": ("FalconForCausalLM", SMALL),
    "mpt": ("MptForCausalLM", dict(vocab_size=97, d_model=32, n_layers=2, n_heads=4)),
    "bloom": ("BloomForCausalLM", dict(vocab_size=97, hidden_size=32, n_layer=2, n_head=4)),
    "cohere": ("CohereForCausalLM", DECODER | dict(logit_scale=0.25)),
    "granite": ("GraniteForCausalLM", DECODER | dict(logits_scaling=4.0, tie_word_embeddings=True)),
    "opt": ("OPTForCausalLM", dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, word_embed_proj_dim=32)),
    "t5": ("T5ForConditionalGeneration", dict(vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0)),
    "mt5": ("MT5ForConditionalGeneration", dict(vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0, tie_word_embeddings=True)),
    "umt5": ("UMT5ForConditionalGeneration", dict(vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0, tie_word_embeddings=True)),
    "bert": ("BertForMaskedLM", SMALL),
    "roberta": ("RobertaForMaskedLM", SMALL),
    "xlm-roberta": ("XLMRobertaForMaskedLM", SMALL),
    "albert": ("AlbertForMaskedLM", SMALL | dict(embedding_size=16)),
    "electra": ("ElectraForMaskedLM", SMALL | dict(embedding_size=16)),
    "distilbert": ("DistilBertForMaskedLM", dict(vocab_size=97, dim=32, n_layers=2, n_heads=4, hidden_dim=48)),
}  # fmt: skip


def tiny(kind: str):
    torch.manual_seed(0)
    architecture, settings = MODELS[kind]
    cls = getattr(transformers, architecture)
    model = cls(cls.config_class(**settings)).eval()
    with torch.no_grad():  # a fresh model's biases are zero, and a bias that is lost would not be missed
        for p in model.parameters():
            if p.ndim == 1:
                p.add_(0.3 * torch.randn_like(p))
    return model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "form"), [(k, "safetensors") for k in MODELS] + [(k, "torch") for k in ("gpt2", "llama untied", "bert")]
)
def test_transformers_reads_the_dialled_model_and_predicts_the_same(kind, form, tmp_path):
    model = tiny(kind)
    model.save_pretrained(tmp_path / "in", max_shard_size="40KB" if form == "safetensors" else "5GB")
    if form == "torch":
        torch.save(model.state_dict(), tmp_path / "in" / "pytorch_model.bin")
        os.unlink(tmp_path / "in" / "model.safetensors")
        state = torch.load(tmp_path / "in" / "pytorch_model.bin", weights_only=True)
        if kind != "llama untied":  # the file as an older library wrote it: the tied head is not in it
            for name in [n for n in state if n in ("lm_head.weight", "cls.predictions.decoder.weight")]:
                del state[name]
            torch.save(state, tmp_path / "in" / "pytorch_model.bin")
    head = gonio.load(tmp_path / "in")
    result = dial(head, 11, 42, cosine=-1)
    written = export(result, tmp_path / "out")
    assert written.untied == (kind != "llama untied")
    again = type(model).from_pretrained(tmp_path / "out").double().eval()
    model = model.double()  # what is claimed is about the numbers in the file, not about a run in float32
    rows = again.get_output_embeddings().weight.detach().double().numpy()
    assert cosine(rows[11], rows[42]) == pytest.approx(-1, abs=1e-6)
    tokens = torch.randint(3, 97, (4, 12), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        more = {"decoder_input_ids": tokens[:, :5]} if "t5" in kind else {}
        p, q = (m(input_ids=tokens, **more).logits.softmax(-1) for m in (model, again))
    proven, _ = measure(written, result)
    assert (p - q).abs().max() <= proven + 1e-12
    assert proven < 1e-5
    assert not torch.allclose(model.get_output_embeddings().weight, again.get_output_embeddings().weight, atol=1e-3)
    assert torch.equal(model.get_input_embeddings().weight, again.get_input_embeddings().weight)


BASE = SMALL | dict(max_position_embeddings=64)
TABLES = {
    "bert": ("BertModel", BASE), "roberta": ("RobertaModel", BASE), "xlm-roberta": ("XLMRobertaModel", BASE),
    "camembert": ("CamembertModel", BASE), "electra": ("ElectraModel", BASE | dict(embedding_size=16)),
    "albert": ("AlbertModel", BASE | dict(embedding_size=16)), "ernie": ("ErnieModel", BASE | dict(use_task_id=True)),
    "convbert": ("ConvBertModel", BASE | dict(embedding_size=32)), "data2vec-text": ("Data2VecTextModel", BASE),
    "roformer": ("RoFormerModel", BASE | dict(embedding_size=32)), "mpnet": ("MPNetModel", BASE),
    "distilbert": ("DistilBertModel", MODELS["distilbert"][1]), "gpt2": ("GPT2Model", MODELS["gpt2"][1]),
    "openai-gpt": ("OpenAIGPTModel", MODELS["gpt2"][1]), "opt": ("OPTModel", MODELS["opt"][1]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", TABLES)
def test_input_embeddings_move_with_the_table_that_is_added_to_them(kind, tmp_path):
    architecture, settings = TABLES[kind]
    cls = getattr(transformers, architecture)
    torch.manual_seed(0)
    model = cls(cls.config_class(**settings)).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:
                p.add_(0.3 * torch.randn_like(p))
    model.save_pretrained(tmp_path / "in", max_shard_size="40KB" if kind in ("bert", "gpt2") else "5GB")
    head = gonio.load(tmp_path / "in")
    assert head.link == "input"
    assert head.offset_in is not None
    result = dial(head, 11, 42, cosine=-1)
    written = export(result, tmp_path / "out")
    off = measure_tables(written, result)
    assert off < 1e-6
    again, model = cls.from_pretrained(tmp_path / "out").double().eval(), model.double()
    rows = again.get_input_embeddings().weight.detach().numpy()
    assert cosine(rows[11], rows[42]) == pytest.approx(-1, abs=1e-6)
    tokens = torch.randint(3, 97, (4, 12), generator=torch.Generator().manual_seed(1))
    kinds = torch.arange(12)[None].repeat(4, 1) % 2
    typed = kind in ("bert", "ernie", "electra", "albert", "convbert", "roformer")
    with torch.no_grad():
        for more in ({}, *([{"token_type_ids": kinds}] if typed else [])):
            x, y = (m(input_ids=tokens, **more).last_hidden_state for m in (model, again))
            assert (x - y).abs().max() < 100 * off  # two layers enlarge what the rounding of the tables leaves


@pytest.mark.filterwarnings("ignore")
def test_tables_that_are_not_added_to_the_rows_take_up_no_offset(tmp_path):
    cls = transformers.OPTModel  # its rows are widened by a matrix before positions are added
    cls(cls.config_class(**MODELS["opt"][1] | dict(word_embed_proj_dim=16))).save_pretrained(tmp_path / "in")
    assert gonio.load(tmp_path / "in").offset_in is None


CLASSES = {
    "bert": ("BertForSequenceClassification", SMALL | dict(num_labels=5)),
    "roberta": ("RobertaForSequenceClassification", SMALL | dict(num_labels=5)),
    "distilbert": ("DistilBertForSequenceClassification", MODELS["distilbert"][1] | dict(num_labels=5)),
    "bert tokens": ("BertForTokenClassification", SMALL | dict(num_labels=5)),
    "gpt2": ("GPT2ForSequenceClassification", MODELS["gpt2"][1] | dict(num_labels=5, pad_token_id=0)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CLASSES)
def test_classifiers_are_read_back_with_the_same_probabilities(kind, tmp_path):
    architecture, settings = CLASSES[kind]
    cls = getattr(transformers, architecture)
    torch.manual_seed(0)
    model = cls(cls.config_class(**settings)).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:
                p.add_(0.3 * torch.randn_like(p))
    model.save_pretrained(tmp_path / "in")
    result = dial(gonio.load(tmp_path / "in", link="softmax"), 1, 3, cosine=-1)
    written = export(result, tmp_path / "out")
    again, model = cls.from_pretrained(tmp_path / "out").double().eval(), model.double()
    tokens = torch.randint(3, 97, (4, 12), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        p, q = (m(input_ids=tokens).logits.softmax(-1) for m in (model, again))
    assert not written.untied
    assert (p - q).abs().max() < 1e-6
