"""Opening gonio and opening a large file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import Case, Cases

GONIO = str(Path(sys.executable).parent / "gonio")
# Reading the bytes once: a process that has them in memory at the end.
READ = """
import sys
with open(sys.argv[1], 'rb') as f:
    f.seek(int(sys.argv[2]))
    print(len(f.read(int(sys.argv[3]))))
"""


def write_model(path: Path, rows: int, dim: int) -> tuple[int, int]:
    """A checkpoint that is one float32 head; where its bytes start and how many there are."""
    header = json.dumps({"lm_head.weight": {"dtype": "F32", "shape": [rows, dim], "data_offsets": [0, rows * dim * 4]}})
    raw = header.encode() + b" " * (-len(header) % 8)
    rng = np.random.default_rng(0)
    with path.open("wb") as f:
        f.write(len(raw).to_bytes(8, "little") + raw)
        for start in range(0, rows, 4096):
            f.write(rng.standard_normal((min(4096, rows - start), dim), dtype=np.float32).tobytes())
    return 8 + len(raw), rows * dim * 4


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def anonymous_peak(*command: str) -> int:
    """The most anonymous memory a command ever holds, in bytes, watched from outside."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    peak = max(peak, int(line.split()[1]) * 1024)
        except OSError:
            break
        time.sleep(0.002)
    return peak


def cases(toy: bool) -> Cases:
    yield Case(
        "import gonio against import numpy",
        lambda: run(sys.executable, "-c", "import gonio; print(1)"),
        lambda: run(sys.executable, "-c", "import numpy; print(1)"),
        lambda a, b: a == b,
        most=2.0,
        repeats=9,
    )
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "model.safetensors"
    rows, dim = (500, 64) if toy else (162_760, 768)
    start, size = write_model(path, rows, dim)
    yield Case(
        f"gonio info on {size / 1e6:.0f} MB against reading its bytes once",
        lambda: json.loads(run(GONIO, "info", "--json", "-", str(path)))["labels"] * dim * 4,
        lambda: int(run(sys.executable, "-c", READ, str(path), str(start), str(size))),
        lambda a, b: a == b,
        most=6.0,
        extra=lambda: {"anonymous_MB": anonymous_peak(GONIO, "info", str(path)) / 1e6},
    )
    os.unlink(path)
    folder.cleanup()
