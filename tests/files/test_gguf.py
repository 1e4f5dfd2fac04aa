"""GGUF files: written by the package gguf, read by our own strict reader."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from gonio.core import inputs
from gonio.core.errors import LoadError, MissingExtraError
from gonio.files.read import gguf as ours
from gonio.files.read import gguf_file
from gonio.models.loading import load
from tests.files.gguf_made import (
    GAIN,
    LAYER,
    RMS,
    RNG,
    SHIFT,
    TABLE,
    TOKENS,
    TYPES,
    D,
    N,
    gguf,
    llama,
    raw_type,
    source,
    written,
)

# -- the numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "TQ2_0"])
def test_rows_are_what_gguf_itself_unpacks(tmp_path, kind):
    path = llama(tmp_path / "m.gguf", kind=TYPES[kind])
    tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == "output.weight")
    want = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    head = load(path)
    assert head.shape == (N, D)
    assert np.array_equal(head.W, want)
    assert np.array_equal(head.rows[np.array([7, 2])], want[[7, 2]])
    assert head.rows.kind == {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}.get(kind, kind)
    assert source(head).bytes_read == tensor.n_bytes + GAIN.nbytes


@pytest.mark.parametrize("kind", ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"])
def test_k_quants_are_what_gguf_itself_unpacks(tmp_path, kind):
    path, raw = raw_type(tmp_path / "m.gguf", TYPES[kind])
    head = load(path)
    assert np.array_equal(head.W, gguf.quants.dequantize(raw, TYPES[kind]))
    assert head.rows.stored.shape == raw.shape
    assert head.rows.kind == kind


def test_float64_tables_are_read(tmp_path):
    head = load(written(tmp_path / "m.gguf", "llama", {"output.weight": TABLE.astype(np.float64)}))
    assert head.W.dtype == np.float64
    assert np.array_equal(head.W, TABLE)


def test_quantised_rows_survive_pickling(tmp_path):
    rows = load(llama(tmp_path / "m.gguf", kind=TYPES.Q8_0)).rows
    again = pickle.loads(pickle.dumps(rows.unpack))
    assert np.array_equal(again(rows.stored, slice(None)), rows.whole())


def test_plain_floats_need_no_package_and_quantised_ones_name_it(tmp_path, monkeypatch):
    plain, packed = llama(tmp_path / "a.gguf"), llama(tmp_path / "b.gguf", kind=TYPES.Q8_0)
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert np.array_equal(load(plain).W, TABLE)
    with pytest.raises(MissingExtraError, match=r"gonio\[gguf\]"):
        load(packed)


# -- which head, which inputs ---------------------------------------------------------------------------------------


def test_llama_is_a_softmax_head_after_rmsnorm(tmp_path):
    head = load(llama(tmp_path / "m.gguf"))
    assert head.link == "softmax"
    assert head.labels == tuple(TOKENS)
    assert head.inputs == inputs.AfterRMSNorm(GAIN)
    assert head.softcap is None
    assert head.bias is None
    assert len(head.padded) == 0
    assert dict(source(head).tensors) == {"W": "output.weight", "gain": "output_norm.weight"}
    assert not source(head).assumed


def test_gemma2_is_tied_and_soft_capped(tmp_path):
    tensors = {"token_embd.weight": TABLE, "output_norm.weight": GAIN}
    head = load(written(tmp_path / "m.gguf", "gemma2", tensors, keys={**RMS, "final_logit_softcapping": 25.0}))
    assert "tied" in source(head).decided["weight"]
    assert head.softcap == 25.0
    assert head.inputs == inputs.AfterRMSNorm(GAIN)  # llama.cpp's converter has already added the 1
    assert np.array_equal(head.W, TABLE)
    assert load(written(tmp_path / "n.gguf", "gemma2", tensors, keys=RMS)).softcap == 30.0
    assert load(written(tmp_path / "o.gguf", "gemma3", tensors, keys=RMS)).softcap is None


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0"])
@pytest.mark.parametrize(("arch", "factor"), [("command-r", 0.0625), ("granite", 16.0), ("llama", 0.0625)])
def test_logit_scale_multiplies_and_for_granite_divides(tmp_path, arch, factor, kind):
    tensors = {"output.weight": TABLE}
    path = written(tmp_path / "m.gguf", arch, tensors, keys={"logit_scale": 0.0625}, kind=TYPES[kind])
    plain = load(written(tmp_path / "n.gguf", arch, tensors, kind=TYPES[kind]))
    head = load(path)
    assert np.array_equal(head.W, plain.W * np.float32(factor))
    assert "logit_scale" in source(head).decided["scale"]
    assert "scale" not in source(plain).decided


def test_minicpm_and_grok_scale_their_logits_unasked(tmp_path):
    assert np.array_equal(
        load(written(tmp_path / "a.gguf", "minicpm3", {"output.weight": TABLE[:, :128]})).W, TABLE[:, :128] * 2
    )
    grok = load(written(tmp_path / "b.gguf", "grok", {"output.weight": TABLE}))
    assert np.allclose(grok.W, TABLE / np.sqrt(3))


def test_command_r_ends_in_a_layernorm_without_shift(tmp_path):
    tensors = {"token_embd.weight": TABLE, "output_norm.weight": GAIN}
    for i, (arch, keys) in enumerate([("command-r", {}), ("cohere2", {}), ("someday", LAYER), ("mpt", LAYER)]):
        head = load(written(tmp_path / f"{i}.gguf", arch, tensors, keys=keys))
        assert head.inputs == inputs.AfterLayerNorm(GAIN)


def test_a_norm_with_shift_is_a_layernorm(tmp_path):
    tensors = {"output.weight": TABLE, "output.bias": SHIFT[:N], "output_norm.weight": GAIN, "output_norm.bias": SHIFT}
    head = load(written(tmp_path / "m.gguf", "phi2", tensors, keys=LAYER))
    assert head.inputs == inputs.AfterLayerNorm(GAIN, SHIFT)
    assert head.bias is not None
    assert np.array_equal(head.bias, SHIFT[:N])
    assert source(head).tensors["bias"] == "output.bias"


def test_a_tied_head_keeps_the_bias_of_the_output(tmp_path):
    head = load(written(tmp_path / "m.gguf", "phi2", {"token_embd.weight": TABLE, "output.bias": SHIFT[:N]}))
    assert head.bias is not None
    assert np.array_equal(head.bias, SHIFT[:N])


def test_a_decoder_of_sound_has_no_head(tmp_path):
    with pytest.raises(LoadError, match="make sound"):
        load(written(tmp_path / "m.gguf", "wavtokenizer-dec", {"output.weight": TABLE}))


def test_norms_under_other_names_are_found(tmp_path):
    t5 = {"token_embd.weight": TABLE, "dec.output_norm.weight": GAIN, "enc.output_norm.weight": SHIFT}
    assert load(written(tmp_path / "a.gguf", "t5", t5, keys=RMS)).inputs == inputs.AfterRMSNorm(GAIN)
    lfm = {"token_embd.weight": TABLE, "token_embd_norm.weight": GAIN}
    assert load(written(tmp_path / "b.gguf", "lfm2", lfm, keys=RMS)).inputs == inputs.AfterRMSNorm(GAIN)
    olmo = load(written(tmp_path / "c.gguf", "olmo", {"token_embd.weight": TABLE}, keys=LAYER))
    assert olmo.inputs == inputs.AfterLayerNorm(np.ones(D))


@pytest.mark.parametrize(
    "arch", ["bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "modern-bert", "t5encoder", "gemma-embedding"]
)
def test_encoders_are_tables_of_embeddings_and_never_tied_heads(tmp_path, arch):
    tensors = {"token_embd.weight": TABLE, "output_norm.weight": GAIN, "token_embd_norm.weight": GAIN}
    head = load(written(tmp_path / "m.gguf", arch, tensors, keys={**LAYER, "attention.causal": False}))
    assert head.link == "input"
    assert isinstance(head.inputs, inputs.AllInputs)
    assert head.labels == tuple(TOKENS)
    assert "encoder" in source(head).decided["link"]


def test_a_decoder_that_gives_out_embeddings_is_a_table_too(tmp_path):
    tensors = {"token_embd.weight": TABLE, "output_norm.weight": GAIN}
    assert load(written(tmp_path / "m.gguf", "qwen3", tensors, keys={**RMS, "pooling_type": 3})).link == "input"
    assert load(written(tmp_path / "n.gguf", "qwen3", tensors, keys={**RMS, "pooling_type": 0})).link == "softmax"


def test_rerankers_and_classifiers_give_their_classes(tmp_path):
    base = {"token_embd.weight": RNG.standard_normal((N, 32)).astype(np.float32)}
    dense = RNG.standard_normal((32, 32)).astype(np.float32)
    one = {**base, "cls.weight": dense, "cls.output.weight": dense[:1], "cls.output.bias": SHIFT[:1]}
    head = load(written(tmp_path / "a.gguf", "bert", one))
    assert head.link == "sigmoid"
    assert head.shape == (1, 32)
    assert head.bias == SHIFT[:1]
    assert head.inputs == inputs.Box(-1.0, 1.0)
    flat = {**one, "cls.output.weight": dense[0]}
    assert np.array_equal(load(written(tmp_path / "e.gguf", "bert", flat)).W, dense[:1])
    two = {**base, "cls.output.weight": dense[:2]}
    head = load(
        written(tmp_path / "b.gguf", "qwen3", two, keys={"classifier.output_labels": ["yes", "no"], "pooling_type": 4})
    )
    assert head.link == "softmax"
    assert head.labels == ("yes", "no")
    assert load(written(tmp_path / "c.gguf", "jina-bert-v2", {**base, "cls.weight": dense[:1]})).shape == (1, 32)
    norm = {**base, "cls.weight": dense, "cls.norm.weight": GAIN[:32], "cls.output.weight": dense[:3]}
    assert load(written(tmp_path / "d.gguf", "modern-bert", norm)).inputs == inputs.AfterLayerNorm(GAIN[:32])


def test_another_tensor_can_be_named(tmp_path):
    path = llama(tmp_path / "m.gguf")
    head = load(path, tensor="token_embd.weight")
    assert np.array_equal(head.W, -TABLE)
    assert head.link == "input"
    assert head.labels == tuple(TOKENS)
    assert load(path, tensor="output.weight").digest == load(path).digest
    with pytest.raises(
        LoadError, match=r"no tensor 'lm_head'; it has token_embd.weight \(12x256 float32\), output.weight"
    ):
        load(path, tensor="lm_head")
    with pytest.raises(LoadError, match="two axes"):
        load(path, tensor="output_norm.weight")


# -- labels and padding ---------------------------------------------------------------------------------------------


def test_rows_beyond_the_tokens_are_padding(tmp_path):
    head = load(llama(tmp_path / "m.gguf", tokens=TOKENS[:9], keys=RMS))
    assert head.padded.tolist() == [9, 10, 11]
    assert head.labels[8:10] == ("token8", "[padded 9]")


def test_rows_beyond_vocab_size_are_padding(tmp_path):
    head = load(llama(tmp_path / "m.gguf", tokens=None, keys={"vocab_size": 10}))
    assert head.padded.tolist() == [10, 11]
    assert head.labels[9:] == ("9", "[padded 10]", "[padded 11]")
    head = load(llama(tmp_path / "n.gguf", keys={"vocab_size": 10}))
    assert head.padded.tolist() == [10, 11]
    assert head.labels == tuple(TOKENS)


def test_tokens_that_the_converter_made_up_are_padding(tmp_path):
    head = load(llama(tmp_path / "m.gguf", tokens=["[PAD7]", *TOKENS[1:10], "[PAD10]", "[PAD11]"]))
    assert head.padded.tolist() == [10, 11]


def test_more_tokens_than_rows_are_cut_and_noted(tmp_path):
    head = load(llama(tmp_path / "m.gguf", tokens=[*TOKENS, "extra"]))
    assert head.labels == tuple(TOKENS)
    assert "labels" in source(head).assumed
    assert "13 tokens" in source(head).decided["labels"]


def test_a_file_without_tokenizer_goes_by_numbers(tmp_path):
    head = load(llama(tmp_path / "m.gguf", tokens=None))
    assert not head.named
    assert head.labels[:2] == ("0", "1")


def test_a_large_vocabulary_is_stepped_over_and_only_its_names_are_built(tmp_path):
    tokens = [f"t{i}" for i in range(150_000)]
    path = written(tmp_path / "m.gguf", "llama", {"output.weight": np.ones((150_000, 2), np.float32)}, tokens=tokens)
    model = ours.open_model(path)
    for key in ("tokens", "merges", "scores", "token_type"):
        assert isinstance(model.meta[f"tokenizer.ggml.{key}"], gguf_file.Array)
    assert model.texts("tokenizer.ggml.merges") == ["a b", "c d"]
    assert list(ours.draft(path, None).labels or ()) == tokens


# -- split models ---------------------------------------------------------------------------------------------------


def split(folder: Path) -> list[Path]:
    paths = []
    parts = [{"token_embd.weight": -TABLE}, {"output_norm.weight": GAIN, "output.weight": TABLE}]
    for i, tensors in enumerate(parts):
        path = folder / f"m-{i + 1:05d}-of-00002.gguf"
        w = gguf.GGUFWriter(path, "llama")
        w.add_uint16("split.no", i)
        w.add_uint16("split.count", 2)
        if i == 0:
            w.add_token_list(TOKENS)
        for name, a in tensors.items():
            w.add_tensor(name, a)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        paths.append(path)
    return paths


def test_a_split_model_is_read_whole_from_any_part(tmp_path):
    for path in split(tmp_path):
        head = load(path)
        assert np.array_equal(head.W, TABLE)
        assert head.labels == tuple(TOKENS)


def test_a_split_model_with_a_part_missing_is_refused(tmp_path):
    first, second = split(tmp_path)
    second.rename(tmp_path / "other.gguf")
    with pytest.raises(LoadError, match=r"m-00002-of-00002\.gguf is absent"):
        load(first)
    with pytest.raises(LoadError, match="keep them together"):
        load(tmp_path / "other.gguf")
