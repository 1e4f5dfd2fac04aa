"""Captured states are what the model itself scores: on every architecture its own probabilities come out of them."""

from __future__ import annotations

import numpy as np
import pytest

import gonio
from gonio.core.errors import GonioError
from tests.models import made

torch = made.torch


@pytest.mark.parametrize("name", made.FAMILIES)
def test_the_head_gives_the_models_own_probabilities_from_captured_states(name):
    model = made.model(name).train()
    modes = {k: m.training for k, m in model.named_modules()}
    before = {k: v.clone() for k, v in model.state_dict().items()}
    S = gonio.states(model, made.tokenizer(), made.documents(), tokens=300)
    assert S.difference is not None
    assert S.difference < (2e-2 if "bfloat16" in name else 1e-5)
    assert S.head == gonio.core.states.rows_digest(gonio.load(model))
    assert {k: m.training for k, m in model.named_modules()} == modes
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_states_of_a_causal_model_are_those_of_each_document_alone():
    model, tokenizer, texts = made.model("llama"), made.tokenizer(), made.documents()
    S = gonio.states(model, tokenizer, texts)
    head = gonio.load(model)
    for d in (0, 7, 29):
        ids = torch.tensor([tokenizer(texts[d])["input_ids"]])
        with torch.no_grad():
            own = torch.softmax(model(input_ids=ids).logits[0], -1).numpy()
        here = np.flatnonzero(S.documents == d)
        here = here[np.argsort(S.positions[here])]
        assert S.tokens[here].tolist() == ids[0].tolist()
        assert S.positions[here].tolist() == list(range(ids.shape[1]))
        assert np.abs(head.probabilities(S.F[here]) - own).max() < 1e-5


def test_masked_models_are_read_at_masked_positions_and_the_tokens_are_those_of_the_text():
    model, tokenizer, texts = made.model("bert"), made.tokenizer(), made.documents()
    S = gonio.states(model, tokenizer, texts)
    words = [len(x.split()) for x in texts]
    assert len(S) == sum(max(1, round(0.15 * n)) for n in words)
    for d, at, token in zip(S.documents, S.positions, S.tokens, strict=True):
        assert tokenizer(texts[d])["input_ids"][at] == token
        assert token not in tokenizer.all_special_ids
    again = gonio.states(model, tokenizer, texts)
    assert np.array_equal(S.positions, again.positions)


def test_a_classifier_gives_one_state_a_document():
    for name in ("bert classifier", "gpt2 classifier"):
        S = gonio.states(made.model(name), made.tokenizer(), made.documents(12))
        assert sorted(S.documents.tolist()) == list(range(12))


def test_long_documents_are_read_in_windows_and_keep_their_places():
    texts = [" ".join(made.WORDS[i % 60] for i in range(200))]
    S = gonio.states(made.model("llama"), made.tokenizer(), texts, length=32)
    assert len(S) >= 200
    assert len(set(S.positions.tolist())) == len(S)


def test_at_most_so_many_states_are_taken():
    S = gonio.states(made.model("llama"), made.tokenizer(), made.documents(), tokens=77)
    assert len(S) == len(S.documents) == 77


def test_any_module_with_a_last_linear_layer_is_read():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 6))
    x = np.random.default_rng(0).standard_normal((50, 5)).astype(np.float32)
    found = gonio.states(net, feed={"x": x})
    named = gonio.states(net, feed={"x": x}, head="2")
    with torch.no_grad():
        hidden = net[1](net[0](torch.from_numpy(x))).numpy()
    assert np.abs(found.F - hidden).max() < 1e-6
    assert np.array_equal(found.F, named.F)
    assert found.documents.tolist() == list(range(50))


def test_images_are_fed_as_arrays():
    T = made.transformers
    torch.manual_seed(0)
    vit = T.ViTForImageClassification(
        T.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=8,
                    patch_size=4, num_labels=5)
    ).eval()  # fmt: skip
    pixels = np.random.default_rng(0).random((9, 3, 8, 8), dtype=np.float32)
    S = gonio.states(vit, feed={"pixel_values": pixels})
    assert S.shape == (9, 16)
    with pytest.raises(GonioError, match="reads no text"):
        gonio.states(vit, made.tokenizer(), ["w1 w2"])


def test_speech_is_fed_as_arrays():
    T = made.transformers
    torch.manual_seed(0)
    config = T.WhisperConfig(
        vocab_size=72, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=8, max_source_positions=10,
        max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=3, decoder_start_token_id=1,
    )  # fmt: skip
    whisper = T.WhisperForConditionalGeneration(config).eval()
    feed = {"input_features": np.random.default_rng(0).random((3, 8, 20), dtype=np.float32),
            "decoder_input_ids": np.arange(1, 13).reshape(3, 4)}  # fmt: skip
    S = gonio.states(whisper, feed=feed)
    assert S.shape == (12, 16)


def test_a_head_that_is_not_what_the_model_computes_with_stops_in_a_sentence():
    model = made.model("llama")
    other = gonio.load(made.model("llama", seed=1))
    with pytest.raises(GonioError, match="off the model's own"):
        gonio.states(model, made.tokenizer(), made.documents(), head=other)

    class Adapter(torch.nn.Module):  # as adapters do: a low-rank product beside the head
        def __init__(self, inner):
            super().__init__()
            self.weight, self.inner = inner.weight, inner
            self.low = torch.nn.Parameter(torch.randn(72, 2) @ torch.randn(2, 16))

        def forward(self, x):
            return self.inner(x) + x @ self.low.T

    model.lm_head = Adapter(model.lm_head)
    with pytest.raises(GonioError, match="something stands between them"):
        gonio.states(model, made.tokenizer(), made.documents())


def test_hooks_and_modes_are_put_back_after_an_error():
    model = made.model("llama").train()
    with torch.no_grad():
        model.model.norm.weight[3] = float("nan")
    with pytest.raises(GonioError, match="not finite"):
        gonio.states(model, made.tokenizer(), made.documents(), head=gonio.load(made.model("llama")))
    assert model.training
    assert not model.lm_head._forward_hooks


def test_an_interrupt_keeps_what_was_captured(tmp_path):
    model = made.model("llama")
    passes = 0
    plain = model.forward

    def forward(*args, **kwargs):
        nonlocal passes
        passes += 1
        if passes == 3:
            raise KeyboardInterrupt
        return plain(*args, **kwargs)

    forward.__signature__ = __import__("inspect").signature(plain)
    model.forward = forward
    S = gonio.states(model, made.tokenizer(), made.documents(300), out=tmp_path / "F.npy")
    assert S.about["stopped"]
    assert 0 < len(S) == len(np.load(tmp_path / "F.npy")) == len(S.tokens)
    assert passes == 3


def test_a_model_may_write_its_own_text():
    model, tokenizer = made.model("llama"), made.tokenizer()
    S = gonio.states(model, tokenizer, "self", tokens=400)
    again = gonio.states(model, tokenizer, "self", tokens=400)
    assert S.about["written_by"]
    assert np.array_equal(S.tokens, again.tokens)
    assert len(np.unique(S.documents)) >= 5
    with pytest.raises(GonioError, match="does not write text from left to right"):
        gonio.states(made.model("bert"), tokenizer, "self")


def test_a_hidden_layer_enters_no_head_and_says_so():
    model = made.model("llama")
    S = gonio.states(model, made.tokenizer(), made.documents(), layer=1)
    assert S.shape[1] == 16
    assert S.difference is None
    with pytest.raises(GonioError, match="states of layer 1, which do not enter the head"):
        gonio.audit(gonio.load(model), embeddings=S)
    with pytest.raises(GonioError, match="layers 0 to 2"):
        gonio.states(model, made.tokenizer(), made.documents(), layer=9)


@pytest.mark.parametrize(
    ("texts", "said"),
    [(None, "nothing to read was given"), ([], "is empty"), (["  ", ""], "is empty"), ([3], "every document is a text"),
     (5, "a list of texts is needed")],
)  # fmt: skip
def test_bad_texts_are_one_sentence(texts, said):
    with pytest.raises(GonioError, match=said):
        gonio.states(made.model("llama"), made.tokenizer(), texts)


def test_what_cannot_be_run_is_one_sentence():
    with pytest.raises(GonioError, match="is no model that gonio runs"):
        gonio.states(object(), None, ["w1"])
    with pytest.raises(GonioError, match="tokenizer is needed"):
        gonio.states(made.model("llama"), None, ["w1"])
    with pytest.raises(GonioError, match="no module 'classifier'"):
        gonio.states(made.model("llama"), made.tokenizer(), ["w1"], head="classifier")
    with pytest.raises(GonioError, match="the model takes no 'pixels'"):
        gonio.states(made.model("llama"), feed={"pixels": np.ones((2, 3))})
