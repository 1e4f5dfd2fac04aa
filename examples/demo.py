"""The demo: g2pM's head, from the package to what it can never choose, with proofs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))


def say(*arguments: str) -> str:
    """Run gonio as a user would, and show it."""
    print("$ gonio", *arguments, end="\n\n", flush=True)
    command = [str(Path(sys.executable).parent / "gonio"), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    print(done.stdout)
    return f"$ gonio {' '.join(arguments)}\n\n{done.stdout}\n"


def main() -> None:
    import g2pm

    wheel = next((ROOT / "fixtures").glob("g2pM-0.1.2.5-*.whl"))
    model = str(g2pm.save(wheel, ROOT / "demo" / "g2pM.npz").relative_to(ROOT))
    said = say("info", model)
    said += say("can-win", model, "--inputs", "all", "--out", "demo/can-win.csv", "--proof", "demo/proof.npz")
    said += say("verify", model, "demo/proof.npz", "--inputs", "all")
    (ROOT / "demo" / "said.txt").write_text(said, encoding="utf-8")
    print("The head is in demo/g2pM.npz, the verdicts in demo/can-win.csv, their proofs in demo/proof.npz.")


if __name__ == "__main__":
    main()
