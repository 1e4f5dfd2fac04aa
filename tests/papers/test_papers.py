"""Every agreement with a paper that was once found is found again; the gallery is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gonio import GonioError
from gonio.papers import run

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "docs" / "gallery" / "reproduction.json").read_text())


def test_the_record_holds_every_paper():
    assert set(RECORD) == set(run.PAPERS)


@pytest.mark.parametrize("name", run.PAPERS)
def test_no_agreement_with_a_paper_is_lost(name, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    (found,) = run.reproduce([name])
    now = {c.claim: c.verdict for c in found.comparisons}
    for c in RECORD[name]["comparisons"]:
        if c["verdict"] == "agrees":
            assert now.get(c["claim"], "not asked") == "agrees", c["claim"]
    for c in found.comparisons:
        assert c.verdict != "differs" or c.note, f"{c.claim}: a difference is explained"
        assert (ROOT / c.test.split("::")[0]).exists(), c.test
    for p in found.pictures:
        assert run.draw(p, tmp_path / f"{p.name}.png").stat().st_size > 5000
        assert (ROOT / "docs" / "gallery" / f"{name}-{p.name}.png").exists()


def test_an_unknown_paper_is_refused_with_the_names():
    with pytest.raises(GonioError, match="nielsen-grivas-2026"):
        run.reproduce(["nobody-1999"])
