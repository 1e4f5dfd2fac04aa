"""A hub on the loopback: commits, etags, parts of files, redirects, errors by name; it notes what it is asked."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SECRET = "hf_secretsecretsecret"
CODE = """
import json, sys, gonio
{before}
try:
    h = gonio.load(sys.argv[1])
except gonio.GonioError as e:
    print("REFUSED", e); sys.exit()
print(json.dumps([h.digest, h.source.bytes_read, h.labels[0], h.source.place, len(h.padded)]))
"""


class Server(ThreadingHTTPServer):
    """Serves models out of a dict; `elsewhere` is another server to which bodies are redirected."""

    def __init__(self, models, elsewhere: str = "", trick=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.models, self.elsewhere, self.trick = models, elsewhere, trick
        self.asked: list[tuple[str, str, str | None]] = []  # method, path, Authorization
        self.weights = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @staticmethod
    def commit(name: str) -> str:
        return hashlib.sha1(name.encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server, path = self.server, self.path.split("?")[0].strip("/")
        server.asked.append((self.command, path, self.headers.get("Authorization")))
        if path.startswith("api/models/"):
            return self.api(*path.removeprefix("api/models/").replace("/tree/", "/revision/").split("/revision/"))
        name, _, rest = path.partition("/resolve/")
        if name == "org/gated":
            return self.answer(403, b"", {"X-Error-Code": "GatedRepo"})
        if name not in server.models:
            return self.answer(401, b"", {"X-Error-Code": "RepoNotFound"})
        revision, _, file = rest.partition("/")
        commit = server.commit(name)
        if revision not in ("main", "v1", commit):
            return self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        raw = server.models[name].get(file)
        told = {"X-Repo-Commit": commit}
        if raw is None:
            return self.answer(404, b"", told | {"X-Error-Code": "EntryNotFound"})
        told["ETag"] = f'"{hashlib.sha1(raw).hexdigest()}"'
        if server.elsewhere and self.command == "GET":
            return self.answer(302, b"", told | {"Location": f"{server.elsewhere}/{path}"})
        if file.endswith(".safetensors"):
            server.weights += self.command == "GET"
            if server.trick is not None:
                return server.trick(self, raw, told)
        span = self.headers.get("Range")
        if span is None:
            return self.answer(200, raw, told)
        first, _, last = span.removeprefix("bytes=").partition("-")
        part = raw[int(first) : int(last or len(raw) - 1) + 1]
        where = f"bytes {first}-{int(first) + len(part) - 1}/{len(raw)}"
        return self.answer(206, part, told | {"Content-Range": where})

    def api(self, name: str, revision: str):
        if name not in self.server.models:
            return self.answer(401, b"{}", {"X-Error-Code": "RepoNotFound"})
        if "/tree/" in self.path:
            files = [
                {"type": "file", "path": k, "size": len(v), "oid": hashlib.sha1(v).hexdigest()}
                for k, v in self.server.models[name].items()
            ]
            return self.answer(200, json.dumps(files).encode(), {"Content-Type": "application/json"})
        files = [{"rfilename": x} for x in self.server.models[name]]
        about = {"id": name, "sha": self.server.commit(name), "siblings": files, "private": False, "tags": []}
        return self.answer(200, json.dumps(about).encode(), {"Content-Type": "application/json"})

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def serving(models, **how):
    server = Server(models, **how)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def run(code: str, cache: Path, address: str, *args: str, **more: str):
    """Python in a process of its own: huggingface_hub reads its settings when it is imported."""
    settings = {
        "HF_ENDPOINT": address,
        "HF_TOKEN": SECRET,
        "XDG_CACHE_HOME": str(cache),
        "HF_HOME": str(cache / "huggingface"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    environment = {k: v for k, v in os.environ.items() if k not in ("HF_HUB_CACHE", "HF_HUB_OFFLINE")}
    line = [sys.executable, "-c", code, *args]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, env=environment | settings | more)


def load(name: str, cache: Path, address: str, before: str = "", **more: str):
    done = run(CODE.format(before=before), cache, address, name, **more)
    assert done.returncode == 0, done.stderr
    return done


def snapshot(cache: Path, name: str, files: dict[str, bytes], commit: str = "", refs: bool = True) -> Path:
    """A model in the layout of huggingface_hub's cache: blobs, links to them, the commit of main."""
    home = cache / "huggingface" / "hub" / f"models--{name.replace('/', '--')}"
    commit = commit or Server.commit(name)
    folder = home / "snapshots" / commit
    for file, raw in files.items():
        blob = home / "blobs" / hashlib.sha1(raw).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(raw)
        link = folder / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    if refs:
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs" / "main").write_text(commit)
    return folder
