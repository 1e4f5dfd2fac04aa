"""Every parser of files from strangers: a few small good files, and how a file is read. Fuzzers begin here.

`file` puts what is fuzzed into the file that is read: most are the file itself, but a damaged member of an archive
would only ever fail its checksum, so members are fuzzed before they are packed.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gonio
from gonio import Head
from gonio.cli import model as options
from gonio.core.unpack_limit import set_unpack_limit
from gonio.diagnostics import frequency_bias, norms
from gonio.factors.interactions import Interactions
from gonio.files.read.sparse import read_sparse
from gonio.proofs.proof_file import save, verify_file
from tests.files.test_fasttext import written as fasttext
from tests.files.test_wordvectors import as_binary, as_text

RNG = np.random.default_rng(0)
W = RNG.standard_normal((9, 4)).astype(np.float32)
LABELS = [f"t{i}" for i in range(9)]
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 9,
    "final_logit_softcapping": 30.0,
}
TOKENIZER = {"model": {"vocab": {f"t{i}": i for i in range(8)}}, "added_tokens": [{"id": 8, "content": "x"}]}
WEIGHTS = {"lm_head.weight": "m.safetensors", "model.norm.weight": "m.safetensors"}
PROOF_HEAD = Head(W, link="softmax")


@dataclass(frozen=True)
class Parser:
    """Files to begin with, made in a folder; how fuzzed bytes become a file; and how the file is read."""

    seeds: Callable[[Path], list[bytes]]
    read: Callable[[Path], Any]
    name: str
    file: Callable[[bytes], bytes] = bytes

    def __call__(self, folder: Path, raw: bytes) -> None:
        """Read a file: whatever it holds, an answer or a GonioError."""
        path = folder / self.name
        path.write_bytes(self.file(raw))
        self.read(path)


def load(path: Path, **more: Any) -> None:
    head = gonio.load(path, **more)
    assert np.isfinite(head.norms).all()
    assert len(head.labels) == head.shape[0]


def archive(compressed: bool = False, **arrays: Any) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def table(a: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, a)
    return out.getvalue()


def member(name: str, whole: Callable[[], bytes]) -> Callable[[bytes], bytes]:
    """An archive in which one member is replaced by what is fuzzed, its checksum right."""

    def packed(raw: bytes) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(whole())) as old, zipfile.ZipFile(out, "w") as z:
            for n in old.namelist():
                z.writestr(n, raw if n.endswith(name) else old.read(n))
        return out.getvalue()

    return packed


def inside(name: str, *wholes: bytes) -> list[bytes]:
    """That member of each archive."""
    out = []
    for whole in wholes:
        with zipfile.ZipFile(io.BytesIO(whole)) as z:
            out += [z.read(n) for n in z.namelist() if n.endswith(name)]
    return out


def plain_npz(compressed: bool = False) -> bytes:
    return archive(compressed, W=W, b=np.ones(9), labels=np.array(LABELS), inputs=np.array("box:-1,1"))


def safetensors(folder: Path) -> bytes:
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed; make test installs it")
    numpy.save_file({"lm_head.weight": W, "model.norm.weight": np.ones(4, np.float32)}, folder / "made.safetensors")
    return (folder / "made.safetensors").read_bytes()


def torch_file(old: bool = False) -> bytes:
    torch = pytest.importorskip("torch", reason="torch is not installed; make test installs it")
    out = io.BytesIO()
    state = {"fc.weight": torch.from_numpy(W.copy()), "fc.bias": torch.zeros(9), "epoch": 3}
    torch.save({"state_dict": state}, out, _use_new_zipfile_serialization=not old)
    return out.getvalue()


def onnx_files(folder: Path) -> list[bytes]:
    from tests.files import onnx_made as made

    nodes = [made.op("MatMul", "x w", "y"), made.op("Add", "y b", "l"), made.op("Softmax", "l", "p", axis=-1)]
    norm = [made.op("LayerNormalization", "x g s", "n", axis=-1), made.op("Gemm", "n w b", "p")]
    parts = {"w": made.W.T.copy(), "b": made.B}
    return [
        made.model(nodes, parts).SerializeToString(),
        made.model(norm, parts | {"g": made.GAIN, "s": made.SHIFT}).SerializeToString(),
    ]


def gguf_file(folder: Path) -> list[bytes]:
    from tests.files import gguf_made as made

    return [
        made.llama(folder / "made.gguf").read_bytes(),
        made.llama(folder / "q.gguf", kind=made.TYPES.Q8_0).read_bytes(),
    ]


def fasttext_files(folder: Path) -> list[bytes]:
    names = [f"__label__{i}".encode() for i in range(9)]
    return [fasttext(folder / "made", W, names, quantised_input=q).read_bytes() for q in (False, True)]


def sparse_files(folder: Path) -> list[bytes]:
    from scipy import sparse

    X = sparse.csr_matrix((RNG.random((12, 7)) < 0.4).astype(np.float32))
    for kind in ("csr", "csc", "coo"):
        sparse.save_npz(folder / f"{kind}.npz", X.asformat(kind), compressed=kind == "csc")
    return [(folder / f"{kind}.npz").read_bytes() for kind in ("csr", "csc", "coo")]


def proof_files(folder: Path) -> list[bytes]:
    proofs = list(gonio.can_win(PROOF_HEAD).certificates())
    proofs += [gonio.can_rank(PROOF_HEAD, [0, 1, 2]).certificate, gonio.can_top(PROOF_HEAD, [1, 2]).certificate]
    proofs += [gonio.can_tie(PROOF_HEAD, 0, 1).certificate]
    save(folder / "made.npz", proofs)
    return [(folder / "made.npz").read_bytes()]


def beside(folder: Path, **files: Any) -> Path:
    """A checkpoint folder with these files beside the fuzzed one, which is there already."""
    if not (folder / "m.safetensors").exists():
        (folder / "m.safetensors").write_bytes(safetensors(folder))
        (folder / "made.safetensors").unlink()
        for name, value in files.items():
            (folder / name).write_text(json.dumps(value))
    return folder


def in_folder(name: str, *seeds: Any, **others: Any) -> Parser:
    made = [s.encode() if isinstance(s, str) else json.dumps(s).encode() for s in seeds]
    return Parser(lambda _: made, lambda path: load(beside(path.parent, **others)), name)


def texts(*seeds: str) -> Callable[[Path], list[bytes]]:
    return lambda _: [s.encode() for s in seeds]


def lengths(path: Path) -> None:
    head = Head(W, labels=LABELS, link="softmax")
    norms(head, options.frequencies_of(str(path), "diagnose"))
    frequency_bias(head, options.frequencies_of(str(path), "diagnose"))


def interactions(path: Path) -> None:
    Interactions(read_sparse(path, "factors"), who="factors")


PARSERS = {
    "npz": Parser(lambda _: [plain_npz(), plain_npz(True)], load, "x.npz"),
    "npz member": Parser(
        lambda _: inside("W.npy", plain_npz()), load, "x.npz", member("W.npy", plain_npz)
    ),
    "npz labels": Parser(
        lambda _: inside("labels.npy", plain_npz()), load, "x.npz", member("labels.npy", plain_npz)
    ),
    "npy": Parser(lambda _: [table(W), table(np.asfortranarray(W.astype(">f8")))], load, "x.npy"),
    "safetensors": Parser(lambda f: [safetensors(f)], load, "x.safetensors"),
    "torch": Parser(lambda _: [torch_file()], load, "x.pt"),
    "torch pickle": Parser(lambda _: inside("data.pkl", torch_file()), load, "x.pt", member("data.pkl", torch_file)),
    "torch old": Parser(lambda _: [torch_file(old=True)], load, "x.bin"),
    "onnx": Parser(onnx_files, load, "x.onnx"),
    "gguf": Parser(gguf_file, load, "x.gguf"),
    "word vectors": Parser(lambda _: [as_text(), as_text(header=False)], load, "x.txt"),
    "binary word vectors": Parser(lambda _: [as_binary()], load, "x.bin"),
    "gzipped word vectors": Parser(lambda _: [as_text(), as_binary()], load, "x.gz", lambda raw: gzip.compress(raw, 1)),
    "fastText": Parser(fasttext_files, load, "x.bin"),
    "config": in_folder("config.json", CONFIG, CONFIG | {"id2label": {str(i): f"c{i}" for i in range(9)}}, **{"tokenizer.json": TOKENIZER}),
    "tokenizer": in_folder("tokenizer.json", TOKENIZER, **{"config.json": CONFIG}),
    "vocabulary": in_folder("vocab.json", {f"t{i}": i for i in range(9)}, **{"config.json": CONFIG, "added_tokens.json": {"x": 8}}),
    "vocabulary lines": in_folder("vocab.txt", "\n".join(LABELS), **{"config.json": CONFIG}),
    "added tokens": in_folder("added_tokens.json", {"x": 8}, **{"config.json": CONFIG, "vocab.json": {"a": 0}}),
    "modules": in_folder("modules.json", [{"idx": 0, "type": "a.Normalize"}], **{"config.json": CONFIG | {"architectures": ["BertModel"]}}),
    "index": in_folder("model.safetensors.index.json", {"weight_map": WEIGHTS}, **{"config.json": CONFIG}),
    "interactions": Parser(sparse_files, interactions, "x.npz"),
    "interactions shape": Parser(
        lambda f: inside("shape.npy", *sparse_files(f)), interactions, "x.npz",
        lambda raw: member("shape.npy", lambda: PACKED["coo"])(raw),
    ),
    "proof": Parser(proof_files, lambda path: verify_file(PROOF_HEAD, path), "p.npz"),
    "proof member": Parser(
        lambda f: inside("rivals.npy", *proof_files(f)), lambda path: verify_file(PROOF_HEAD, path), "p.npz",
        lambda raw: member("rivals.npy", lambda: PACKED["proof"])(raw),
    ),
    "observed": Parser(
        lambda _: [table(W)], lambda path: load(PACKED["model"], inputs=f"observed:{path}"), "x.npy",
    ),
    "labels": Parser(texts("\n".join(LABELS)), lambda path: load(PACKED["model"], labels=path), "x.txt"),
    "labels in JSON": Parser(
        texts(json.dumps(LABELS), json.dumps(TOKENIZER)), lambda path: load(PACKED["model"], labels=path), "x.json",
    ),
    "frequencies": Parser(texts("".join(f"{x}\t{k + 1}\n" for k, x in enumerate(LABELS)), "1\n" * 9), lengths, "x.txt"),
    "pairs": Parser(texts("0\t1\n#2\t#3\n"), lambda path: options.pairs_of(str(path), PROOF_HEAD, "audit"), "x.txt"),
}  # fmt: skip
PACKED: dict[str, Any] = {}  # what some parsers need beside the fuzzed file


def seeds_of(name: str, folder: Path) -> list[bytes]:
    """The files to begin with; what else the parser needs is made too, and little may be unpacked."""
    set_unpack_limit(0.05)
    made = folder / "seeds"
    made.mkdir(exist_ok=True)
    PACKED["coo"] = sparse_files(made)[2]
    PACKED["proof"] = proof_files(made)[0]
    PACKED["model"] = made / "m.npz"
    PACKED["model"].write_bytes(plain_npz())
    return PARSERS[name].seeds(made)
