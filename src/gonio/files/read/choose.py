"""Which reader fits a file: its first bytes decide, its name only where they cannot."""

from __future__ import annotations

import errno
from pathlib import Path

from gonio.core.errors import GonioError, LoadError, MissingExtraError
from gonio.files.read.head_draft import Draft
from gonio.files.read.hub_name import HubName, hub_name, parse_hub_name

# What to do with files that hold a model in a form gonio does not read.
KERAS = "Keras: layer.get_weights() gives kernel and bias; np.savez('head.npz', kernel=..., bias=...) and load that"
PICKLE = "a pickle can run code when it is opened, so gonio never opens one: load it yourself and pass the object"
CONVERT = {
    ".h5": KERAS,
    ".keras": KERAS,
    ".tflite": "TFLite: convert the original model to ONNX (tf2onnx) and load that",
    ".pb": "TensorFlow: convert it to ONNX (tf2onnx) and load that",
    ".ckpt": "if torch wrote it, rename it to .pt; if TensorFlow did, convert it to ONNX (tf2onnx)",
    ".msgpack": "Flax: flatten the parameters and np.savez('head.npz', kernel=..., bias=...)",
    ".pkl": PICKLE,
    ".pickle": PICKLE,
    ".joblib": "joblib files are pickles and can run code: joblib.load it yourself and pass the estimator",
    ".model": "SentencePiece and gensim models: pass the loaded gensim object, or save its vectors in word2vec format",
    ".mlmodel": "Core ML: convert the original model to ONNX and load that",
    ".pdparams": "PaddlePaddle: convert it with paddle2onnx and load the .onnx file",
    ".csv": "save the numbers with np.save('head.npy', ...), or as word2vec text: a name and its numbers a line",
    ".parquet": "save the numbers with np.save('head.npy', ...)",
    ".json": "give the folder that holds the checkpoint, or the weights file itself",
    ".zip": "unpack it and give the folder or the weights file",
}
KINDS = (
    ".npy, .npz, .safetensors, .gguf, .onnx, .pt, .pth, .bin, word vectors (.txt, .vec, .bin) and checkpoint folders"
)
TORCH_NAMES = (".pt", ".pth", ".bin", ".ckpt")


def draft_of_path(x: str | Path, tensor: str | None) -> Draft:
    """The head of a file, a folder or a model of the hub, in draft."""
    path = Path(x)
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError):
        raise LoadError(f"load: {str(x)[:80]!r} is not a path; give a file, a folder or a model's name.") from None
    if is_folder:
        from gonio.files.read import folder

        return _guarded(folder.draft, path, tensor, "a checkpoint folder")
    if not is_file:
        model = _hub_model(x)
        if model is None:
            raise LoadError(f"load: there is no file {path}; give a path to one of {KINDS}.")
        return _of_hub(model, tensor)
    reader, kind = _file_reader(path)
    return _guarded(reader, path, tensor, kind)


def _hub_model(x: str | Path) -> HubName | None:
    """The model of the hub that a name which is no path stands for; None where a file must have been meant."""
    if not isinstance(x, str):
        return None
    if x.startswith("hf://"):
        return hub_name(x)
    model = parse_hub_name(x)
    return model if model is not None and (model.is_bare or not Path(x).parent.is_dir()) else None


def _of_hub(model: HubName, tensor: str | None) -> Draft:
    """The head of a model of the hub: from its folder or file in the cache, else by parts."""
    from gonio.files.read import folder, hub, hub_cache

    try:
        if model.file and not model.file.endswith(".safetensors"):
            return draft_of_path(hub_cache.fetch_file(model), tensor)
        here = None if model.file else hub_cache.local_folder(model)
        return hub.draft(model, tensor) if here is None else _guarded(folder.draft, here, tensor, "a checkpoint folder")
    except (hub_cache.HubError, MissingExtraError) as e:
        if not model.is_bare:
            raise
        why = str(e).removeprefix("load: ")
        raise LoadError(f"load: there is no file {model}; taken for the name of a model: {why}") from None


def _guarded(reader, path: Path, tensor: str | None, kind: str) -> Draft:
    """A broken file may trip the libraries that parse it in any way at all; the user gets one sentence."""
    try:
        return reader(path, tensor)
    except (GonioError, KeyboardInterrupt):
        raise
    except RecursionError:
        raise LoadError(f"load: {path} cannot be read as {kind}: it is nested too deeply; write it anew.") from None
    except Exception as e:
        if isinstance(e, OSError) and e.errno == errno.ENOMEM:
            raise MemoryError from None  # a lack of memory says nothing of the file
        why = " ".join(str(e).split())[:200] or "no reason given"
        raise LoadError(
            f"load: {path} cannot be read as {kind} ({type(e).__name__}: {why}); it is damaged or of another kind."
        ) from e


def _file_reader(path: Path):
    """The reader of a file: its first bytes decide, its name only where they cannot."""
    size = path.stat().st_size
    if size == 0:
        raise LoadError(f"load: {path} is empty; give a path to one of {KINDS}.")
    with path.open("rb") as f:
        start = f.read(512)
    name = path.suffix.lower()
    if start.startswith(b"\x93NUMPY"):
        from gonio.files.read.arrays import npy

        return npy, "a .npy array"
    if start.startswith(b"GGUF") or name == ".gguf":
        from gonio.files.read import gguf

        return gguf.draft, "GGUF"
    if start.startswith(b"PK"):
        return _zip_reader(path)
    if start.startswith(b"\x89HDF"):
        raise _unread(path, ".h5")
    from gonio.files.read import fasttext, wordvectors

    if fasttext.looks_like(start):
        return fasttext.draft, "a fastText model"
    if name == ".safetensors" or (len(start) > 8 and start[8:10] == b'{"' and start[6:8] == b"\0\0"):
        from gonio.files.read import folder

        return folder.safetensors_file, "safetensors"
    if name == ".onnx":
        from gonio.files.read import onnx

        return onnx.draft, "ONNX"
    if name in (".npy", ".npz"):
        raise LoadError(f"load: {path} does not start as a {name} file does; it is damaged or of another kind.")
    if start[:1] == b"\x80" and name not in TORCH_NAMES:
        raise _unread(path, name if name in CONVERT else ".pkl")
    if name not in (".pt", ".pth") and wordvectors.looks_like_binary(start):
        return wordvectors.binary, "word2vec binary"
    if name in TORCH_NAMES:
        from gonio.files.read import folder

        return folder.torch_file, "a torch file"
    if name in CONVERT and name != ".csv":
        raise _unread(path, name)
    if name == ".gz" or wordvectors.looks_like_text(start):
        return wordvectors.text, "word vectors in text"
    raise _unread(path, name)


def _zip_reader(path: Path):
    """A zip is what numpy and torch both write; Keras too."""
    import zipfile

    from gonio.files.read import arrays, folder

    try:
        with zipfile.ZipFile(path) as z:
            members = z.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as e:
        raise LoadError(f"load: {path} starts as a zip archive and is damaged ({e}); write it anew.") from None
    if any(m.endswith("/data.pkl") or m == "data.pkl" for m in members):
        return folder.torch_file, "a torch file"
    if members and all(m.endswith(".npy") for m in members):
        return arrays.npz, "a .npz archive"
    if "config.json" in members and any(m.endswith(".h5") for m in members):
        raise _unread(path, ".keras")
    if path.suffix.lower() == ".npz":
        return arrays.npz, "a .npz archive"
    raise _unread(path, path.suffix.lower() if path.suffix.lower() in CONVERT else ".zip")


def _unread(path: Path, name: str) -> LoadError:
    todo = CONVERT.get(name)
    if todo is None:
        return LoadError(f"load: {path} is of no kind that gonio reads; it reads {KINDS}.")
    return LoadError(f"load: {path} is not read by gonio; {todo}.")
