"""How results look: text for the terminal, JSON, HTML. No arithmetic."""


def register_all() -> None:
    """Tell core's table of renderers which page shows which result."""
    from gonio.core.renderers import register
    from gonio.findings.audit_run import Audit
    from gonio.report import html

    register(Audit, "html", html.page)
    register(Audit, "summary", html.summary)
