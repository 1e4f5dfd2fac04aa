"""The demo: g2pM's head, from the package to a report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))


def main() -> None:
    import g2pm

    wheel = next((ROOT / "fixtures").glob("g2pM-0.1.2.5-*.whl"))
    model = g2pm.save(wheel, ROOT / "demo" / "g2pM.npz")
    result = ROOT / "demo" / "info.txt"
    command = [str(Path(sys.executable).parent / "gonio"), "info", str(model.relative_to(ROOT))]
    print("$ gonio", *command[1:], end="\n\n", flush=True)
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    result.write_text(said, encoding="utf-8")
    print(said)
    print(f"The head is in {model.relative_to(ROOT)}, what was said of it in {result.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
