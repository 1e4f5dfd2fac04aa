"""The names of the rows: from tokenizers, vocabularies, class lists, and what the caller gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gonio.core.byte_level import to_byte_level
from gonio.core.errors import LoadError

Files = Callable[[str], bytes | None]  # the contents of a file beside the weights, or None


def given(labels: Any, count: int) -> tuple[Sequence[str], tuple[int, ...]]:
    """Labels as the caller gave them, and the rows that have none.

    A sequence, a tokenizer, or a file with one a line, a JSON list, or a tokenizer's vocabulary.
    """
    if is_tokenizer(labels):
        return named(of_tokenizer(labels), count)
    if not isinstance(labels, (str, Path)):
        return labels, ()
    path = Path(labels)
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise LoadError(f"load: the labels file {path} cannot be read ({e.strerror}); give a file or a list.") from None
    if path.suffix == ".json":
        data = _json(raw, str(path))
        if isinstance(data, list) and len(data) != count:
            # A map may leave out rows that no token has; a list cannot say which ones it left out.
            raise LoadError(f"load: {path} lists {len(data)} names and the head has {count} rows; give one name a row.")
        return named(_tokens(data, str(path)), count)
    lines = _lines(raw)
    if len(lines) != count:
        raise LoadError(f"load: {path} has {len(lines)} lines and the head {count} rows; one label a line is needed.")
    return lines, ()


def is_tokenizer(x: Any) -> bool:
    """Whether an object gives tokens for numbers, as those of transformers and tokenizers do."""
    return any(callable(getattr(x, name, None)) for name in ("convert_ids_to_tokens", "id_to_token"))


def of_tokenizer(tokenizer: Any) -> dict[int, str]:
    """Id to token of a tokenizer object: of transformers, of tokenizers, or anything that answers as they do."""
    who = f"load: labels is a {type(tokenizer).__name__}"
    try:
        if callable(getattr(tokenizer, "get_vocab", None)):
            ids = sorted({int(i) for i in tokenizer.get_vocab().values()})
        else:
            ids = list(range(len(tokenizer) if hasattr(tokenizer, "__len__") else int(tokenizer.vocab_size)))
        if callable(getattr(tokenizer, "convert_ids_to_tokens", None)):
            tokens = list(tokenizer.convert_ids_to_tokens(ids))
        else:
            tokens = [tokenizer.id_to_token(i) for i in ids]
        pairs = list(zip(ids, tokens, strict=True))
    except Exception as e:  # whatever somebody else's object does
        why = " ".join(str(e).split())[:200] or "no reason given"
        raise LoadError(
            f"{who}, whose tokens cannot be had ({type(e).__name__}: {why}); give a list of names, one a row."
        ) from e
    out = {i: to_byte_level(t) if isinstance(t, bytes) else str(t) for i, t in pairs if t is not None and i >= 0}
    if not out:
        raise LoadError(f"{who} without a single token; give one that was trained, or a list of names.")
    return out


def of_tokens(files: Files, count: int) -> tuple[list[str], tuple[int, ...], str] | None:
    """The tokens of a checkpoint: (labels, rows without a token, the file they come from); None without a tokenizer."""
    for name in ("tokenizer.json", "vocab.json", "vocab.txt"):
        raw = files(name)
        if raw is None:
            continue
        tokens = dict(enumerate(_lines(raw))) if name == "vocab.txt" else _tokens(_json(raw, name), name)
        if not tokens:
            continue
        extra = None if name == "tokenizer.json" else files("added_tokens.json")
        if extra is not None:
            tokens |= _tokens(_json(extra, "added_tokens.json"), "added_tokens.json")
        return (*named(tokens, count), name)
    return None


def of_classes(config: Mapping[str, Any], count: int) -> list[str] | None:
    """The class names of a config's id2label, where there is one for every row and they are not mere numbers."""
    table = config.get("id2label")
    if not isinstance(table, Mapping):
        return None
    try:
        names = {int(k): str(v) for k, v in table.items()}
    except (TypeError, ValueError):
        return None
    if sorted(names) != list(range(count)):
        return None
    if all(v == f"LABEL_{k}" for k, v in names.items()):
        return None  # the placeholder names that transformers writes
    return [names[i] for i in range(count)]


def named(tokens: Mapping[int, str], count: int) -> tuple[list[str], tuple[int, ...]]:
    """One name a row, and the rows that no token has."""
    padded = tuple(i for i in range(count) if i not in tokens)
    return [tokens.get(i, f"[padded {i}]") for i in range(count)], padded


def _json(raw: bytes, name: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise LoadError(f"load: {name} is not valid JSON ({e}); write it anew or remove it.") from None


def _tokens(data: Any, name: str) -> dict[int, str]:
    """Id to token of a tokenizer.json, a vocab.json (token to id) or a plain list of names."""
    if isinstance(data, list):
        return {i: str(x) for i, x in enumerate(data)}
    out: dict[int, str] = {}
    if isinstance(data, Mapping) and isinstance(data.get("model"), Mapping):
        vocabulary = data["model"].get("vocab", {})
        if isinstance(vocabulary, list):  # Unigram: [piece, score] pairs
            out = {i: str(x[0] if isinstance(x, list) and x else x) for i, x in enumerate(vocabulary)}
        else:
            out = _inverted(vocabulary, name)
        added = data.get("added_tokens") or []
        for token in added if isinstance(added, list) else []:
            if isinstance(token, Mapping) and isinstance(token.get("id"), int):
                out.setdefault(token["id"], str(token.get("content")))
        return out
    return _inverted(data, name)


def _inverted(data: Any, name: str) -> dict[int, str]:
    if not isinstance(data, Mapping):
        raise LoadError(f"load: {name} holds a {type(data).__name__}; a map from token to number or a list is needed.")
    if data and all(isinstance(k, str) and k.isdigit() and isinstance(v, str) for k, v in data.items()):
        return {int(k): v for k, v in data.items()}  # number to name, as id2label has it
    out: dict[int, str] = {}
    for token, i in data.items():
        if isinstance(i, bool) or not isinstance(i, int):
            raise LoadError(f"load: {name} maps {token!r} to {i!r}; a whole number is needed.")
        out.setdefault(i, token)
    return out


def _lines(raw: bytes) -> list[str]:
    lines = raw.decode("utf-8", errors="replace").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return [x[:-1] if x.endswith("\r") else x for x in lines]
