"""How results look: text for the terminal, JSON, HTML. No arithmetic."""


def register_all() -> None:
    """Tell core's table of renderers which page shows which result."""
    from gonio.core.renderers import register
    from gonio.findings.audit_run import Audit
    from gonio.findings.check_run import Check
    from gonio.report import check_page, html

    register(Audit, "html", html.page)
    register(Audit, "summary", html.summary)
    register(Check, "html", check_page.check_page)
    register(Check, "summary", check_page.check_summary)
