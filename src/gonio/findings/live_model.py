"""A live model as the subject of an audit: its head, named by its tokenizer, and the states that texts send into it."""

from __future__ import annotations

from typing import Any

from gonio.core.errors import GonioError
from gonio.core.head import Head


def head_and_states(model: Any, embeddings: Any, tokenizer: Any, texts: Any) -> tuple[Head, Any]:
    """(head, embeddings): those given, or the head of a live model and what its texts send into it."""
    if isinstance(model, Head):
        if texts is not None:
            raise GonioError("audit: a Head cannot read texts; give the model itself, or states (embeddings=).")
        return model, embeddings
    if texts is not None and embeddings is not None:
        raise GonioError("audit: texts and embeddings both say what reaches the head; give one of them.")
    from gonio.models import load, states
    from gonio.models.documents import given_documents
    from gonio.models.sentences import head_of_sentences, is_sentence_model

    if is_sentence_model(model):
        if texts is None:
            raise GonioError("audit: a SentenceTransformer embeds texts; give some (texts=).")
        return head_of_sentences(model, given_documents(texts, "audit")), None
    head = load(model)
    if tokenizer is not None and not head.named and head.shape[0] >= len(tokenizer):
        head = load(model, labels=tokenizer)
    if texts is not None:
        embeddings = states(model, tokenizer, texts, head=head)
    return head, embeddings
