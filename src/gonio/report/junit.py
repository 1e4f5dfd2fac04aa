"""Findings as JUnit XML, which CI systems show beside the tests of a change.

One test case a finding. It fails where it is a warning that --fail-on names, so that the file and the exit code say the
same; it is skipped, with its words, where it is another warning or was not decided; otherwise it passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as Xml  # to write with: nothing is parsed

from gonio.core.readable_label import printable
from gonio.findings.finding import Finding
from gonio.findings.found import Found
from gonio.report.text import some

NAMED = 20  # labels named of one finding


def junit(found: Found, fail_on: Sequence[str] = (), seconds: float = 0.0) -> str:
    """The findings of an audit or a check as the text of a JUnit file."""
    failing = {id(f) for f in found.failing(fail_on)}
    told = {id(f) for f in found.findings if f.state in ("warning", "open")} - failing
    counts = {"tests": len(found.findings), "failures": len(failing), "errors": 0, "skipped": len(told)}
    numbers = {k: str(v) for k, v in counts.items()} | {"time": f"{seconds:.3f}"}
    suite = Xml.Element("testsuite", {"name": f"gonio {found.asked_by}", **numbers})
    seen: Counter[str] = Counter()
    for f in found.findings:
        seen[f.key] += 1
        name = f.key if seen[f.key] == 1 else f"{f.key} {seen[f.key]}"  # no numbers of the run: CI follows a name
        case = Xml.SubElement(suite, "testcase", {"classname": f"gonio.{found.asked_by}.{f.section}", "name": name})
        if id(f) in failing:
            Xml.SubElement(case, "failure", {"type": f.key, "message": _plain(f.title)}).text = _words(f)
        elif id(f) in told:
            Xml.SubElement(case, "skipped", {"message": f"{f.state}: {_plain(f.title)}"}).text = _words(f)
        else:
            Xml.SubElement(case, "system-out").text = _plain(f.title)
    Xml.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suite, encoding="unicode") + "\n"


def _words(f: Finding) -> str:
    """What it means, which labels it names, and how to check it."""
    labels = [x for x in f.data.get("labels", ()) if isinstance(x, str)]
    lines = (f.says, f"labels: {some(labels, NAMED)}" if labels else "", f"check: {f.verify}" if f.verify else "")
    return "\n".join(_plain(x) for x in lines if x)


def _plain(text: str) -> str:
    """One line of characters that XML can hold, which are fewer than labels can."""
    return printable(text).encode("utf-8", "backslashreplace").decode("utf-8")
