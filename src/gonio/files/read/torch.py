"""torch: files of weights (never of code), state dicts and modules."""

from __future__ import annotations

import io
import os
import sys
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.archive import Archive, Entry
from gonio.core.errors import LoadError, missing_extra
from gonio.files.read import names
from gonio.files.read.head_draft import Draft

INSIDE = ("state_dict", "model_state_dict", "model", "module", "net", "weights")  # where trainers keep the weights


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise missing_extra("load", "torch", "torch") from None
    return torch


class TorchArchive(Archive):
    """The tensors of a state dict."""

    format = "torch"

    def __init__(self, state: Mapping[str, Any], place: str) -> None:
        torch = _torch()
        self.state = {str(k): v for k, v in state.items() if isinstance(v, torch.Tensor)}
        entries = {k: Entry(tuple(v.shape), str(v.dtype).removeprefix("torch.")) for k, v in self.state.items()}
        super().__init__(place, entries)
        self.files = dict.fromkeys(self.state, place)
        self.live = False  # tensors that the caller can still change are copied

    def holder(self, name: str) -> str:
        return self.files[name]

    def _fetch(self, name: str) -> np.ndarray:
        t = self.state[name]
        if not self.live:
            self._must_be_stored(name, t)
        a = as_array(t)
        return a.copy() if self.live else a

    def _must_be_stored(self, name: str, t: Any) -> None:
        """A tensor of a file may claim any shape over a few bytes, repeated by a stride of 0."""
        torch = _torch()
        if t.layout != torch.strided or t.device.type == "meta":
            raise LoadError(f"load: {name} of {self.place} is a sparse or empty shell of a tensor; save it dense.")
        claimed, held = t.numel() * t.element_size(), t.untyped_storage().nbytes()
        if claimed > held:
            raise LoadError(
                f"load: {name} of {self.place} claims shape {tuple(t.shape)} and so {claimed:,} bytes, and {held:,} "
                f"are stored: the rest repeats them. If that is meant, save it with .contiguous()."
            )


def as_array(t: Any) -> np.ndarray:
    """A tensor as an array of the same type, without a copy where it lies still on the CPU."""
    torch = _torch()
    t = t.detach().cpu()
    narrow = {torch.bfloat16: "bfloat16", torch.float8_e4m3fn: "float8_e4m3fn", torch.float8_e5m2: "float8_e5m2"}
    if t.dtype in narrow:
        from gonio.files.read.safetensors import dtype_of

        bits = torch.int16 if t.dtype == torch.bfloat16 else torch.uint8
        return t.contiguous().view(bits).numpy().view(dtype_of(narrow[t.dtype]))
    if t.is_quantized:
        raise LoadError("load: the head is a quantised torch tensor; call .dequantize() on it and save that.")
    return t.numpy()


def open_file(path: Path) -> TorchArchive:
    """The tensors of a torch file. Only weights are read: a file that holds code is refused."""
    torch = _torch()
    _check_zip(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of kinds of tensors that are refused here anyway
            if zipfile.is_zipfile(path):
                loaded = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
            else:
                with _Capped(io.FileIO(path)) as f:
                    loaded = torch.load(f, weights_only=True, map_location="cpu")
    except Exception as e:
        text = " ".join(str(e).split())
        if "weights_only" in text or "Unsupported" in text:
            raise LoadError(
                f"load: {path} holds more than weights, and what it holds could run code; load it yourself and save "
                f"model.state_dict()."
            ) from None
        raise LoadError(f"load: {path} cannot be read as a torch file ({type(e).__name__}: {text[:160]}).") from None
    return TorchArchive(_state(loaded, str(path)), str(path))


class _Capped(io.BufferedReader):
    """A file that never sets room aside for more than is left of it: a damaged length may claim gigabytes."""

    def read(self, size: int | None = -1, /) -> bytes:
        left = os.fstat(self.fileno()).st_size - self.tell()
        return super().read(left if size is None or size < 0 else min(size, left))


def _check_zip(path: Path) -> None:
    """torch stores its tensors uncompressed: members that claim more than the file holds are a lie."""
    if not zipfile.is_zipfile(path):
        return
    size = path.stat().st_size
    with zipfile.ZipFile(path) as z:
        if sum(i.file_size for i in z.infolist()) > size:
            raise LoadError(f"load: {path} claims more bytes than it has; it is damaged.")


def _state(loaded: Any, place: str) -> Mapping[str, Any]:
    torch = _torch()
    for _ in range(3):
        if isinstance(loaded, torch.Tensor):
            return {"W": loaded}
        if not isinstance(loaded, Mapping):
            break
        if any(isinstance(v, torch.Tensor) for v in loaded.values()):
            return loaded
        inner = next((loaded[k] for k in INSIDE if k in loaded), None)
        if inner is None:
            break
        loaded = inner
    raise LoadError(f"load: {place} holds a {type(loaded).__name__} and no tensors by name; save model.state_dict().")


def is_module(x: Any) -> bool:
    """Whether `x` is a torch module; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.nn.Module)


def is_state(x: Any) -> bool:
    """Whether `x` is a tensor or a dict of tensors."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return isinstance(x, torch.Tensor) or (
        isinstance(x, Mapping) and any(isinstance(v, torch.Tensor) for v in x.values())
    )


def of_state(x: Any, tensor: str | None = None) -> Draft:
    """The head of a state dict, or a tensor of label rows."""
    archive = TorchArchive(_state(x, "the object"), "a state dict")
    archive.live = True
    return names.draft(archive, tensor)


def of_module(x: Any, tensor: str | None = None) -> Draft:
    """The head of a torch module; a transformers model brings its config."""
    archive = TorchArchive(x.state_dict(), f"a {type(x).__name__}")
    archive.live = True
    config = getattr(x, "config", None)
    if config is not None and hasattr(config, "to_dict"):
        from gonio.files.read import checkpoint

        about = config.to_dict()
        about.setdefault("architectures", None)
        about["architectures"] = [type(x).__name__]
        return checkpoint.draft(archive, about, lambda name: None, tensor)
    return names.draft(archive, tensor)
