"""Make the gallery's pages and the README's pictures anew: python tools/pictures.py

The pages come from docs/gallery/reproduction.json, Figures 1 to 4 are drawn, and the audit and the explorer of g2pM's
head (fixtures/) are photographed in a real browser. docs/pictures/made_from.json keeps what they were made from, so
that a test can tell when they are out of date.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = (
    "src/gonio/report/assets/*", "src/gonio/report/templates/*.html", "src/gonio/explorer/page.*",
    "src/gonio/explorer/*.js", "src/gonio/core/unpack.js", "src/gonio/papers/templates/*.html",
    "src/gonio/papers/nielsen_grivas_figures.py",
)  # fmt: skip


def made_from() -> dict[str, str]:
    """The digests of what pages and pictures are made from."""
    files = sorted(p for pattern in SOURCES for p in ROOT.glob(pattern) if p.is_file())
    return {str(p.relative_to(ROOT)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def gallery(folder: Path) -> None:
    """The gallery's pages, from the record."""
    from gonio.papers import run

    run.pages(json.loads((ROOT / "docs" / "gallery" / "reproduction.json").read_text(encoding="utf-8")), folder)


def figures() -> None:
    """Figures 1 to 4."""
    from gonio.papers import nielsen_grivas_2026, run

    found = nielsen_grivas_2026.reproduce()
    for p in found.pictures:
        run.draw(p, ROOT / "docs" / "gallery" / f"{found.key}-{p.name}.png")


def photographs() -> None:
    """The README's two pictures."""
    import numpy as np
    from playwright.sync_api import sync_playwright

    import gonio
    from gonio.cli.model import head_of
    from gonio.explorer import page
    from gonio.papers import g2pm

    wheel = next((ROOT / "fixtures").glob("g2pM-0.1.2.5-*.whl"))
    where = shutil.which("chromium") or shutil.which("google-chrome")
    if where is None:
        sys.exit("pictures: no chromium on this machine; the README's pictures need one.")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as p:
        at = Path(place)
        g2pm.save(wheel, at / "g2pM.npz")
        F = g2pm.states(wheel).astype(np.float32)
        head = head_of(str(at / "g2pM.npz"), None, None, None, None, None, None)
        head = head.replace(source=head.source.__class__(**{**vars(head.source), "typed": "g2pM.npz"}))
        gonio.audit(head, embeddings=F, pairs=[("hang2", "xing2")]).to_html(at / "audit.html")
        text = page(head, ("hang2", "xing2", "zhang3"), embeddings=F)
        (at / "explore.html").write_text(text, encoding="utf-8")
        browser = p.chromium.launch(executable_path=where, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": 1100, "height": 800}, reduced_motion="reduce")
        for name, then in (("audit", ""), ("explore", "gonio.dial(-0.6)")):
            view.goto((at / f"{name}.html").as_uri())
            view.wait_for_timeout(800)
            if then:
                view.evaluate(then)
                view.wait_for_timeout(200)
            view.screenshot(path=ROOT / "docs" / "pictures" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    gallery(ROOT / "docs" / "gallery")
    figures()
    photographs()
    record = json.dumps(made_from(), indent=2) + "\n"
    (ROOT / "docs" / "pictures" / "made_from.json").write_text(record, encoding="utf-8")
