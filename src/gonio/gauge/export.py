"""Write an equivalent head back as a checkpoint of the model's own format.

Everything is written beside the target, in a new folder or file, and moved into place at the end: a full disk or an
interruption leaves nothing half-written, and the model that was read is never touched.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gonio.errors import GonioError
from gonio.gauge.dial import Dialled
from gonio.head import Head
from gonio.parallel import in_threads, spans

Precision = Literal["float32", "same"]
SAFETENSORS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}
# Where a tied model keeps its head once it is untied.
UNTIED = {
    "bert": "cls.predictions.decoder.weight",
    "distilbert": "vocab_projector.weight",
    "roberta": "lm_head.decoder.weight",
    "xlm-roberta": "lm_head.decoder.weight",
    "albert": "predictions.decoder.weight",
    "electra": "generator_lm_head.weight",
    "modernbert": "decoder.weight",
    "gpt_neox": "embed_out.weight",
}
BLOCK = 8 << 20


@dataclass(frozen=True)
class Written:
    """What was written: the model (a folder, or the file in it), the tensor that holds the head, its type, and whether
    the head was untied for it."""

    path: Path
    tensor: str
    dtype: str
    untied: bool


def export(
    head: Head, like: Head, out: Path | str, *, precision: Precision = "float32", overwrite: bool = False
) -> Written:
    """Write `head` as the model that `like` was loaded from, with only its head changed.

    Safetensors (sharded too), torch and npz are written in their own format, everything else in the folder is copied;
    a tied head is untied. Heads of 16-bit models are written in float32, or with precision="same" in their own type.
    A head from another format is written alone, as a safetensors file, with `standalone`.
    """
    source = like.source
    out = Path(out)
    if source is None or source.format not in ("safetensors", "torch", "npz", "npy"):
        kind = "a head made in memory" if source is None else f"a {source.format} model"
        raise GonioError(
            f"export: {kind} cannot be written back; what can be written is safetensors, torch, npz and npy. "
            f"Write the head alone with standalone(head, 'head.safetensors') (on the command line: --head-only)."
        )
    if head.shape != like.shape:
        raise GonioError(
            f"export: the head has shape {head.shape} and the model's {like.shape}; they must be the same."
        )
    stored = like.rows.kind
    dtype = stored if precision == "same" or stored in ("float64", "float32") else "float32"
    if dtype not in SAFETENSORS:
        raise GonioError(
            f"export: the model's head is stored as {stored}, which is not written; use precision='float32'."
        )
    place = Path(source.place)
    if out.resolve() == place.resolve() or place.resolve().is_relative_to(out.resolve()):
        raise GonioError(
            f"export: {out} holds the model that was read, which is never written over; give another place."
        )
    rows = _Stored(head, like, dtype)
    if place.is_dir():
        with _new_folder(out, overwrite) as folder:
            tensor, untied = _folder(place, folder, rows, source.tensors["W"])
        return Written(out, tensor, dtype, untied)
    with _new_folder(out, overwrite) as folder:
        target = folder / place.name
        tensor = _file(place, target, rows, source.tensors["W"])
    return Written(out / place.name, tensor, dtype, False)


def measure(written: Written, dialled: Dialled) -> tuple[float, float]:
    """What the checkpoint as written does to probabilities: (proven bound, largest difference measured).

    With E = W_written - (W + 1 v'), eps = sup over the inputs meant of max_j |E_j x| and the bound is tanh(eps / 2).
    """
    from gonio.load import load

    old, new = dialled.before, load(written.path, link=dialled.before.link, tensor=written.tensor or None)
    new = new.replace(inputs=old.inputs, softcap=old.softcap)
    v = dialled.translation
    if v is None:
        raise GonioError("export: only a head dialled by a translation keeps its embeddings; this one needs new ones.")
    eps = 0.0
    for start, block in new.blocks():
        before = old.rows[start : start + len(block)].astype(np.float64)
        off = np.abs((block.astype(np.float64) - before) - v)
        slack = 2.0**-51 * (np.abs(before) + np.abs(v))  # this difference itself is rounded
        eps = max(eps, float(dialled.meant.sup(off + slack).max()))
    p, q = old.probabilities(dialled.points), new.probabilities(dialled.points)
    return float(np.tanh(eps / 2)), float(np.abs(p - q).max())


def standalone(head: Head, out: Path | str, *, dtype: str = "float32", overwrite: bool = False) -> Path:
    """The head alone, as a safetensors file with `weight` and `bias`."""
    out = Path(out)
    if out.exists() and not overwrite:
        raise GonioError(f"export: {out} exists; choose another name, or say that it may be overwritten.")
    rows = _Stored(head, head, dtype)
    parts: dict[str, Any] = {"weight": rows}
    if head.bias is not None:
        parts["bias"] = head.bias.astype(np.float32)
    out.parent.mkdir(parents=True, exist_ok=True)
    with _new_file(out) as temporary:
        _write_safetensors(temporary, parts, {})
    return out


class _Stored:
    """The rows of a head as they are to be stored: turned back, the logit factor taken out, rounded, block by block."""

    def __init__(self, head: Head, like: Head, dtype: str) -> None:
        from gonio.load.safetensors import dtype_of

        source = like.source
        self.head, self.dtype, self.name = head, dtype_of(dtype), dtype
        self.factor = source.factor if source is not None and source.factor != 1.0 else None
        self.turned = source.turned if source is not None else False
        n, d = head.shape
        self.shape = (d, n) if self.turned else (n, d)
        self.nbytes = n * d * self.dtype.itemsize

    def whole(self) -> np.ndarray:
        """The table as it is to be stored."""
        rows = self._rounded(self.head.W)
        return np.ascontiguousarray(rows.T) if self.turned else rows

    def write_at(self, handle: int, place: int) -> None:
        """Write the table at a place of an open file, block by block over the cores."""
        if self.turned:
            _write_all(handle, self.whole(), place)
            return
        n, d = self.head.shape

        def put(span: tuple[int, int]) -> None:
            block = self._rounded(self.head.rows[span[0] : span[1]])
            _write_all(handle, block, place + span[0] * d * self.dtype.itemsize)

        in_threads(put, spans(n, max(1, (1 << 20) // (8 * d))))

    def _rounded(self, block: np.ndarray) -> np.ndarray:
        if self.factor is not None:
            block = block / self.factor
        with np.errstate(over="ignore"):
            out = block.astype(self.dtype)
            total = np.add.reduce(out if out.dtype.kind == "f" else out.astype(np.float32), axis=None)
        # A sum is finite only if every entry is: one cheap look for the usual case.
        if not np.isfinite(total) and not np.isfinite(out.astype(np.float64)).all():
            raise GonioError(f"export: the head has entries beyond what {self.name} holds; write it in float32.")
        return out


def _write_all(handle: int, block: np.ndarray, place: int) -> None:
    """All bytes of a block at a place: one call may write only a part."""
    left = memoryview(np.ascontiguousarray(block).view(np.uint8).reshape(-1).data)
    while len(left):
        done = os.pwrite(handle, left, place)
        left, place = left[done:], place + done


# -- whole places, moved into place at the end -----------------------------------------------------------------------


@contextmanager
def _new_folder(out: Path, overwrite: bool) -> Iterator[Path]:
    if out.exists() and not overwrite:
        raise GonioError(f"export: {out} exists; choose another name, or say that it may be overwritten.")
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield folder
        folder.chmod(0o755)
        if out.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
            os.replace(out, old / out.name)
            os.replace(folder, out)
            shutil.rmtree(old)
        else:
            os.replace(folder, out)
    except OSError as e:
        raise GonioError(f"export: {out} could not be written ({e.strerror or e}); nothing was left behind.") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _new_file(out: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o644)
        os.replace(name, out)
    except OSError as e:
        raise GonioError(f"export: {out} could not be written ({e.strerror or e}); nothing was left behind.") from None
    finally:
        Path(name).unlink(missing_ok=True)


# -- formats ---------------------------------------------------------------------------------------------------------


def _folder(place: Path, folder: Path, rows: _Stored, tensor: str) -> tuple[str, bool]:
    """A checkpoint folder: the file with the head is written anew, the others are copied."""
    config = json.loads((place / "config.json").read_bytes()) if (place / "config.json").is_file() else {}
    tied = _is_tied(place, config, tensor)
    name = UNTIED.get(str(config.get("model_type")), "lm_head.weight") if tied else tensor
    victim, index = _holder(place, tensor)
    for path in sorted(place.rglob("*")):
        target = folder / path.relative_to(place)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        elif path != victim and not (tied and path.name == "config.json" and path.parent == place) and path != index:
            shutil.copy2(path, target)
    _file(victim, folder / victim.name, rows, name)
    if index is not None:
        table = json.loads(index.read_bytes())
        table["weight_map"][name] = victim.name
        table.setdefault("metadata", {}).pop("total_size", None)
        (folder / index.name).write_text(json.dumps(table, indent=2), encoding="utf-8")
    if tied:
        config["tie_word_embeddings"] = False
        if config.get("model_type") in ("t5", "mt5", "umt5"):
            config.setdefault("scale_decoder_outputs", True)
        (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    return name, tied


def _is_tied(place: Path, config: Mapping[str, Any], tensor: str) -> bool:
    """Whether the head that was read is the table of input embeddings, which must stay as it is."""
    from gonio.load.checkpoint import CLASS_HEADS, TOKEN_HEADS

    heads = (*TOKEN_HEADS, *CLASS_HEADS)
    is_head = any(tensor == h or tensor.endswith("." + h) for h in heads)
    return bool(config) and not is_head


def _holder(place: Path, tensor: str) -> tuple[Path, Path | None]:
    """The file of a folder that holds a tensor, and the index that says so."""
    for name in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        index = place / name
        if index.is_file():
            return place / json.loads(index.read_bytes())["weight_map"][tensor], index
    for name in ("model.safetensors", "pytorch_model.bin", "model.pt", "model.pth"):
        if (place / name).is_file():
            return place / name, None
    return next(iter(sorted(place.glob("*.safetensors")))), None


def _file(path: Path, target: Path, rows: _Stored, tensor: str) -> str:
    """One file with the head replaced or added; the bytes of everything else are copied as they are."""
    with path.open("rb") as f:
        start = f.read(10)
    if start.startswith(b"\x93NUMPY"):
        np.save(target, rows.whole())
    elif start.startswith(b"PK") and path.suffix == ".npz":
        _write_npz(path, target, rows, tensor)
    elif start.startswith(b"PK") or start[:1] == b"\x80":
        _write_torch(path, target, rows, tensor)
    else:
        _copy_safetensors(path, target, rows, tensor)
    return tensor


def _copy_safetensors(path: Path, target: Path, rows: _Stored, tensor: str) -> None:
    with path.open("rb") as f:
        length = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(length))
    about = header.pop("__metadata__", None)
    parts: dict[str, Any] = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        parts[name] = (path, 8 + length + first, last - first, entry["dtype"], entry["shape"])
    parts[tensor] = rows
    _write_safetensors(target, parts, about or {})


def _write_safetensors(target: Path, parts: Mapping[str, Any], about: Mapping[str, str]) -> None:
    header: dict[str, Any] = {"__metadata__": dict(about)} if about else {}
    at = 0
    for name, part in parts.items():
        if isinstance(part, tuple):
            _, _, size, kind, shape = part
        else:
            size, kind, shape = part.nbytes, SAFETENSORS[part.dtype.name], list(part.shape)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    with target.open("wb") as f:
        f.write(len(raw).to_bytes(8, "little") + raw)
        for part in parts.values():
            if isinstance(part, tuple):
                _copy_bytes(part[0], part[1], part[2], f)
            elif isinstance(part, np.ndarray):
                f.write(part.tobytes())
            else:
                f.flush()
                part.write_at(f.fileno(), f.tell())
                f.seek(0, os.SEEK_END)


def _copy_bytes(path: Path, start: int, count: int, out: Any) -> None:
    out.flush()
    with path.open("rb") as f:
        f.seek(start)
        left = count
        while left:
            try:  # inside the kernel where the file system can
                done = os.copy_file_range(f.fileno(), out.fileno(), min(left, 1 << 30), offset_src=start + count - left)
                if not done:
                    raise OSError
            except (OSError, AttributeError):
                f.seek(start + count - left)
                out.seek(0, os.SEEK_END)
                shutil.copyfileobj(_Part(f, left), out, BLOCK)
                done = left
            left -= done
    out.seek(0, os.SEEK_END)


class _Part:
    """The next `left` bytes of a file, as a file."""

    def __init__(self, f: Any, left: int) -> None:
        self.f, self.left = f, left

    def read(self, size: int = -1, /) -> bytes:
        got = self.f.read(min(size, self.left))
        self.left -= len(got)
        return got


def _write_npz(path: Path, target: Path, rows: _Stored, tensor: str) -> None:
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED, allowZip64=True) as new:
        for info in old.infolist():
            if info.filename != tensor + ".npy":
                with old.open(info) as f, new.open(info.filename, "w", force_zip64=True) as g:
                    shutil.copyfileobj(f, g, BLOCK)
        with new.open(tensor + ".npy", "w", force_zip64=True) as g:
            np.lib.format.write_array(g, rows.whole(), allow_pickle=False)  # type: ignore[arg-type]


def _write_torch(path: Path, target: Path, rows: _Stored, tensor: str) -> None:
    import torch

    from gonio.load.torch import INSIDE

    whole = torch.load(path, weights_only=True, map_location="cpu")
    state = whole
    while tensor not in state:
        inner = next((state[k] for k in INSIDE if isinstance(state, dict) and k in state), None)
        if inner is None:
            break  # a tied head, which gets its own name beside the embeddings
        state = inner
    a = rows.whole()
    narrow = {"bfloat16": torch.bfloat16, "float16": torch.float16}
    made = torch.from_numpy(np.ascontiguousarray(a.astype(np.float32) if rows.name in narrow else a))
    state[tensor] = made.to(narrow[rows.name]) if rows.name in narrow else made
    torch.save(whole, target)
