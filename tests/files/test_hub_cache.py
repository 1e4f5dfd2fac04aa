"""Models of the hub: their names, the caches they are read from, what is kept, and where the token goes."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import gonio
from gonio import GonioError
from gonio.files.read.hub_name import HubName, parse_hub_name
from gonio.files.read.hub_store import Wanted, cache_folder, keep, kept, place_of
from tests.files.loopback_hub import SECRET, Server, load, run, serving, snapshot

save = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed; make test installs it").save
pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed; make test installs it")

W = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 500, "tie_word_embeddings": False}
TENSORS = {
    "lm_head.weight": W,
    "model.norm.weight": np.ones(8, np.float32),
    "model.layers.0.mlp.weight": np.zeros(300_000, np.float32),
}
FILES = {
    "config.json": json.dumps(CONFIG).encode(),
    "vocab.json": json.dumps({f"t{i}": i for i in range(490)}).encode(),
    "model.safetensors": save(TENSORS),
    "pytorch_model.bin": b"a pickle",
    "modeling.py": b"import os",
}
MODELS = {"org/name": FILES, "gpt2": FILES}
NOBODY = "http://127.0.0.1:9"


def answer(done):
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt2", HubName("gpt2")),
        ("org/name", HubName("org/name")),
        ("org/name@v1.0", HubName("org/name", "v1.0")),
        ("gpt2@refs/pr/3", HubName("gpt2", "refs/pr/3")),
        ("hf://org/name", HubName("org/name")),
        ("hf://gpt2", HubName("gpt2")),
        ("hf://org/name/a/b.gguf", HubName("org/name", "main", "a/b.gguf")),
        ("hf://org/name@v1/x.safetensors", HubName("org/name", "v1", "x.safetensors")),
        ("hf://models/org/name/x", None),
        ("hf://org/name/../x", None),
        ("hf://org/name//x", None),
        ("head.npz", None),
        ("model.safetensors", None),
        ("models/head.NPZ", None),
        ("a/b/c", None),
        ("../x", None),
        ("org/na--me", None),
        ("org/na..me", None),
        ("x" * 97, None),
        ("", None),
        ("org/name@", None),
        ("name with space", None),
    ],
)
def test_names_are_read_as_people_write_them(text, name):
    if text == "hf://models/org/name/x":
        name = HubName("org/name", "main", "x")
    assert parse_hub_name(text) == name


@pytest.mark.parametrize(
    "name", ["gpt2", "org/name", "org/name@v1", "hf://org/name/model.safetensors", "hf://org/name@v1"]
)
def test_the_second_load_asks_for_no_weights(name, tmp_path):
    with serving(MODELS) as hub:
        first = load(name, tmp_path, hub.address)
        assert hub.weights > 0
        assert "fetching lm_head.weight" in first.stderr
        hub.weights, before = 0, len(hub.asked)
        second = load(name, tmp_path, hub.address)
        assert answer(second) == answer(first)
        assert hub.weights == 0
        assert "fetching" not in second.stderr
        assert len(hub.asked) == before + 1  # which commit it is now
    third = load(name, tmp_path, hub.address)  # nobody is there any more
    assert answer(third) == answer(first)
    assert "could not be reached; what was kept of it is read" in third.stderr
    offline = load(name, tmp_path, hub.address, HF_HUB_OFFLINE="1")
    assert answer(offline) == answer(first)


def test_a_commit_that_is_named_needs_no_server_at_all(tmp_path):
    name = f"org/name@{Server.commit('org/name')}"
    with serving(MODELS) as hub:
        first = load(name, tmp_path, hub.address)
        asked = len(hub.asked)
        assert answer(load(name, tmp_path, hub.address)) == answer(first)
        assert len(hub.asked) == asked


def test_a_damaged_or_foreign_entry_is_fetched_anew(tmp_path):
    with serving(MODELS) as hub:
        first = answer(load("org/name", tmp_path, hub.address))
        entries = [p for p in (tmp_path / "gonio" / "hub").rglob("*") if p.is_file() and p.parent.name != "refs"]
        largest = max(entries, key=lambda p: p.stat().st_size)
        for damage in ("byte", "cut", "empty", "another"):
            raw = bytearray(largest.read_bytes())
            if damage == "byte":
                raw[-5] ^= 1
            largest.write_bytes(
                {
                    "byte": raw,
                    "cut": raw[:-7],
                    "empty": b"",
                    "another": min(entries, key=lambda p: p.stat().st_size).read_bytes(),
                }[damage]
            )
            hub.weights = 0
            assert answer(load("org/name", tmp_path, hub.address)) == first
            assert hub.weights == 1, damage


def test_a_part_that_was_not_kept_is_said_where_nobody_answers(tmp_path):
    with serving(MODELS) as hub:
        load("org/name", tmp_path, hub.address)
    entries = [p for p in (tmp_path / "gonio" / "hub").rglob("*") if p.is_file()]
    max(entries, key=lambda p: p.stat().st_size).unlink()
    said = load("org/name", tmp_path, hub.address).stdout
    assert "org/name could not be reached, and not all of it was kept" in said
    assert "HF_HUB_OFFLINE forbids" in load("org/name", tmp_path, hub.address, HF_HUB_OFFLINE="1").stdout


def test_an_entry_is_believed_only_for_what_it_was_kept_for(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    wanted = Wanted("http://x", "org/name", "c" * 40, "f", 2, 6)
    assert kept(wanted) is None
    assert keep(wanted, b"abcd", 100, "e") == ""
    found = kept(wanted)
    assert found is not None
    assert (found.body.tobytes(), found.size, found.etag) == (b"abcd", 100, "e")
    others = [
        Wanted("http://y", "org/name", "c" * 40, "f", 2, 6),
        Wanted("http://x", "org/nam", "c" * 40, "f", 2, 6),
        Wanted("http://x", "org/name", "d" * 40, "f", 2, 6),
        Wanted("http://x", "org/name", "c" * 40, "g", 2, 6),
        Wanted("http://x", "org/name", "c" * 40, "f", 1, 5),
    ]
    for other in others:
        assert kept(other) is None
        place_of(other).parent.mkdir(parents=True, exist_ok=True)
        place_of(other).write_bytes(place_of(wanted).read_bytes())
        assert kept(other) is None
    assert cache_folder().is_relative_to(tmp_path)
    absent = Wanted("http://x", "org/name", "c" * 40, "none")
    keep(absent, None, 0, "")
    assert kept(absent).body is None


def test_a_cache_that_cannot_be_written_is_said_and_the_model_is_read(tmp_path):
    (tmp_path / "gonio").write_text("a file where a folder is wanted")
    with serving(MODELS) as hub:
        done = load("org/name", tmp_path, hub.address)
    assert answer(done)[2] == "t0"
    assert done.stderr.count("what is fetched is not kept") == 1


def test_the_token_goes_to_the_endpoint_and_not_along_a_redirect(tmp_path):
    with serving(MODELS) as store, serving(MODELS, elsewhere=store.address) as hub:
        assert answer(load("org/name", tmp_path, hub.address))[2] == "t0"
        assert {a for _, _, a in hub.asked} == {f"Bearer {SECRET}"}
        assert store.weights > 0
        assert {a for _, _, a in store.asked} == {None}


def test_redirects_without_an_end_or_to_other_kinds_of_address_are_refused(tmp_path):
    def away(handler, raw, told):
        handler.answer(302, b"", told | {"Location": "file:///etc/passwd"})

    with serving(MODELS, trick=away) as hub:
        assert "which is not followed" in load("org/name", tmp_path, hub.address).stdout
    with serving(MODELS, elsewhere="") as hub:
        hub.elsewhere = hub.address  # to itself, for ever
        assert "is redirected more than 5 times" in load("org/name", tmp_path, hub.address).stdout


def test_a_server_that_stalls_is_left(tmp_path):
    def stall(handler, raw, told):
        time.sleep(3)

    began = time.monotonic()
    with serving(MODELS, trick=stall) as hub:
        before = "from gonio.files.read import bounded_request; bounded_request.QUIET = 0.5"
        assert "could not be reached (ReadTimeout)" in load("org/name", tmp_path, hub.address, before).stdout
    assert time.monotonic() - began < 30


def test_parts_of_two_files_or_of_another_commit_are_not_put_together(tmp_path):
    def changing(handler, raw, told):
        handler.server.weights += 1
        handler.answer(
            206,
            raw[: 1 << 18] if handler.server.weights < 3 else raw[: len(W) * 32],
            told
            | {"ETag": str(handler.server.weights)}
            | {"Content-Range": "bytes {}-{}/{}".format(*handler.headers["Range"][6:].split("-"), len(raw))},
        )

    with serving(MODELS, trick=changing) as hub:
        assert (
            "REFUSED load: parts of model.safetensors of org/name are of different versions"
            in load("org/name", tmp_path, hub.address).stdout
        )

    def other(handler, raw, told):
        first, last = (int(x) for x in handler.headers["Range"][6:].split("-"))
        handler.answer(206, raw[first : last + 1], told | {"X-Repo-Commit": "f" * 40})

    with serving(MODELS, trick=other) as hub:
        assert "and came of ffffffffffff" in load("org/name", tmp_path, hub.address).stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("org/none", "the hub has no model org/none, or it is private"),
        ("org/gated", "org/gated is gated and needs a token"),
        ("org/name@nine", "org/name has no revision 'nine'"),
        ("modle", "there is no file modle; taken for the name of a model: the hub has no model modle"),
        ("hf://org/name/none.gguf", "has no such file"),
        ("hf://org/name/../../x", "is no name of a model on the hub"),
        ("modle.npz", "there is no file modle.npz; give a path"),
    ],
)
def test_what_the_hub_does_not_have_is_one_sentence(name, said, tmp_path):
    with serving(MODELS) as hub:
        done = load(name, tmp_path, hub.address)
    assert done.stdout.startswith("REFUSED load: ")
    assert said in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(("name", "who"), [("org/name", "org/name"), ("gpt2", "there is no file gpt2; taken for")])
def test_offline_without_a_cache_is_one_sentence(name, who, tmp_path):
    with serving(MODELS) as hub:
        done = load(name, tmp_path, hub.address, HF_HUB_OFFLINE="1")
        assert hub.asked == []
    assert who in done.stdout
    assert "is not in the cache, and HF_HUB_OFFLINE forbids to fetch it" in done.stdout


def test_a_whole_model_in_the_librarys_cache_is_read_without_a_request(tmp_path):
    folder = snapshot(tmp_path, "org/name", FILES)
    with serving(MODELS) as hub:
        done = answer(load("org/name", tmp_path, hub.address))
        assert hub.asked == []
    assert done[3] == str(folder)
    assert done[0] == gonio.load(folder).digest
    assert done[4] == 10
    found = run(
        "from gonio.files.read.hub_cache import local_folder, download as d; print(local_folder('org/name'), d('org/name'))",
        tmp_path,
        NOBODY,
    )
    assert found.stdout.split() == [str(folder)] * 2


def test_only_files_that_are_not_in_the_librarys_cache_are_fetched_and_only_of_the_same_commit(tmp_path):
    part = {k: FILES[k] for k in ("config.json", "vocab.json")}
    snapshot(tmp_path, "org/name", part)
    with serving(MODELS) as hub:
        load("org/name", tmp_path, hub.address)
        asked = [p.rpartition("/")[2] for _, p, _ in hub.asked]
        assert "vocab.json" not in asked
        assert "model.safetensors" in asked
    stale = {"vocab.json": json.dumps({f"old{i}": i for i in range(490)}).encode(), "config.json": FILES["config.json"]}
    snapshot(tmp_path / "b", "org/name", stale, commit="a" * 40)
    with serving(MODELS) as hub:
        assert answer(load("org/name", tmp_path / "b", hub.address))[2] == "t0"


@pytest.mark.parametrize("missing", ["config.json", "model-2.safetensors", "blob", "index"])
def test_a_model_that_is_in_the_cache_in_part_is_no_folder(missing, tmp_path):
    index = {"weight_map": {"lm_head.weight": "model-1.safetensors", "model.norm.weight": "model-2.safetensors"}}
    files = {
        "config.json": FILES["config.json"],
        "model-1.safetensors": save({"lm_head.weight": W}),
        "model-2.safetensors": save({"model.norm.weight": np.ones(8, np.float32)}),
        "model.safetensors.index.json": json.dumps(index).encode(),
    }
    code = "from gonio.files.read.hub_cache import local_folder; print(local_folder('org/name'))"
    folder = snapshot(tmp_path, "org/name", files)
    assert run(code, tmp_path, NOBODY).stdout.strip() == str(folder)
    if missing == "blob":
        (folder / "model-2.safetensors").resolve().unlink()
    elif missing == "index":
        (folder / "model.safetensors.index.json").resolve().write_text("{")
    else:
        (folder / missing).unlink()
    assert run(code, tmp_path, NOBODY).stdout.strip() == "None"


DOWNLOAD = """
import sys
from gonio import GonioError
from gonio.files.read.hub_cache import download
try:
    folder = download(sys.argv[1])
except GonioError as e:
    print("REFUSED", e); sys.exit()
print(*sorted(p.name for p in folder.iterdir()))
"""


def test_download_fetches_what_running_needs_and_neither_pickles_nor_code(tmp_path):
    with serving(MODELS) as hub:
        done = run(DOWNLOAD, tmp_path, hub.address, "org/name")
        assert done.stdout.split() == ["config.json", "model.safetensors", "vocab.json"], done.stderr
        asked = len(hub.asked)
        assert not [p for _, p, _ in hub.asked if p.endswith((".bin", ".py"))]
        run(DOWNLOAD, tmp_path, hub.address, "org/name")
        assert len(hub.asked) == asked
        for name, said in (("org/none", "the hub has no model org/none"), ("a b", "is no name of a model")):
            assert said in run(DOWNLOAD, tmp_path, hub.address, name).stdout
        pickled = {k: FILES[k] for k in ("config.json", "pytorch_model.bin")}
        hub.models = MODELS | {"org/pickled": pickled}
        assert (
            "no complete set of config.json and safetensors"
            in run(DOWNLOAD, tmp_path, hub.address, "org/pickled").stdout
        )
    assert "could not be reached" in run(DOWNLOAD, tmp_path / "b", NOBODY, "org/name").stdout
    offline = run(DOWNLOAD, tmp_path / "b", NOBODY, "org/name", HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE forbids to fetch it" in offline.stdout


def test_a_file_of_another_kind_is_fetched_whole_into_the_librarys_cache(tmp_path):
    import io

    file = io.BytesIO()
    np.savez(file, W=W, link="softmax")
    with serving({"org/name": {"heads/h.npz": file.getvalue()}}) as hub:
        first = answer(load("hf://org/name/heads/h.npz", tmp_path, hub.address))
        asked = len(hub.asked)
        assert answer(load("hf://org/name/heads/h.npz", tmp_path, hub.address)) == first
        assert len(hub.asked) == asked


def test_a_name_that_exists_here_is_never_looked_for_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("gpt2", W=W)
    (tmp_path / "gpt2.npz").rename(tmp_path / "gpt2")
    assert gonio.load("gpt2").shape == W.shape
    (tmp_path / "org").mkdir()
    with pytest.raises(GonioError, match="there is no file org/name"):
        gonio.load("org/name")
