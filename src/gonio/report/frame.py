"""The frame of every page: templates that escape, one style, one script, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gonio.core.readable_label import readable
from gonio.core.version import __version__
from gonio.report.causes import MARKS, WORDS
from gonio.report.text import printable
from gonio.report.theorem_names import source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment
    from markupsafe import Markup

NAME = 200  # characters of a label that a page carries


@cache
def templates() -> Environment:
    """The templates of the pages and cards, which escape every value."""
    from jinja2 import ChainableUndefined, Environment, PackageLoader

    env = Environment(autoescape=True, undefined=ChainableUndefined, loader=PackageLoader("gonio.report", "templates"))
    env.filters |= {"printable": printable, "label": shown, "source": source, "count": lambda x: f"{x:,}"}
    env.globals |= {"words": WORDS, "marks": MARKS, "version": __version__}
    return env


def page(template: str, scripts: Sequence[str], **values: Any) -> str:
    """A whole page: it may run its own script and wear its own style, and ask nobody for anything."""
    css, js = style(), "\n".join(_asset(name) for name in scripts)
    policy = (
        f"default-src 'none'; script-src '{_digest(js)}'; style-src '{_digest(css)}'; base-uri 'none'; "
        f"form-action 'none'"
    )
    return templates().get_template(template).render(css=trusted(css), js=trusted(js), policy=policy, **values)


def style() -> str:
    """The style of pages and cards; every rule begins with .gonio."""
    return _asset("page.css")


def packed(data: Any) -> Markup:
    """Data as a page carries them: JSON, deflated, in letters that end no element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return trusted(base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii"))


def plain_json(data: Any) -> Markup:
    """A little JSON as it is, with nothing that could end its element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return trusted(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def shown(name: Any) -> str:
    """A label as a page shows it."""
    return (readable(str(name)) or "(empty)")[:NAME]


def trusted(text: str) -> Markup:
    """Text of our own making, which is not escaped."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  our own files, numbers, or letters of base64


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


@cache
def _asset(name: str) -> str:
    return (files("gonio.report") / "assets" / name).read_text(encoding="utf-8")
