"""Assertion that two models are one, up to what no prediction sees."""

from __future__ import annotations

from typing import Any

from gonio.gauge import same_model
from gonio.testing.kept_proofs import head_of, named


def assert_same_model(a: Any, b: Any, *, embeddings: tuple[Any, Any] | None = None, **options: Any) -> None:
    """Fail unless one head is the other after a change that no prediction sees.

    embeddings   the two models' embeddings of the same inputs: then their predictions are compared
    options      of `gonio.load`, where a model is not a `Head`

    Where heads alone cannot tell, it fails and says what would.
    """
    __tracebackhide__ = True
    heads = head_of(a, **options), head_of(b, **options)
    result = same_model(*heads, embeddings)
    if result.same:
        return
    said = "the models are not the same" if result.same is False else "whether the models are the same cannot be told"
    worst = f" The labels that fit least: {named(heads[0], result.worst.tolist())}." if len(result.worst) else ""
    raise AssertionError(f"{said}: {result.reason} (residual {result.residual:.3g}, {result.labels:,} labels).{worst}")
