"""Does a built site load anything from outside? Every page, style sheet and script is read, and what does is named.

python tools/check_site.py site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

OUTSIDE = re.compile(r"^\s*(https?:|wss?:|ftp:|//)", re.IGNORECASE)
LOADS = ("src", "href", "srcset", "action", "data", "poster", "content")
NAMES = re.compile(r"https?://www\.w3\.org/[\w/#.-]+")  # of XML languages: never fetched


class Attributes(HTMLParser):
    """Collects the addresses that the elements of a page name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"<{tag} {k}={v}>" for k, v in attrs if k in LOADS and v and OUTSIDE.match(v)]


def outside(path: Path) -> list[str]:
    """What one file of the site would load, or lead to, outside of it."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = []
    if path.suffix == ".html":
        page = Attributes()
        page.feed(text)
        found += page.found
        text = "\n".join(re.findall(r"<style.*?</style>", text, re.DOTALL))
    if path.suffix in (".html", ".css"):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        found += [
            x
            for x in re.findall(r"url\(\s*[\"']?([^)\"']+)|@import\s+[\"']([^\"']+)", text)
            if OUTSIDE.match(x[0] or x[1])
        ]
    if path.suffix == ".js":
        text = NAMES.sub("", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
        found += re.findall(r"https?://[^\s\"'`\\)]*", text)
    return found


def main(site: Path) -> int:
    """The number of files that reach outside, each named."""
    files = [p for p in sorted(site.rglob("*")) if p.suffix in (".html", ".css", ".js")]
    bad = {p: found for p in files if p.name != "search_index.js" and (found := outside(p))}
    for p, found in bad.items():
        print(f"{p.relative_to(site)}: {'; '.join(sorted(set(found))[:5])}")
    maps = list(site.rglob("*.map"))
    size = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
    print(f"site: {len(files)} pages, styles and scripts, {size / 1e6:.1f} MB, {len(bad)} reach outside")
    return len(bad) + len(maps)


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1])) else 0)
