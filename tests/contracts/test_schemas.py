"""What the JSON of a version of gonio promised, later ones keep: the schema of today against the last one that was frozen.

Programs read these files. A field may be added; one that is gone, no longer certain or of another kind needs a new version
(`VERSION` in findings/audit_run.py and findings/check_run.py), and the new schema is then frozen beside the old ones.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gonio
from gonio.findings import audit_run, check_run

DOCS = Path(__file__).parents[2] / "docs"
VERSIONS = {"audit": audit_run.VERSION, "check": check_run.VERSION}


def schema(path: str) -> dict[str, Any]:
    return json.loads((DOCS / path).read_text())


def breaks(old: Any, new: Any, place: str = "") -> list[str]:
    """What a reader of the old schema would stumble over in files of the new one."""
    out = []
    if "const" in old and new.get("const") != old["const"]:
        out.append(f"{place}: was always {old['const']!r}")
    if "type" in old:
        kinds = [set(x if isinstance(x, list) else [x]) for x in (old["type"], new.get("type", "anything"))]
        if not kinds[1] <= kinds[0]:
            out.append(f"{place}: was {sorted(kinds[0])}, is {sorted(kinds[1])}")
    if "enum" in old and not place.endswith(".key"):  # findings may be added
        more = set(new.get("enum", [None])) - set(old["enum"])
        out += [f"{place}: may now be {x!r}" for x in sorted(more, key=str)]
    if place.endswith(".key") and "enum" in old:
        out += [f"{place}: {x!r} is gone" for x in sorted(set(old["enum"]) - set(new.get("enum", old["enum"])))]
    gone = set(old.get("required", ())) - set(new.get("required", ()))
    out += [f"{place}.{x}: was always there" for x in sorted(gone)]
    for name, inner in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            out.append(f"{place}.{name}: is gone")
        else:
            out += breaks(inner, new["properties"][name], f"{place}.{name}")
    for part in ("items", "additionalProperties"):
        if isinstance(old.get(part), dict):
            out += breaks(old[part], new.get(part, {}), f"{place}[]")
    return out


@pytest.mark.parametrize("name", VERSIONS)
def test_the_schema_keeps_what_the_last_one_promised(name):
    now = schema(f"{name}.schema.json")
    assert now["properties"]["version"]["const"] == VERSIONS[name]
    frozen = DOCS / "schemas" / f"{name}-{VERSIONS[name]}.json"
    assert frozen.exists(), f"a new version: cp docs/{name}.schema.json docs/schemas/{frozen.name}"
    assert breaks(json.loads(frozen.read_text()), now) == [], "raise VERSION and freeze the schema of the new version"


def change(at: str, **to: Any) -> dict[str, Any]:
    """The schema of an audit with some fields of one of its parts replaced."""
    new = copy.deepcopy(schema("audit.schema.json"))
    part = new
    for step in at.split("/") if at else ():
        part = part[step]
    part.update(to)
    return new


FINDING = "properties/findings/items/properties"


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (change("", required=["format", "version"]), ".findings: was always there"),
        (change(f"{FINDING}/title", type=["string", "null"]), ".findings[].title: was ['string'], is ['null', 'string']"),
        (change(f"{FINDING}/state", enum=["fact", "sure"]), ".findings[].state: may now be 'sure'"),
        (change("properties/version", const=3), ".version: was always 2"),
        (change("properties", seconds={}), ".seconds: was ['object'], is ['anything']"),
    ],
)  # fmt: skip
def test_a_change_that_a_reader_would_stumble_over_is_seen(new, said):
    assert said in breaks(schema("audit.schema.json"), new)


def test_an_added_field_is_no_break():
    assert breaks(schema("audit.schema.json"), change("properties", more={"type": "string"})) == []


def test_what_is_written_today_is_what_the_last_version_promised():
    jsonschema = pytest.importorskip("jsonschema", reason="make test installs it")
    rng = np.random.default_rng(0)
    head = gonio.Head(rng.normal(size=(20, 3)), link="softmax")
    for name, found in (("audit", gonio.audit(head)), ("check", gonio.check(rng.normal(size=(60, 4))))):
        jsonschema.validate(json.loads(found.to_json()), schema(f"schemas/{name}-{VERSIONS[name]}.json"))
