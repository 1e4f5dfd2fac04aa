"""The pytest plugin: `pytest --gonio-proofs DIR` keeps the proofs of failed assertions of `gonio.testing`."""

from __future__ import annotations

TYPE_CHECKING = False  # pytest imports this at every start: nothing else is, until it is needed
if TYPE_CHECKING:
    from typing import Any


def pytest_addoption(parser: Any) -> None:
    """The option --gonio-proofs."""
    group = parser.getgroup("gonio", "what models can output, with proofs")
    group.addoption("--gonio-proofs", metavar="DIR", help="Keep the proofs of failed gonio.testing assertions in DIR.")


def pytest_configure(config: Any) -> None:
    """Tell the assertions where to keep their proofs."""
    folder = config.getoption("--gonio-proofs")
    if folder is not None:
        from gonio.testing.kept_proofs import keep_in

        keep_in(folder)
