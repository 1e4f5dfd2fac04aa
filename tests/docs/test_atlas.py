"""The atlas: every number of its index is that of a new audit, its proofs hold, and it holds no weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tools import atlas, site_pages

from gonio.proofs.proof_file import load, verify_file
from tests import real

INDEX = json.loads((atlas.ATLAS / "index.json").read_text())
ROWS = {r["name"]: r for r in INDEX["models"]}
MARKS = {m.name: () if m.quick else pytest.mark.slow for m in atlas.MODELS}


@pytest.mark.parametrize("m", [pytest.param(m, id=m.name, marks=MARKS[m.name]) for m in atlas.MODELS])
def test_a_new_audit_finds_the_numbers_of_the_index(m, tmp_path):
    real.wheel(m.wheel.rpartition("-")[0] if "rapidocr" not in m.wheel else m.wheel)
    import gonio

    head = atlas.open_model(m, tmp_path)
    row = ROWS[m.name]
    assert head.digest == row["digest"]
    again = atlas.entry(m, head, gonio.audit(head), atlas.proofs_of(head))
    assert again == {k: v for k, v in row.items() if k != "proof_sha256"}
    if row["proofs"]:
        path = atlas.ATLAS / "proofs" / f"{m.name}.npz"
        held = verify_file(head, path)
        assert not held.failed
        assert len(load(path)) == row["proofs"] == row["never"]


def test_every_model_has_its_row_and_every_proof_file_its_sum():
    assert INDEX["format"] == "gonio atlas 1"
    assert list(ROWS) == [m.name for m in atlas.MODELS]
    files = {p.stem: p for p in (atlas.ATLAS / "proofs").iterdir()}
    assert set(files) == {name for name, r in ROWS.items() if r["proofs"]}
    for name, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == ROWS[name]["proof_sha256"]


def test_what_is_committed_is_small_and_holds_proofs_that_labels_never_win_alone():
    files = [p for p in atlas.ATLAS.rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) < atlas.LARGEST
    for path in (atlas.ATLAS / "proofs").iterdir():
        assert {c.kind for c in load(path)} == {"never wins"}, path.name  # rivals and weights of a mean, no embeddings


def test_the_pages_say_what_the_index_says():
    page = site_pages.atlas_index()
    for r in ROWS.values():
        assert (
            f"| [{r['name']}]({r['name']}.md) | {r['link']} | {r['labels']:,} | {site_pages.number(r['never'])} |"
            in page
        )
        assert r["digest"] in site_pages.atlas_page(r)
        assert r["command"] in site_pages.atlas_page(r)


def test_a_model_is_opened_from_where_its_package_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="make fixtures"):
        atlas.open_model(atlas.Model("x", "nothing-1.0", "", "nothing"), Path(tmp_path))
