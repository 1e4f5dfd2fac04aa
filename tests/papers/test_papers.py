"""What was once found of a paper is found again, list by list; the gallery is whole and hides no band."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gonio import GonioError
from gonio.papers import run
from gonio.papers.comparison import Checked, OursAlone, Printed

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "docs" / "gallery" / "reproduction.json").read_text())
SLOW = {"steck-2024", "you-2025", "mikolov-2013"}  # long simulations and trainings


def test_the_record_holds_every_paper():
    assert set(RECORD) == set(run.PAPERS)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in run.PAPERS])
def test_what_was_found_of_a_paper_is_found_again(name, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    (found,) = run.reproduce([name])
    if name == "you-2025" and any(r.ours == "not run" for r in found.alone):
        pytest.skip("torch and transformers are not installed; make test installs them")
    assert {r.claim: r.agrees for r in found.printed} == {r["claim"]: r["agrees"] for r in RECORD[name]["printed"]}
    assert {r.claim: r.result for r in found.checked} == {r["claim"]: r["result"] for r in RECORD[name]["checked"]}
    assert [r.claim for r in found.alone] == [r["claim"] for r in RECORD[name]["alone"]]
    for r in found.rows:
        assert (ROOT / r.test.split("::")[0]).exists(), r.test
    for r in found.printed:
        assert r.agrees or r.note, f"{r.claim}: a difference is explained"
        assert r.agrees == (r.theirs == r.ours if r.tolerance == 0 else abs(r.difference) <= r.tolerance)
    for p in found.pictures:
        assert run.draw(p, tmp_path / f"{p.name}.png").stat().st_size > 5000
        assert (ROOT / "docs" / "gallery" / f"{name}-{p.name}.png").exists()
    told = run.text([found])
    for title, rows in (("numbers the paper prints", found.printed), ("claims checked", found.checked)):
        assert (title in told) == bool(rows)


def test_a_number_of_ours_is_never_counted_as_an_agreement():
    rows = (
        Printed("a", 1.0, 1.04, 0.05, 0.04, True, "f", "t"),
        Checked("b", "by hand", 3, "does not hold", "f", "t"),
        OursAlone("c", 7, "no number is printed", "f", "t"),
    )
    r = run.Reproduction("k", "A paper", rows)
    assert r.counts() == {"printed numbers": 1, "found again": 1, "claims checked": 1, "hold": 0, "do not hold": 1,
                          "no number printed": 1}  # fmt: skip
    said = run.text([r])
    assert "within 0.05" in said
    assert "1 of 1 printed numbers found again; of 1 claim checked 1 does not hold; 1 number of ours alone" in said


def test_an_unknown_paper_is_refused_with_the_names():
    with pytest.raises(GonioError, match="nielsen-grivas-2026"):
        run.reproduce(["nobody-1999"])
