"""The verdict on one question: its answer, and the certificate that proves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gonio.core.head import Head
from gonio.core.renderers import rendered
from gonio.core.status import Answer
from gonio.proofs.certificate_base import Certificate


@dataclass(frozen=True, eq=False)
class Verdict:
    """One question, one answer, and its proof."""

    head: Head
    question: str
    answer: Answer
    certificate: Certificate
    margin: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The verdict in plain values."""
        proof = self.certificate.to_dict()
        return {
            "question": self.question,
            "answer": self.answer,
            "margin": self.margin,
            "note": self.note,
            "proof": proof,
        }

    def _repr_html_(self) -> str:
        return rendered(self, "card")

    def __repr__(self) -> str:
        return f"{self.question} {self.answer}{'; ' + self.note if self.note else ''}\n  {self.certificate!r}".rstrip()
