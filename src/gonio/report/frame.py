"""The frame of every page: templates that escape, one style, one script, and a policy that allows nothing else."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gonio.core.packed_page_data import Packed, unpack_script
from gonio.core.readable_label import readable
from gonio.core.self_contained_page import inline_json, policy
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
    css, js = style(), "\n".join([unpack_script(), *(_asset(name) for name in scripts)])
    return templates().get_template(template).render(css=trusted(css), js=trusted(js), policy=policy(js, css), **values)


def style() -> str:
    """The style of pages and cards; every rule begins with .gonio."""
    return _asset("page.css")


def packed(data: Any, numbers: Packed) -> Markup:
    """Data as a page carries them: deflated, with the numbers laid beside them."""
    return trusted(numbers.text(data))


def plain_json(data: Any) -> Markup:
    """A little JSON as it is."""
    return trusted(inline_json(data))


def shown(name: Any) -> str:
    """A label as a page shows it."""
    return (readable(str(name)) or "(empty)")[:NAME]


def trusted(text: str) -> Markup:
    """Text of our own making, which is not escaped."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  our own files, numbers, or letters of base64


@cache
def _asset(name: str) -> str:
    return (files("gonio.report") / "assets" / name).read_text(encoding="utf-8")
