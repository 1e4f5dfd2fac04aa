"""The demo: g2pM's head, from the package to its audit, what it can never choose, and the page to play with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def say(*arguments: str) -> str:
    """Run gonio as a user would, and show it."""
    print("$ gonio", *arguments, end="\n\n", flush=True)
    command = [str(Path(sys.executable).parent / "gonio"), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    print(done.stdout)
    return f"$ gonio {' '.join(arguments)}\n\n{done.stdout}\n"


def main() -> None:
    import numpy as np

    from gonio.papers import g2pm

    wheel = next((ROOT / "fixtures").glob("g2pM-0.1.2.5-*.whl"))
    demo = ROOT / "demo"
    demo.mkdir(exist_ok=True)
    model = str(g2pm.save(wheel, demo / "g2pM.npz").relative_to(ROOT))
    np.save(demo / "states.npy", g2pm.states(wheel).astype(np.float32))
    said = say("info", model)
    pages = ("--html", "demo/audit.html", "--json", "demo/audit.json")
    said += say("audit", model, "--embeddings", "demo/states.npy", *pages)
    said += say("can-win", model, "--inputs", "all", "--csv", "demo/can-win.csv", "--proof", "demo/proof.npz")
    said += say("verify", model, "demo/proof.npz", "--inputs", "all")
    said += say("alike", model, "hang2", "xing2", "--embeddings", "demo/states.npy")
    plane = ("--labels-of-plane", "hang2", "xing2", "zhang3")
    said += say("explore", model, *plane, "--html", "demo/explore.html", "--no-open")
    (demo / "said.txt").write_text(said, encoding="utf-8")
    print("Open demo/audit.html for the report and demo/explore.html to feel it.")
    print("The head is in demo/g2pM.npz, the verdicts in demo/can-win.csv, their proofs in demo/proof.npz.")


if __name__ == "__main__":
    main()
