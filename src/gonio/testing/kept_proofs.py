"""Where the proofs of failed assertions are kept: a folder that the pytest plugin names, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gonio.core.head import Head
from gonio.core.readable_label import quoted
from gonio.proofs.certificate_base import Certificate

SHOWN = 5  # labels and proofs that a message names
_folder: list[Path] = []


def keep_in(folder: str | Path | None) -> None:
    """Keep the proofs of failed assertions in a folder from now on; None: keep none."""
    _folder[:] = [] if folder is None else [Path(folder)]


def head_of(model: Any, **options: Any) -> Head:
    """A `Head` as it is, anything else as `gonio.load` reads it."""
    if isinstance(model, Head):
        return model
    from gonio.models import load

    return load(model, **options)


def named(head: Head, labels: Sequence[int]) -> str:
    """The first labels, quoted, and how many more there are."""
    first = ", ".join(quoted(head.labels[int(i)]) for i in labels[:SHOWN])
    return first + (f" and {len(labels) - SHOWN:,} more" if len(labels) > SHOWN else "")


def kept(head: Head, certificates: Sequence[Certificate], name: str) -> str:
    """The sentence of a message that says where the proofs are, having saved them where a folder was named."""
    if not _folder or not certificates:
        return "Keep the proofs with pytest --gonio-proofs DIR." if certificates else ""
    from gonio.core.atomic_write import make_folder
    from gonio.files.write.exact_head import beside, save_exact
    from gonio.proofs import proof_file
    from gonio.proofs.bulk import compact

    path = make_folder(_folder[0], "gonio.testing") / f"{re.sub(r'[^0-9A-Za-z]+', '-', name)}-{head.digest[:12]}.npz"
    proof_file.save(path, compact(head, list(certificates)))
    save_exact(head, beside(str(path)))
    return f"{len(certificates):,} proofs are in {path}; python tools/check_proof.py {path} checks them without gonio."
