"""Names of models on the hub as people write them: gpt2, org/name, org/name@revision, hf://org/name/file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from gonio.core.errors import LoadError

PART = r"[A-Za-z0-9](?:[\w.-]{0,94}[\w])?"
REVISION = r"refs/(?:pr|convert)/[\w.-]+|[\w][\w.+-]*"
NAME = re.compile(rf"(?P<repository>{PART}(?:/{PART})?)(?:@(?P<revision>{REVISION}))?", re.ASCII)
URI = re.compile(
    rf"hf://(?:models/)?(?P<repository>{PART}/{PART}|{PART}(?=@|$))(?:@(?P<revision>{REVISION}))?(?:/(?P<file>.+))?",
    re.ASCII,
)
COMMIT = re.compile(r"[0-9a-f]{40}")
# A name that ends like one of these is that of a file, and of no model.
FILE_ENDINGS = (
    *(".npy", ".npz", ".safetensors", ".gguf", ".onnx", ".pt", ".pth", ".bin", ".ckpt", ".vec", ".txt", ".gz", ".zip"),
    *(".h5", ".keras", ".tflite", ".pb", ".msgpack", ".pkl", ".pickle", ".joblib", ".model", ".mlmodel", ".pdparams"),
    *(".csv", ".tsv", ".parquet", ".json", ".jsonl", ".yaml", ".html", ".py", ".ipynb", ".md", ".tar", ".tgz"),
)


@dataclass(frozen=True)
class HubName:
    """A model of the hub, at a revision (a branch, a tag or a commit), and a file of it where one is named."""

    repository: str
    revision: str = "main"
    file: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether it is one word, as the name of a file may be too."""
        return "/" not in self.repository

    def __str__(self) -> str:
        at = "" if self.revision == "main" else f"@{self.revision}"
        return f"hf://{self.repository}{at}/{self.file}" if self.file else f"{self.repository}{at}"


def parse_hub_name(text: str) -> HubName | None:
    """The model that a text names; None where it cannot be one.

    >>> parse_hub_name("org/name@v1")
    HubName(repository='org/name', revision='v1', file='')
    >>> str(parse_hub_name("hf://org/name/a/model.safetensors")), parse_hub_name("head.npz")
    ('hf://org/name/a/model.safetensors', None)
    """
    found = URI.fullmatch(text) if text.startswith("hf://") else NAME.fullmatch(text)
    if found is None or not _is_allowed(found["repository"]):
        return None
    file = found.groupdict().get("file") or ""
    if file and not is_inside(file):
        return None
    if not text.startswith("hf://") and PurePosixPath(text).suffix.lower() in FILE_ENDINGS:
        return None
    return HubName(found["repository"], found["revision"] or "main", file)


def hub_name(text: str | HubName, who: str = "load") -> HubName:
    """The model that a text must name."""
    if isinstance(text, HubName):
        return text
    found = parse_hub_name(text)
    if found is None:
        raise LoadError(
            f"{who}: {text[:80]!r} is no name of a model on the hub; write org/name, org/name@revision or "
            f"hf://org/name/file."
        )
    return found


def is_inside(file: str) -> bool:
    """Whether a file's name stays inside its repository."""
    parts = file.split("/")
    plain = not re.search(r"[\x00-\x1f\\?#%:]", file)
    return plain and len(file) <= 500 and all(p not in ("", ".", "..") for p in parts)


def _is_allowed(repository: str) -> bool:
    """The hub's own rules: no two dashes or stops in a row, at most 96 characters."""
    return len(repository) <= 96 and "--" not in repository and ".." not in repository
