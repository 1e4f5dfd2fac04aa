"""What all certificates share: the head they are about, and a look at the form of what they hold."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.proofs.margins import Places
from gonio.proofs.never_below import NEAR
from gonio.proofs.rival_mean import RivalMean


class CertificateError(GonioError):
    """A certificate that does not prove what it claims, or not about this head."""


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What all certificates share: the digest of the head they are about."""

    head: str
    kind: ClassVar[str] = ""

    def verify(self, head: Head) -> float:
        """The proven margin or bound; raises CertificateError where nothing is proven."""
        raise NotImplementedError

    @property
    def subject(self) -> Any:
        """What it is about: a label, two, or (labels above, labels below, the top)."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The certificate in plain values, for JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"kind": self.kind} | {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.head, repr(sorted(self.to_dict().items()))))

    def __repr__(self) -> str:
        about, how = self._words()
        return f"{type(self).__name__}({about}, head {self.head[:8]})\n  {how}"

    def _words(self) -> tuple[str, str]:
        raise NotImplementedError

    def _refuse(self, why: str) -> CertificateError:
        return CertificateError(f"{type(self).__name__}: {why}")

    def _check(self, head: Head, *labels: int) -> None:
        if self.head != head.digest:
            raise self._refuse(
                f"it is about the head {self.head[:8]} and was checked against {head.digest[:8]}; "
                f"give the head (rows, bias, link, inputs) for which it was made."
            )
        if head.link in ("vectors", "input", "unknown"):
            raise self._refuse(f"the head's link is {head.link!r}: its rows score no inputs, so nothing wins or ties.")
        if head.link == "cosine":
            raise self._refuse(
                "the head's link is 'cosine', whose scores divide by norms that floats cannot hold; "
                "make and check certificates for unit_rows(head)."
            )
        for label in labels:
            if isinstance(label, bool) or not isinstance(label, (int, np.integer)):
                raise self._refuse(f"{label!r} is not a label; the number of a row is needed.")
            if not 0 <= label < head.shape[0]:
                raise self._refuse(f"label {label} is out of range; the head has labels 0 to {head.shape[0] - 1}.")

    def is_about(self, head: Head, *labels: int) -> bool:
        """Whether it was made for this head, and these are labels of it that can win or tie."""
        try:
            self._check(head, *labels)
        except CertificateError:
            return False
        return True

    def _place(self, head: Head, *xs: np.ndarray) -> Places:
        for x in xs:
            if x.shape != (head.shape[1],):
                raise self._refuse(f"x has shape {x.shape}; the head has width {head.shape[1]}.")
        places = Places(head.inputs, np.stack(xs).astype(np.float64))
        for why in places.outside().values():
            raise self._refuse(f"x is not among the inputs of the head: {why}.")
        return places

    def _mean(
        self, head: Head, label: int, rivals: np.ndarray, weights: np.ndarray, partner: tuple[int, float] | None = None
    ) -> RivalMean:
        """The rivals as a mean, after a look at its form; the partner of a tie may have a weight of any sign."""
        self._rivals(head, rivals, label, *(partner[:1] if partner else ()))
        if rivals.shape != weights.shape:
            raise self._refuse(
                f"it has {len(rivals)} rivals and {len(weights)} weights; one weight per rival is needed."
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all() and abs(float(weights.sum()) - 1) <= NEAR):
            raise self._refuse("its weights are not non-negative numbers that sum to 1.")
        use = weights > 0
        r, w, free = rivals[use], weights[use], np.zeros(int(use.sum()), bool)
        if partner is not None:
            r, w, free = np.append(r, partner[0]), np.append(w, -partner[1]), np.append(free, True)
        return RivalMean(head, label, r, w, free)

    def _rivals(self, head: Head, rivals: np.ndarray, *but: int) -> None:
        if len(rivals) and not (rivals.min() >= 0 and rivals.max() < head.shape[0]):
            raise self._refuse(f"its rivals are not all among the labels 0 to {head.shape[0] - 1} of the head.")
        if np.isin(rivals, but).any():
            raise self._refuse(f"label {but[0]} is among its own rivals, which proves nothing.")


def fix(self: Certificate, name: str, kind: Any) -> None:
    """Hold a field as a read-only array of its own."""
    try:
        value = np.array(getattr(self, name))
        if kind is not float and value.dtype == np.int64:
            fine = True
        elif kind is not float:
            with np.errstate(invalid="ignore"):  # NaN and what is too large: not equal to what they become
                whole = value.astype(np.int64)
            fine = value.size == 0 or (value.dtype.kind in "iu" or bool((whole == value).all()))
            value = whole
        else:
            value, fine = value if value.dtype == np.float32 else value.astype(np.float64), True
    except (TypeError, ValueError, OverflowError):
        value, fine = np.zeros(0), False
    if not fine or value.ndim != 1:
        raise GonioError(f"{type(self).__name__}: {name} is not a list of {'numbers' if kind is float else 'labels'}.")
    value.flags.writeable = False
    object.__setattr__(self, name, value)
