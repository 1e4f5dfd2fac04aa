"""A model on the hub, played by a small server on the loopback that serves parts of files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import gonio
from gonio import GonioError

_safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed; make test installs it")
save_file = _safetensors.save_file

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed; make test installs it")
rng = np.random.default_rng(0)
W = rng.standard_normal((4000, 16)).astype(np.float16)
BODY = rng.standard_normal((500_000,)).astype(np.float32)  # the rest of the model, which nobody should fetch


class Hub(ThreadingHTTPServer):
    """Serves /org/name/resolve/main/FILE out of a dict, and counts what it sends."""

    def __init__(self, repositories: dict[str, dict[str, bytes]], ranges: bool = True):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.ranges, self.sent, self.asked = repositories, ranges, 0, []
        self.trick, self.victim, self.cache = None, "", None

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        name, file = "/".join(parts[:2]), "/".join(parts[4:])
        self.server.asked.append(file)
        if name == "org/locked":
            return self.answer(403, b"")
        raw = self.server.repositories.get(name, {}).get(file)
        if raw is None:
            return self.answer(404, b"")
        span = self.headers.get("Range")
        if span and self.server.ranges:
            first, last = (int(v) for v in span.removeprefix("bytes=").split("-"))
            if self.server.trick is not None:
                return self.server.trick(self, raw, first, last)
            part = raw[first : last + 1]
            return self.answer(206, part, f"bytes {first}-{first + len(part) - 1}/{len(raw)}")
        if self.server.trick is not None and file == self.server.victim:
            return self.server.trick(self, raw, 0, len(raw) - 1)
        return self.answer(200, raw)

    def answer(self, status, body, content_range=None, length=None, encoding=None):
        self.send_response(status)
        if length != "none":
            self.send_header("Content-Length", str(length or len(body)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body)
        self.server.sent += len(body)

    def log_message(self, *args):
        pass


def checkpoint(tmp_path, shards: bool) -> dict[str, bytes]:
    tensors = {
        "model.embed_tokens.weight": W,
        "model.norm.weight": np.full(16, 2, np.float16),
        "model.layers.0.mlp.weight": BODY,
    }
    tensors["lm_head.weight"] = W[::-1].copy()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 4000,
        "tie_word_embeddings": False,
    }
    files = {
        "config.json": json.dumps(config).encode(),
        "vocab.json": json.dumps({f"t{i}": i for i in range(3990)}).encode(),
    }
    if not shards:
        save_file(tensors, tmp_path / "model.safetensors")
        return files | {"model.safetensors": (tmp_path / "model.safetensors").read_bytes()}
    where = {}
    for i, (name, value) in enumerate(tensors.items()):
        where[name] = f"model-{i}.safetensors"
        save_file({name: value}, tmp_path / where[name])
        files[where[name]] = (tmp_path / where[name]).read_bytes()
    return files | {"model.safetensors.index.json": json.dumps({"weight_map": where}).encode()}


@pytest.fixture
def hub(tmp_path):
    (tmp_path / "s").mkdir()
    server = Hub(
        {
            "org/whole": checkpoint(tmp_path, False),
            "org/shards": checkpoint(tmp_path / "s", True),
            "org/bin": {"config.json": b"{}"},
        }
    )
    server.cache = tmp_path / "cache"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def ask(hub: Hub, name: str):
    """gonio in a process of its own: the endpoint must be set before huggingface_hub is imported."""
    code = (
        "import sys, json, gonio\n"
        "try:\n"
        "    h = gonio.load(sys.argv[1])\n"
        "except gonio.GonioError as e:\n"
        "    print('REFUSED', e); sys.exit()\n"
        "print(json.dumps([h.digest, h.shape, h.source.bytes_read, len(h.padded), str(h.inputs), h.labels[0], h.rows.kind]))\n"
    )
    quiet = {
        "HF_ENDPOINT": hub.address,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "XDG_CACHE_HOME": str(hub.cache),
        "HF_HOME": str(hub.cache),
    }
    return subprocess.run(
        [sys.executable, "-c", code, name], capture_output=True, text=True, timeout=120, env=os.environ | quiet
    )


@pytest.mark.parametrize("name", ["org/whole", "org/shards"])
def test_only_the_head_the_norm_and_the_tokenizer_are_fetched(name, hub, tmp_path):
    done = ask(hub, name)
    assert done.returncode == 0, done.stderr
    digest, shape, read, padded, fed, first, kind = json.loads(done.stdout)
    here = tmp_path / "here"
    here.mkdir()
    for file, raw in hub.repositories[name].items():
        (here / file).write_bytes(raw)
    local = gonio.load(here)
    assert digest == local.digest
    assert tuple(shape) == (4000, 16)
    assert padded == 10
    assert fed == str(local.inputs)
    assert "RMSNorm" in fed
    assert first == "t0"
    assert kind == "float16"
    assert read == hub.sent  # every byte that came is accounted for
    files = hub.repositories[name]
    headers = 2**18 * (1 if name == "org/whole" else 4)
    assert hub.sent < W.nbytes + headers + len(files["vocab.json"]) + 5000
    assert hub.sent < sum(map(len, files.values())) / 2
    assert "fetching lm_head.weight (4000x16 float16), 128,000 bytes" in done.stderr


def test_what_cannot_be_had_is_said_in_one_sentence(hub):
    for name, said in (
        ("org/locked", "private, gated or does not exist"),
        ("org/nothing", "has no model.safetensors"),
        ("org/bin", "only models with safetensors weights"),
    ):
        done = ask(hub, name)
        assert done.stdout.startswith("REFUSED load: ")
        assert said in done.stdout
    hub.ranges = False
    assert "does not serve parts of files" in ask(hub, "org/whole").stdout


def test_a_dead_hub_is_said_in_one_sentence(hub):
    class Gone:
        address = "http://127.0.0.1:9"  # the discard port: nobody listens
        cache = hub.cache

    assert "could not be reached" in ask(Gone, "org/whole").stdout


def test_a_name_that_is_a_local_path_is_not_looked_for_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    with pytest.raises(GonioError, match="there is no file models/absent"):
        gonio.load("models/absent")


def shifted(handler, raw, first, last):
    """The bytes from four further on, said to be what they are."""
    part = raw[first + 4 : last + 5]
    handler.answer(206, part, f"bytes {first + 4}-{first + 3 + len(part)}/{len(raw)}")


def shifted_and_denied(handler, raw, first, last):
    """A part of the right length whose range is said to be another."""
    handler.answer(206, raw[first : last + 1], f"bytes 0-{last - first}/{10**12}")


def endless(handler, raw, first, last):
    """Bytes without an end."""
    handler.answer(206 if handler.headers.get("Range") else 200, b"", f"bytes {first}-{last}/{len(raw)}", length="none")
    handler.close_connection = True
    try:
        while True:
            handler.wfile.write(b"x" * (1 << 20))
            handler.server.sent += 1 << 20
    except OSError:
        pass


def packed(handler, raw, first, last):
    """A body of zeros that unpacks to a gigabyte."""
    import gzip

    body = gzip.compress(bytes(1 << 24))
    handler.answer(
        206 if handler.headers.get("Range") else 200, body, f"bytes {first}-{last}/{len(raw)}", encoding="gzip"
    )


@pytest.mark.parametrize(
    ("trick", "said"),
    [
        (shifted, "came that are said to be 4 to"),
        (shifted_and_denied, "came that are said to be 0 to"),
        (endless, "is longer than the"),
        (packed, "came compressed"),
    ],
)
def test_a_server_that_lies_about_parts_is_refused(trick, said, hub):
    hub.trick = trick
    done = ask(hub, "org/whole")
    assert done.stdout.startswith("REFUSED load: "), done.stdout[:200]
    assert said in done.stdout
    assert hub.sent < 64 << 20


def test_a_whole_file_that_comes_packed_is_refused(hub):
    hub.victim = "config.json"
    hub.trick = packed
    assert "came compressed" in ask(hub, "org/whole").stdout


def test_an_index_of_very_many_files_is_refused(hub):
    where = {f"t{i}": f"model-{i}.safetensors" for i in range(20_000)}
    hub.repositories["org/many"] = {"model.safetensors.index.json": json.dumps({"weight_map": where}).encode()}
    done = ask(hub, "org/many")
    assert "names 20,000 files" in done.stdout
    assert len(hub.asked) <= 3


def test_a_server_that_drips_is_left_after_a_while(hub, monkeypatch):
    import requests

    from gonio.core.errors import LoadError
    from gonio.files.read import bounded_request

    def drip(handler, raw, first, last):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        try:
            for _ in range(100):
                handler.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            pass

    hub.trick, hub.victim = drip, "config.json"
    monkeypatch.setattr(bounded_request, "FIXED", 0.3)
    monkeypatch.setattr(bounded_request, "SLOWEST", 1e9)
    began = time.monotonic()
    session = requests.Session()
    session.trust_env = False
    with pytest.raises(LoadError, match="came too slowly"):
        bounded_request.fetch(session, f"{hub.address}/org/whole/resolve/main/config.json", {}, 1_000_000)
    session.close()
    assert time.monotonic() - began < 3
