"""One representative for each orbit of the gauge: heads that are the same model get the same canonical head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.head_summary import largest_of_rounding, numerical_rank
from gonio.gauge.rounding import mean_square_step

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class Canonical:
    """The canonical head, and how it was fixed.

    head      rows in canonical coordinates, of width `rank`
    anchors   the labels that fix the coordinates: row k of them has zeros behind column k and a positive entry in it
    caveat    what the canonical form cannot tell, in words; empty where there is nothing to say
    """

    head: Head
    anchors: Int[np.ndarray, " rank"]
    caveat: str


def canonical(head: Head, embeddings: Any = None) -> Canonical:
    """The canonical representative of a head's orbit.

     softmax heads are centred (J W), others taken as they are, after a LayerNorm what its outputs see of them; then
     whitened: by the embeddings where they are given, A = J W S^1/2 with S their covariance, so that A A' is the
     (centred) logit covariance; else by the rows, A = J W (W' J W)^-1/2, so that A A' is the projector onto the column
     space. A is fixed up to a rotation, and the rotation by the first labels whose rows are independent: their
     block is lower triangular with a positive diagonal.

     Whitened by its rows alone, a head of rank n - 1 has the same canonical form as every other: no information is left
    .

     Claims: GONIO.1.7d
    """
    n, d = head.shape
    head.must_score("canonical")
    if head.link == "cosine":
        raise GonioError(
            "canonical: the link is cosine, whose rows are fixed up to rotation and length; normalise them."
        )
    A = head.W.astype(np.float64)
    if head.inputs.centred and embeddings is None:
        # A row is free along 1/gain, which the norm takes out: what is left of it is the model's.
        A = A * head.inputs.gain_and_shift(d)[0]
        A = A - A.mean(axis=1, keepdims=True)
    centred = head.link == "softmax" and head.softcap is None
    if centred:
        A = A - A.mean(axis=0)
    caveat = "the bias is not part of the form" if head.bias is not None else ""
    scale = 1.0
    if embeddings is not None:
        F = checks.embeddings(embeddings, d, "canonical").astype(np.float64)
        F = F - F.mean(axis=0)  # with a bias, or a norm's shift, the origin of the embeddings is convention too
        root = np.linalg.qr(F, mode="r") / np.sqrt(len(F))  # R'R = S, so A R' R A' is the logits' covariance
        A = A @ np.asarray(root).T
        scale = float(np.linalg.norm(root, 2))
        if len(F) < d:
            caveat = f"{len(F)} embeddings span at most {len(F)} of {d} dimensions; the rest of the head is not seen"
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    # Singular values that the rounding of the stored rows may have made hold no information.
    scale *= float(np.abs(head.inputs.gain_and_shift(d)[0]).max()) if head.inputs.centred and embeddings is None else 1
    rank = numerical_rank(s, (n, A.shape[1]), 2 * largest_of_rounding(mean_square_step(head), (n, d)) * scale)
    if rank == 0:
        raise GonioError("canonical: all rows are equal, so nothing is left once what is convention is removed.")
    basis = U[:, :rank] if embeddings is None else U[:, :rank] * s[:rank]
    if embeddings is None and rank >= n - centred:
        caveat = (
            f"the {'centred rows' if centred else 'rows'} have rank {rank} for {n} labels, and every such head has "
            f"this canonical form; give embeddings, which hold the information"
        )
    anchors = _independent(basis, rank)
    Q = np.linalg.qr(basis[anchors].T)[0]
    rows = basis @ Q
    rows = rows * np.where(np.diag(rows[anchors]) < 0, -1.0, 1.0)
    anchors.flags.writeable = False
    labels = head.labels if head.named else None
    out = Head(rows, None, link=head.link, labels=labels, trained=head.trained, softcap=head.softcap)
    return Canonical(out, anchors, caveat)


def _independent(basis: Float[np.ndarray, "labels rank"], rank: int) -> np.ndarray:
    """The first labels, in order, whose rows are clearly independent of those before."""
    chosen: list[int] = []
    left = basis.copy()
    floor = 1e-6 * np.linalg.norm(basis, axis=1).max()
    for i in range(len(basis)):
        length = np.linalg.norm(left[i])
        if length > floor:
            chosen.append(i)
            u = left[i] / length
            left -= np.outer(left @ u, u)
            left -= np.outer(left @ u, u)
            if len(chosen) == rank:
                break
    if len(chosen) < rank:
        raise GonioError(f"canonical: the head is so close to rank {len(chosen)} that its coordinates cannot be fixed.")
    return np.array(chosen)
