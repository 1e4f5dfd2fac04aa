"""Head: the last layer of a model, with everything gonio must know to speak about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gonio.core import checks
from gonio.core import inputs as _inputs
from gonio.core.equal_labels import groups_of_equal_labels
from gonio.core.errors import GonioError, LabelError
from gonio.core.label_names import LabelNames
from gonio.core.row_table import RowTable
from gonio.core.source import Source

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Link = Literal["softmax", "sigmoid", "dot", "cosine", "vectors", "input", "unknown"]
KNOWN_LINKS = ("softmax", "sigmoid", "dot", "cosine", "vectors", "input")  # what a user may say a table is
Trained = Literal["product", "factors"]
Label = str | int


class Head:
    """n label rows of width d that score an embedding f as  W f + b,  and the link from scores to predictions.

    Parameters
    ----------
    W : array of shape (labels, dim)
        float32 and float64 are kept as given; 16-bit and 8-bit floats are widened where they are used, a block at a
        time. A writeable array is copied, a read-only one (a memory map) shared.
    bias : array of shape (labels,), optional
    link : what the table is and so what may change while the model does not
        "softmax", "sigmoid", "dot"   a head: how its scores become predictions
        "cosine"    unit vectors whose cosines were trained
        "vectors"   word vectors: one of the two tables that word2vec, fastText or GloVe train
        "input"     the embedding table of a model, which no prediction reads directly
        "unknown"   nothing says what it is
    offset_in : for "input" and "vectors", what takes up a vector added to all rows: a table that the model adds to
        every row (token types, positions), GloVe's biases; None where nothing is known to
    labels : names of the rows, optional
    inputs : which embeddings can reach the head (see `gonio.core.inputs`)
    trained : "product" or "factors", for `dot` heads
        Whether the training penalty was on the product of the two factors (or absent, or unknown) or on each factor.
    softcap : c > 0, optional
        Logits z are given out as c tanh(z / c).
    source : where the head came from

    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4]], link="softmax", labels=["dog", "cat", "fish"])
    >>> head["cat"]
    array([0.5, 1. ])
    """

    def __init__(
        self,
        W: Any,
        bias: Any = None,
        *,
        link: Link,
        labels: Sequence[str] | None = None,
        inputs: _inputs.Inputs | None = None,
        trained: Trained | None = None,
        softcap: float | None = None,
        offset_in: str | None = None,
        source: Source | None = None,
    ) -> None:
        link = checks.one_of(link, get_args(Link), "Head", "link")  # type: ignore[assignment]
        rows = W if isinstance(W, RowTable) else RowTable(W)
        n, d = rows.shape
        if bias is not None:
            b = checks.array(bias, "Head", "bias")
            if b.shape not in ((n,), (1, n), (n, 1)):
                raise GonioError(
                    f"Head: W has shape {rows.shape} and bias has shape {b.shape}; "
                    f"bias needs one entry per label, so shape ({n},)."
                )
            bias = checks.vector(b, "Head", "bias", n).copy()
            bias.flags.writeable = False
        inputs = _inputs.of(inputs)
        if inputs.width not in (None, d):
            raise GonioError(
                f"Head: W has shape {rows.shape} and its inputs ({inputs}) have width {inputs.width}; "
                f"inputs of width {d} are needed."
            )
        if trained is not None:
            checks.one_of(trained, get_args(Trained), "Head", "trained")
        if softcap is not None:
            softcap = checks.positive(softcap, "Head", "softcap", ", or None for none")
        if source is not None and source.padded and not (0 <= min(source.padded) <= max(source.padded) < n):
            raise GonioError(f"Head: source.padded names row {max(source.padded)}; the head has rows 0 to {n - 1}.")
        if not rows.derived:
            rows.survey()  # finds NaN and infinities now, not in the middle of a proof
        put = object.__setattr__
        put(self, "rows", rows)
        put(self, "bias", bias)
        put(self, "link", link)
        put(self, "named", labels is not None)
        put(self, "labels", tuple(map(str, range(n))) if labels is None else checks.names(labels, n, "Head"))
        put(self, "inputs", inputs)
        put(self, "trained", trained)
        put(self, "softcap", softcap)
        put(self, "offset_in", offset_in)
        put(self, "source", source)

    if TYPE_CHECKING:
        rows: RowTable
        bias: Float[np.ndarray, " labels"] | None
        link: Link
        named: bool
        labels: tuple[str, ...]
        inputs: _inputs.Inputs
        trained: Trained | None
        softcap: float | None
        offset_in: str | None
        source: Source | None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Head is immutable; head.replace({name}=...) gives a changed one.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Head is immutable.")

    def replace(self, **changes: Any) -> Head:
        """A head with some parts changed; the parts are those of the constructor.

        New rows drop the source (they no longer lie where it says) and keep its padded rows.
        """
        parts: dict[str, Any] = {
            "W": self.rows,
            "bias": self.bias,
            "link": self.link,
            "labels": self.labels if self.named else None,
            "inputs": self.inputs,
            "trained": self.trained,
            "softcap": self.softcap,
            "offset_in": self.offset_in,
            "source": self.source,
        }
        unknown = set(changes) - set(parts)
        if unknown:
            raise GonioError(
                f"Head.replace: no part is called {sorted(unknown)[0]!r}; the parts are {', '.join(parts)}."
            )
        return Head(**(parts | changes))

    # -- the numbers ----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(labels, dim)."""
        return self.rows.shape

    @property
    def W(self) -> Float[np.ndarray, "labels dim"]:  # noqa: N802  the papers' letter
        """The whole table in float32 or float64: no copy where it is stored so, otherwise allocated on each call."""
        return self.rows.whole()

    def blocks(self, size: int | None = None) -> Iterator[tuple[int, Float[np.ndarray, "some dim"]]]:
        """The rows in order as (first label, rows) pairs, in float32 or float64."""
        return self.rows.blocks(size)

    @property
    def norms(self) -> Float[np.ndarray, " labels"]:
        """The length of each row, in float64."""
        return self.rows.survey().norms

    @cached_property
    def zero_rows(self) -> Int[np.ndarray, " zero"]:
        """The labels whose row is zero: their cosine with anything is undefined."""
        return _fixed(np.flatnonzero(self.norms == 0))

    @cached_property
    def twins(self) -> tuple[Int[np.ndarray, " members"], ...]:
        """The groups of labels whose scores are equal at every input: each group is one candidate."""
        return tuple(_fixed(g) for g in groups_of_equal_labels(self.rows, self.bias, self.inputs))

    @cached_property
    def _twin_groups(self) -> dict[int, np.ndarray]:
        return {int(i): g for g in self.twins for i in g}

    def equals(self, label: int) -> Int[np.ndarray, " equals"]:
        """The other labels whose scores are those of this one at every input."""
        group = self._twin_groups.get(int(label))
        return np.zeros(0, np.int64) if group is None else group[group != label]

    @cached_property
    def first_equals(self) -> Int[np.ndarray, " labels"]:
        """For each label the first of those whose scores are its own at every input: itself, where it has no equals."""
        first = np.arange(self.shape[0])
        for group in self.twins:
            first[group] = group[0]
        return _fixed(first)

    @cached_property
    def padded(self) -> Int[np.ndarray, " padded"]:
        """The rows that no token or class of the model uses, as far as its file tells."""
        return _fixed(np.array(self.source.padded if self.source else (), dtype=np.int64))

    @cached_property
    def digest(self) -> str:
        """A fingerprint of all that decides what is possible: the numbers, the link, the inputs, the soft-cap.

        It depends on values, not on how they are stored: a float16 table and its float32 copy have the same digest.
        Labels, `trained` and `source` do not count.
        """
        h = hashlib.sha256()
        given = self.inputs.to_dict()
        about = {
            "gonio": "head 1",
            "shape": self.shape,
            "link": self.link,
            "softcap": self.softcap,
            "bias": self.bias is not None,
            "inputs": {k: list(np.shape(v)) if isinstance(v, np.ndarray) else v for k, v in given.items()},
        }
        h.update(json.dumps(about, sort_keys=True).encode())
        parts = [v for _, v in sorted(given.items()) if isinstance(v, np.ndarray)]
        for part in [*parts, *([] if self.bias is None else [self.bias])]:
            h.update(_canonical_bytes(part))
        for _, block in self.blocks():
            h.update(_canonical_bytes(block))
        return h.hexdigest()

    # -- labels ---------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> LabelNames:
        """The labels' names, and how a text finds one of them."""
        return LabelNames(self.labels)

    def index(self, label: Label) -> int:
        """The row of a label, given by name or by number; the text "#12" is the number 12.

        A text finds the token that stands for it in another spelling: " dog" is "Ġdog" or "▁dog", a newline "Ċ" or
        "<0x0A>", where the head has one of them and no label of that very name.
        """
        n = self.shape[0]
        if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
            if 0 <= label < n:
                return int(label)
            raise LabelError(f"Head: label {label} is out of range; the head has labels 0 to {n - 1}.")
        if not isinstance(label, str):
            raise LabelError(f"Head: a label is a name or a number, not a {type(label).__name__}.")
        return self.names.index(label)

    def __getitem__(self, label: Label) -> Float[np.ndarray, " dim"]:
        """The row of a label, by name or number, in float32 or float64."""
        i = self.index(label)
        return _fixed(self.rows[i : i + 1][0])

    def __len__(self) -> int:
        return self.shape[0]

    # -- predictions ----------------------------------------------------------------------------------------------

    def logits(self, F: Any) -> Float[np.ndarray, "*points labels"]:
        """The scores of all labels for each embedding: W f + b, soft-capped; cosines for the link cosine.

        In float64 if W or F is, otherwise in float32. One vector gives one row.
        """
        f = checks.embeddings(F, self.shape[1], "Head.logits")
        kind = np.result_type(f.dtype, self.rows[:1].dtype, *(() if self.bias is None else (self.bias.dtype,)))
        f = f.astype(kind, copy=False)
        if self.link == "cosine":
            f = f / _lengths(f, "Head.logits: an embedding is zero; its cosine with anything is undefined.")
            if len(self.zero_rows):
                raise GonioError(
                    f"Head.logits: row {self.zero_rows[0]} is zero, so its cosine is undefined; drop such rows first."
                )
        out = np.empty((len(f), self.shape[0]), kind)
        for start, block in self.blocks(None if not self.rows.wide else self.shape[0]):
            np.matmul(f, block.T.astype(kind, copy=False), out=out[:, start : start + len(block)])
        if self.link == "cosine":
            out /= self.norms.astype(kind)
        if self.bias is not None:
            out += self.bias.astype(kind)
        if self.softcap is not None:
            np.tanh(np.divide(out, self.softcap, out=out), out=out)
            out *= self.softcap
        return out[0] if np.ndim(F) == 1 else out

    def probabilities(self, F: Any) -> Float[np.ndarray, "*points labels"]:
        """What the model predicts: softmax over the labels, or one independent sigmoid for each.

        The links dot and cosine rank; they have no probabilities.
        """
        self.must_score("Head.probabilities")
        if self.link not in ("softmax", "sigmoid"):
            raise GonioError(
                f"Head.probabilities: the link is {self.link!r}, which ranks by score and gives no probabilities; "
                f"use logits, or a head with link softmax or sigmoid."
            )
        z = self.logits(F)
        if self.link == "sigmoid":
            from scipy.special import expit

            return expit(z)
        z -= z.max(axis=-1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=-1, keepdims=True)
        return z

    def must_score(self, who: str) -> None:
        """Complain where the rows score no inputs, so that nothing can win, tie or be ranked by them."""
        place = self.source.place if self.source else "this head"
        if self.link == "unknown":
            raise GonioError(
                f"{who}: nothing says what the rows of {place} are, and the answer hangs on it; say it with --link "
                f"(link=): softmax, sigmoid or dot for a head, {', '.join(KNOWN_LINKS[3:-1])} or input for embeddings."
            )
        if self.link == "vectors":
            raise GonioError(
                f"{who}: the rows of {place} are word vectors, one of two tables that were trained together; alone "
                f"they score nothing. Load the model with its output table, or say --link (link=) if they are a head."
            )
        if self.link == "input":
            raise GonioError(
                f"{who}: the rows of {place} are input embeddings, which no prediction reads directly; load the model "
                f"with its head, name the head's table with --tensor (tensor=), or say --link (link=) if this is it."
            )

    @property
    def typed(self) -> str:
        """How a command line names this model, for commands that are suggested; MODEL where none named it."""
        return self.source.typed if self.source is not None and self.source.typed else "MODEL"

    def must_be_known(self, who: str) -> None:
        """Complain where nothing says what the rows are."""
        if self.link == "unknown":
            self.must_score(who)

    def __repr__(self) -> str:
        n, d = self.shape
        extras = [f"bias {'yes' if self.bias is not None else 'no'}", str(self.inputs)]
        extras += [f"softcap {self.softcap:g}"] if self.softcap else []
        extras += [f"trained {self.trained}"] if self.trained else []
        place = f", {self.source.format}" if self.source else ""
        return f"Head({n:,} labels x {d}, {self.link}, {self.rows.kind}{place})\n  {'; '.join(extras)}"


def _fixed(a: np.ndarray) -> np.ndarray:
    if a.flags.writeable:
        a.flags.writeable = False
    return a


def _lengths(f: np.ndarray, complaint: str) -> np.ndarray:
    length = np.linalg.norm(f, axis=1, keepdims=True)
    if not length.all():
        raise GonioError(complaint)
    return length


def _canonical_bytes(a: np.ndarray) -> bytes:
    """The values of `a` as little-endian float64, with -0.0 written as 0.0."""
    return np.ascontiguousarray(a.astype("<f8") + 0.0).tobytes()
