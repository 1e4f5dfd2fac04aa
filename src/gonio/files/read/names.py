"""Which tensor of an archive is the head, where no config tells."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gonio.core.archive import Archive
from gonio.core.errors import LoadError
from gonio.core.row_table import Affine8, RowTable, Scaled
from gonio.files.read.head_draft import Draft

# Names under which heads are saved, surest first. The last part is the weight's own name.
_WEIGHT = r"([./_](weights?|w|kernel|coef_?))?$"
TIERS = tuple(
    re.compile(rf"(^|[./_])({names}){_WEIGHT}", re.IGNORECASE)
    for names in (
        r"lm_head(\.decoder)?|embed_out|unembed(ding)?|W_U|cls\.predictions\.decoder|predictions\.decoder|vocab_projector",
        r"classifier(\.out_proj)?|score|logits?(_layer(\.\d+)?)?|classification_head(\.out_proj)?",
        r"head(\.\d+)?|heads\.head|output(_layer|_projection)?|proj_out|fc|fc_out|readout|out",
    )
)
PLAIN = ("w", "weight", "weights", "coef_", "coef", "kernel")
LYING_DOWN = re.compile(r"(^|[./_])(kernel|W_U)$")  # stored (dim, labels)
NUMBER = re.compile(r"\d+")
EMBEDDINGS = re.compile(r"(^|[./_])(word_?|tok(en)?s?_?)?(embeddings?|embed|emb|wte)([./_]|$)", re.IGNORECASE)
PACKED = re.compile(r"\.(qweight|weight_packed|weight\.absmax|weight\.quant_map)$")


@dataclass(frozen=True)
class Choice:
    """The tensor taken for the head, and why."""

    name: str
    why: str
    assumed: bool = False


def choose(archive: Archive, tensor: str | None) -> Choice:
    """The head's tensor: the one named, else the one whose name or lonely shape tells."""
    matrices = [n for n, e in archive.entries.items() if e.is_matrix]
    if tensor is not None:
        if tensor not in archive.entries:
            raise archive.unknown(tensor)
        if tensor not in matrices:
            raise LoadError(
                f"load: tensor {tensor!r} of {archive.place} is {archive.entries[tensor]}; a head needs two axes of "
                f"floating-point numbers, as {archive.candidates()}."
            )
        return Choice(tensor, "named by the caller")
    if len(matrices) == 1:
        return Choice(matrices[0], "the only two-dimensional float tensor")
    for tier in TIERS:
        hits = [n for n in matrices if tier.search(n)]
        if hits:
            return _one_of(hits, archive)
    hits = [n for n in matrices if n.lower() in PLAIN]
    if hits:
        return _one_of(hits, archive)
    if matrices and len({NUMBER.sub("#", n) for n in matrices}) == 1:
        return _one_of(matrices, archive)
    if not matrices:
        packed = next((n for n in archive.entries if PACKED.search(n)), None)
        if packed:
            raise LoadError(
                f"load: {archive.place} holds packed weights ({packed}), which only the library that wrote them reads; "
                f"dequantise the head and save it in float16 or float32."
            )
        if any(e.dtype.startswith("object") for e in archive.entries.values()):
            raise LoadError(
                f"load: {archive.place} holds pickled objects, which can run code and are never opened; save the head "
                f"as a float array."
            )
        raise LoadError(
            f"load: {archive.place} has {archive.candidates()}; a table of label rows, two axes of floating-point "
            f"numbers, is needed."
        )
    raise LoadError(
        f"load: which of {archive.place}'s tensors is the head cannot be told; name it with tensor=: "
        f"{archive.candidates(matrices)}."
    )


def _one_of(hits: list[str], archive: Archive) -> Choice:
    """The only hit, or the last of a numbered series (the later layer of a stack)."""
    if len(hits) == 1:
        return Choice(hits[0], "by its name")
    if len({NUMBER.sub("#", n) for n in hits}) == 1:
        last = max(hits, key=lambda n: [int(x) for x in NUMBER.findall(n)])
        return Choice(last, f"the last of {len(hits)} layers of that name", assumed=True)
    raise LoadError(
        f"load: {len(hits)} tensors of {archive.place} could be the head; name one with tensor=: "
        f"{archive.candidates(hits)}."
    )


def bias_of(archive: Archive, weight: str) -> str | None:
    """The bias that belongs to a weight, by its name and its length."""
    stem, dot, last = re.fullmatch(r"(.*?)([./_]?)([^./_]*_?)", weight).groups()  # type: ignore[union-attr]
    pairs = {
        "weight": ("bias",),
        "weights": ("bias", "biases"),
        "kernel": ("bias",),
        "w": ("b", "bias"),
        "W": ("b", "bias", "B"),
        "coef_": ("intercept_", "intercept"),
        "coef": ("intercept",),
        "U": ("U",),  # W_U, b_U
    }
    tries = [stem + dot + b for b in pairs.get(last, ())]
    if weight.endswith("W_U"):
        tries = [weight[:-3] + "b_U"]
    if last == "weight" and stem.endswith("decoder"):  # the bias may hang on the decoder or on its parent
        tries.append(stem.removesuffix("decoder").rstrip(".") + ".bias")
    sizes = archive.entries[weight].shape[:2]
    for name in tries:
        entry = archive.entries.get(name)
        if entry and "float" in entry.dtype and int(np.prod(entry.shape)) in sizes and max(entry.shape, default=0) > 0:
            longest = int(np.prod(entry.shape))
            if longest == max(entry.shape):
                return name
    return None


def rows_of(archive: Archive, name: str, *, lying_down: bool = False, factor: float = 1.0) -> RowTable:
    """The rows of a tensor: turned if it lies down, with the scale of an 8-bit tensor and a factor on the logits."""
    entry = archive.entries[name]
    stored = archive.read(name)
    stored = stored.reshape(entry.shape[:2])  # a 1x1 convolution is a matrix
    if lying_down:
        stored = stored.T
    for suffix in ("_scale", "_scale_inv"):
        if name + suffix in archive.entries and stored.dtype.itemsize == 1:
            scale = (
                archive.vector(name + suffix) if archive.entries[name + suffix].shape else archive.read(name + suffix)
            )
            scale = scale.reshape(-1)
            if len(scale) not in (1, len(stored)):
                raise LoadError(
                    f"load: {name} of {archive.place} is scaled block by block ({archive.entries[name + suffix]}); "
                    f"one scale in all or one a row is read. Save the head in bfloat16 or float32."
                )
            scale = scale.astype(np.float32) * np.float32(factor)
            unpack = Affine8(scale.reshape(()) if len(scale) == 1 else scale, np.zeros((), np.float32))
            return RowTable(stored, unpack=unpack, kind=entry.dtype)
    if factor != 1.0:
        return RowTable(stored, unpack=Scaled(factor), kind=stored.dtype.name)
    return RowTable(stored)


def draft(archive: Archive, tensor: str | None) -> Draft:
    """The head of an archive about which nothing else is known."""
    choice = choose(archive, tensor)
    bias_name = bias_of(archive, choice.name)
    n, d = archive.entries[choice.name].shape[:2]
    bias = None if bias_name is None else archive.vector(bias_name)
    lying_down = bool(LYING_DOWN.search(choice.name)) or (bias is not None and len(bias) == d != n)
    if lying_down and bias is not None and len(bias) != d:
        bias, bias_name = None, None
    out = Draft(archive.place, archive.format, rows_of(archive, choice.name, lying_down=lying_down), bias=bias)
    turned = ", turned: it is stored (dim, labels)" if lying_down else ""
    out.decide("weight", f"{choice.name}, {choice.why}{turned}", assumed=choice.assumed)
    out.decide("bias", f"{bias_name}, by its name" if bias_name else "")
    headlike = any(tier.search(choice.name) for tier in TIERS) or choice.name.lower() in PLAIN or bias is not None
    if bias is None and EMBEDDINGS.search(choice.name):
        out.decide("link", f"{choice.name} says embeddings; of what, and what reads them, is not told")
    elif headlike:
        out.suppose("softmax", "nothing tells how the scores of this layer become predictions")
    out.tensors = {"W": choice.name} | ({"bias": bias_name} if bias_name else {})
    out.bytes_read = archive.bytes_read
    out.turned, out.file = lying_down, archive.holder(choice.name)
    return out
