"""The names of the rows, from the metadata of the file or the attributes of its classifier."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator

from gonio.files.read.onnx.graph import Graph, Node
from gonio.files.read.onnx.product import class_labels

MOST_METADATA = 1 << 20  # a parse of more could take long


def labels_of(graph: Graph, n: int, node: Node | None) -> tuple[list[str] | None, str]:
    """Names of the rows from the classifier or the metadata, and a sentence on them."""
    if node is not None and node.op == "LinearClassifier":
        names = class_labels(node)
        return (names, "the class labels of the LinearClassifier") if len(names) == n else (None, "none of that count")
    misses: list[str] = []
    for key in ("character", "names", "classes", "labels", "class_names"):
        for names in _spellings(key, graph.metadata.get(key, "")):
            if len(names) == n:
                return names, f"metadata {key!r}"
            if key == "character" and len(names) == n - 2:
                return ["blank", *names, " "], "metadata 'character', with the CTC blank before and the space after it"
            if key == "character" and len(names) == n - 1:
                return ["blank", *names], "metadata 'character', with the CTC blank before it"
            misses.append(f"metadata {key!r} has {len(names)} entries for {n} rows")
    return (
        None,
        f"none ({misses[0]}); rows go by their numbers" if misses else "none in the file; rows go by their numbers",
    )


def _spellings(key: str, text: str) -> Iterator[list[str]]:
    """The lists that a metadata text may mean."""
    if not text.strip() or len(text) > MOST_METADATA:
        return
    if key == "character":
        yield text.removesuffix("\n").split("\n")
        return
    value = None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an odd backslash in a name
                value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    if isinstance(value, dict):
        numbered = {str(k): v for k, v in value.items()}
        if all(str(i) in numbered for i in range(len(numbered))):
            yield [str(numbered[str(i)]) for i in range(len(numbered))]
        return
    if isinstance(value, (list, tuple)):
        yield [str(v) for v in value]
        return
    yield text.strip().split("\n")
    yield [part.strip() for part in text.split(",")]
