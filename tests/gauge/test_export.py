"""Equivalent checkpoints, written in the model's own format and read back by the libraries that own it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gonio
from gonio import GonioError, Head, dial
from gonio.files.write.checkpoint import standalone
from gonio.gauge.export import export, measure
from gonio.gauge.reach import cosine

_safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed; make test installs it")
load_file, save_file = _safetensors.load_file, _safetensors.save_file

rng = np.random.default_rng(0)
W = rng.standard_normal((20, 6)).astype(np.float32)


def write_folder(folder: Path, tensors, config, shards=False):
    folder.mkdir()
    if shards:
        where = {name: f"model-{i:05d}-of-{len(tensors):05d}.safetensors" for i, name in enumerate(tensors, 1)}
        for name, file in where.items():
            save_file({name: tensors[name]}, folder / file)
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": 1}, "weight_map": where})
        )
    else:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.json").write_text(json.dumps({f"t{i}": i for i in range(20)}))
    (folder / "extra").mkdir()
    (folder / "extra" / "note.txt").write_text("keep me")


LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 20, "tie_word_embeddings": False}
GPT2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 20}


@pytest.mark.parametrize("shards", [False, True], ids=["one file", "shards"])
@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_a_checkpoint_folder_is_written_with_only_its_head_changed(tied, shards, tmp_path):
    body = {
        "model.layers.0.w": rng.standard_normal((5, 5)).astype(np.float16),
        "model.norm.weight": np.ones(6, np.float32),
    }
    tensors = body | (
        {"transformer.wte.weight": W} if tied else {"lm_head.weight": W, "model.embed_tokens.weight": W[::-1].copy()}
    )
    write_folder(tmp_path / "in", tensors, GPT2 if tied else LLAMA, shards)
    before = {p: p.read_bytes() for p in (tmp_path / "in").rglob("*") if p.is_file()}
    head = gonio.load(tmp_path / "in")
    result = dial(head, "t3", "t7", cosine=-1)
    written = export(result, tmp_path / "out")
    assert written.untied == tied
    again = gonio.load(tmp_path / "out")
    assert cosine(again["t3"], again["t7"]) == pytest.approx(-1, abs=1e-6)
    assert np.array_equal(again.W, result.head.W.astype(np.float32))
    assert gonio.same_model(head, again).same is True
    assert (tmp_path / "out" / "extra" / "note.txt").read_text() == "keep me"
    got = {}
    for path in (tmp_path / "out").glob("*.safetensors"):
        got |= load_file(path)
    for name, value in tensors.items():
        if name != "lm_head.weight":
            assert np.array_equal(got[name], value)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["tie_word_embeddings"] is False
    assert before == {p: p.read_bytes() for p in (tmp_path / "in").rglob("*") if p.is_file()}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]
    bound, measured = measure(written, result)
    assert measured <= bound < 1e-5


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("turned", [False, True])
def test_npz_is_written_back_as_it_lay(save, turned, tmp_path):
    b = rng.standard_normal(20)
    save(tmp_path / "m.npz", W=W.T if turned else W, b=b, other=np.arange(7))
    head = gonio.load(tmp_path / "m.npz")
    result = dial(head, 2, 5, cosine=0.25)
    export(result, tmp_path / "out")
    again = gonio.load(tmp_path / "out" / "m.npz")
    assert np.array_equal(again.W, result.head.W.astype(np.float32))
    with np.load(tmp_path / "out" / "m.npz") as z:
        assert z["W"].shape == ((6, 20) if turned else (20, 6))
        assert np.array_equal(z["b"], b)
        assert np.array_equal(z["other"], np.arange(7))


def test_npy_is_written_back(tmp_path):
    np.save(tmp_path / "m.npy", W.astype(np.float64))
    head = gonio.load(tmp_path / "m.npy", link="softmax")
    result = dial(head, 2, 5, cosine=0.25)
    assert export(result, tmp_path / "out").dtype == "float64"
    assert np.array_equal(gonio.load(tmp_path / "out" / "m.npy").W, result.head.W)


def test_logits_that_are_scaled_are_unscaled_on_the_way_back(tmp_path):
    config = {"architectures": ["CohereForCausalLM"], "model_type": "cohere", "vocab_size": 20, "logit_scale": 0.0625}
    write_folder(tmp_path / "in", {"model.embed_tokens.weight": W, "model.norm.weight": np.ones(6, np.float32)}, config)
    head = gonio.load(tmp_path / "in")
    result = dial(head, 1, 2, cosine=-0.5)
    export(result, tmp_path / "out")
    assert np.allclose(gonio.load(tmp_path / "out").W, result.head.W, atol=1e-7)


def test_a_header_whose_length_begins_like_a_pickle_is_still_a_header(tmp_path):
    tensors = {"lm_head.weight": W}
    for letters in range(300):  # names until the length of the header is 0x80 modulo 256, as one in 32 is
        path = tmp_path / f"{letters}.safetensors"
        save_file(tensors | {"x" * (letters + 1): W[:1]}, path)
        if path.read_bytes()[0] == 0x80:
            break
    assert path.read_bytes()[0] == 0x80
    result = dial(gonio.load(path, link="softmax", tensor="lm_head.weight"), 1, 2, cosine=-1)
    written = export(result, tmp_path / "out")
    assert np.array_equal(load_file(written.path)["lm_head.weight"], result.head.W.astype(np.float32))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sixteen_bit_heads_are_written_in_float32_unless_asked_otherwise(kind, tmp_path):
    import ml_dtypes

    narrow = W.astype(np.float16 if kind == "float16" else ml_dtypes.bfloat16)
    write_folder(tmp_path / "in", {"lm_head.weight": narrow}, LLAMA)
    head = gonio.load(tmp_path / "in")
    result = dial(head, 1, 2, cosine=-1)
    wide = export(result, tmp_path / "wide")
    same = export(result, tmp_path / "same", precision="same")
    assert (wide.dtype, same.dtype) == ("float32", kind)
    fine, rough = measure(wide, result), measure(same, result)
    assert fine[1] <= fine[0] < 1e-5
    assert rough[1] <= rough[0]
    assert rough[1] > 100 * fine[1]  # rounding after a large translation is what 16 bits cost


def test_what_stands_there_is_never_written_over(tmp_path):
    np.savez(tmp_path / "m.npz", W=W)
    head = gonio.load(tmp_path / "m.npz")
    moved = dial(head, 0, 1, cosine=0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("precious")
    for overwrite, why in ((False, "exists"), (True, "holds mine.txt, which gonio did not write")):
        with pytest.raises(GonioError, match=why):
            export(moved, tmp_path / "out", overwrite=overwrite)
    assert [p.read_text() for p in (tmp_path / "out").iterdir()] == ["precious"]
    (tmp_path / "out" / "mine.txt").unlink()
    for _ in range(2):  # an empty folder, and one that gonio wrote
        export(moved, tmp_path / "out", overwrite=True)
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [".gonio-folder", "m.npz"]
    for own in (tmp_path, tmp_path / "m.npz"):
        with pytest.raises(GonioError, match="never written over"):
            export(moved, own, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.npz", "out"]


def test_a_disk_that_runs_full_leaves_nothing_behind(tmp_path):
    write_folder(
        tmp_path / "in",
        {"lm_head.weight": rng.standard_normal((4000, 64)).astype(np.float32)},
        LLAMA | {"vocab_size": 4000},
    )
    code = (
        "import resource, signal, sys, gonio\n"
        "from gonio.gauge.export import export\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"  # as if the disk were full half-way
        "head = gonio.load(sys.argv[1])\n"
        "try:\n"
        "    export(gonio.dial(head, 0, 1, cosine=0), sys.argv[2])\n"
        "except gonio.GonioError as e:\n"
        "    print(e)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "in", tmp_path / "out"], capture_output=True, text=True, timeout=60
    )
    assert "could not be written" in done.stdout, done.stderr
    assert "nothing was left behind" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["in"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 300_000


def test_formats_that_are_not_written_say_what_is(tmp_path):
    head = Head(W, link="softmax")
    with pytest.raises(GonioError, match="safetensors, torch, npz"):
        export(dial(head, 0, 1, cosine=0), tmp_path / "out")
    path = standalone(dial(head, 0, 1, cosine=-1).head, tmp_path / "new" / "head.safetensors")
    assert cosine(*gonio.load(path).W[:2]) == pytest.approx(-1, abs=1e-5)
    with pytest.raises(GonioError, match="exists"):
        standalone(head, path)
    np.savez(tmp_path / "m.npz", W=W)
    turned = dial(gonio.load(tmp_path / "m.npz", link="sigmoid"), 0, 1, cosine=0.5)
    with pytest.raises(GonioError, match="and needs new embeddings"):
        export(turned, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tied_heads_are_untied_only_where_the_model_will_find_them(tmp_path):
    config = {"architectures": ["XForCausalLM"], "model_type": "x", "vocab_size": 20}
    write_folder(tmp_path / "in", {"embed_tokens.weight": W}, config)
    with pytest.raises(GonioError, match="is tied to its input embeddings"):
        export(dial(gonio.load(tmp_path / "in"), 0, 1, cosine=0), tmp_path / "out")
    write_folder(tmp_path / "gpt", {"wte.weight": W}, GPT2)
    with pytest.raises(GonioError, match="give the folder"):
        export(dial(gonio.load(tmp_path / "gpt" / "model.safetensors"), 0, 1, cosine=0), tmp_path / "out")
    with pytest.raises(GonioError, match="lies inside the model"):
        export(dial(gonio.load(tmp_path / "gpt"), 0, 1, cosine=0), tmp_path / "gpt" / "sub")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gpt", "in"]


def test_the_file_that_was_read_is_the_one_that_is_changed(tmp_path):
    write_folder(tmp_path / "in", {"lm_head.weight": W}, LLAMA)
    (tmp_path / "in" / "pytorch_model.bin.index.json").write_text(
        json.dumps({"weight_map": {"lm_head.weight": "old.bin"}})
    )
    export(dial(gonio.load(tmp_path / "in"), 0, 1, cosine=-1), tmp_path / "out")
    assert cosine(*gonio.load(tmp_path / "out").W[:2]) == pytest.approx(-1, abs=1e-6)


def test_only_what_lies_in_the_models_folder_is_copied(tmp_path):
    write_folder(tmp_path / "in", {"lm_head.weight": W}, LLAMA)
    (tmp_path / "secret").write_text("a secret")
    moved = dial(gonio.load(tmp_path / "in"), 1, 2, cosine=0)
    link = tmp_path / "in" / "tokenizer.model"
    for target, why in ((tmp_path / "secret", "link out of"), (Path("/dev/zero"), "link out of"), (tmp_path, "link out of"),
                        (tmp_path / "in" / "extra", "link to a folder")):  # fmt: skip
        link.symlink_to(target)
        with pytest.raises(GonioError, match=why):
            export(moved, tmp_path / "out")
        link.unlink()
    os.mkfifo(link)
    with pytest.raises(GonioError, match="neither a file nor a folder"):
        export(moved, tmp_path / "out")
    link.unlink()
    link.symlink_to("vocab.json")  # inside: copied as what it shows
    export(moved, tmp_path / "out")
    assert (tmp_path / "out" / "tokenizer.model").read_bytes() == (tmp_path / "in" / "vocab.json").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out", "secret"]


def test_a_model_of_the_hubs_cache_is_copied_through_its_links(tmp_path):
    write_folder(tmp_path / "blobs", {"lm_head.weight": W}, LLAMA)
    snapshot = tmp_path / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    for name in ("model.safetensors", "config.json", "vocab.json"):
        (snapshot / name).symlink_to(Path("../../blobs") / name)
    export(dial(gonio.load(snapshot), 1, 2, cosine=0), tmp_path / "out")
    assert gonio.load(tmp_path / "out").shape == W.shape


@pytest.mark.parametrize(
    "junk", ["[1, 2]", "{", '{"weight_map": 3}', "null", '{"weight_map": {"a": []}, "metadata": 4}']
)
def test_an_index_that_is_none_is_copied_as_it_is(junk, tmp_path):
    write_folder(tmp_path / "in", {"lm_head.weight": W}, LLAMA)
    (tmp_path / "in" / "pytorch_model.bin.index.json").write_text(junk)
    export(dial(gonio.load(tmp_path / "in"), 1, 2, cosine=0), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "llama"
    if "metadata" not in junk:
        assert (tmp_path / "out" / "pytorch_model.bin.index.json").read_text() == junk
