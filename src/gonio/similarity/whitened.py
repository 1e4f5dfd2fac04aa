"""Cosine after the rows' own covariance is made the identity: invariant, and empty where the rank is n - 1.

    rows of  J W (W' J W)^-1/2,    the normalised projector onto the column space of J W

After a LayerNorm, and where a gain is zero, W stands for what the inputs see of it, `inputs.reduce`: coordinates that
are switched off and the direction that the norm takes out are no part of the model.

This is the "causal inner product" of Park, Choe and Veitch 2024 (the inverse covariance of the unembeddings) and the
cosine after Su's whitening.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.head_summary import largest_of_rounding, numerical_rank
from gonio.core.parallel import one_blas_thread
from gonio.core.triangular_factor import triangular_factor
from gonio.gauge.rounding import mean_square_step
from gonio.similarity.measures import register
from gonio.similarity.rows import Angle, Inner
from gonio.similarity.space import Space

if TYPE_CHECKING:
    from jaxtyping import Float


def whitener(space: Space) -> Float[np.ndarray, "dim rank"]:
    """A map after which the vectors of a space have the identity as second moment; directions without extent go.

    From the triangular factor of the vectors, a block at a time: forming V'V would lose half the digits.
    """
    n, d = space.head.shape
    R = triangular_factor(lambda span: space[slice(*span)], n, d)
    with one_blas_thread():
        _, sizes, right = np.linalg.svd(R)
    sizes = np.r_[sizes, np.zeros(len(right) - len(sizes))]
    # Rounding of the stored entries is spread over all directions: singular values below it are not the model's.
    scale = 1.0 if space.root is None else float(np.abs(space.root).max())
    noise = 2 * largest_of_rounding(mean_square_step(space.head), (n, d)) * scale
    rank = numerical_rank(sizes, (n, d), noise)
    return right[:rank].T / sizes[:rank]


def seen_by_inputs(head: Head) -> Float[np.ndarray, "dim dim"] | None:
    """The map of rows to what `inputs.reduce` leaves of them; None where that is all of them.

    Gains that are not zero are an invertible map, which whitening undoes.
    """
    inputs, d = head.inputs, head.shape[1]
    gain = inputs.gain_and_shift(d)[0]
    if inputs.centred:
        return np.diag(gain) @ (np.eye(d) - 1 / d)
    return None if gain.all() else np.diag(gain)


class _Whitened:
    centre = True

    def __init__(self, head: Head) -> None:
        super().__init__(head)  # type: ignore[call-arg]
        name: str = self.name  # type: ignore[attr-defined]
        seen = seen_by_inputs(head)
        if (
            seen is not None
        ):  # the rows alone do not tell which direction is unseen once a map or a shift hides the norm
            hidden = "MR" if head.inputs.centred else "MRU"
            self.invariant = type(self).invariant - set(hidden)  # type: ignore[attr-defined]
        self.space = Space(head, centre=self.centre, root=seen)
        root = whitener(self.space)
        self.rank = root.shape[1]
        n = head.shape[0]
        if not self.rank:
            raise GonioError(f"{name}: all rows are {'equal' if self.centre else 'zero'}, so nothing is left of them.")
        self.space = Space(head, centre=self.centre, root=root if seen is None else seen @ root)
        full = n - 1 if self.centre else n
        if self.rank >= full:
            value = f"-1/{n - 1} = {-1 / (n - 1):.3g}" if self.centre and n > 1 else "0"
            self.empty = True
            self.caveat = (
                f"the {'centred rows' if self.centre else 'rows'} have rank {self.rank} for {n} labels, and then it is "
                f"{value} for every pair of every such model: it says nothing; what tells labels apart must come from "
                f"inputs, so give embeddings"
            )


@register
class WhitenedCentredCosine(_Whitened, Angle):
    """cos of the rows of J W (W' J W)^-1/2.

    Invariant under every change that leaves a softmax alone, without inputs. Where the rank of J W is n - 1 every pair
    of every model has the value -1/(n - 1): `caveat` then says so.

    Claims: GONIO.degenerate
    """

    name = "whitened-centred cosine"
    invariant = frozenset("TMSRUL")


@register
class WhitenedCosine(_Whitened, Angle):
    """cos of the rows of W (W'W)^-1/2, the normalised projector onto its column space: for sigmoid and dot heads."""

    name = "whitened cosine"
    invariant = frozenset("MSRUL")
    centre = False


@register
class CausalInnerProduct(_Whitened, Inner):
    """(g_i - m)' Cov(g)^-1 (g_j - m), the inner product itself; Cov divides by n."""

    name = "causal inner product"
    invariant = frozenset("TMSRUL")

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        assert self.space.root is not None
        self.space.root = self.space.root * np.sqrt(head.shape[0])
