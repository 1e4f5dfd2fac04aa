"""How results look: text for the terminal, JSON, HTML. No arithmetic."""


def register_all() -> None:
    """Tell core's table of renderers which page or card shows which result."""
    from gonio.core.renderers import register
    from gonio.findings.audit_run import Audit
    from gonio.findings.check_run import Check
    from gonio.report import audit_page, cards, check_page

    register(Audit, "html", audit_page.audit_page)
    register(Audit, "html with rows", audit_page.audit_page_with_rows)
    register(Check, "html", check_page.check_page)
    for kind, show in cards.CARDS:
        register(kind, "card", show)
