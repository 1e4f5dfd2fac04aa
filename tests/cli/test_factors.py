"""The commands about factor models: real files in, text or JSON and an exit code out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

from gonio.cli import main
from gonio.factors import fit
from gonio.papers.simulated_interactions import simulate
from tests.real import wheel


def run(*args):
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


@pytest.mark.parametrize(
    ("command", "says"),
    [("dropout", "scores correlate"), ("rescale", "the objective changes by"), ("project", "plain cosines move")],
)
def test_each_experiment_is_one_command(command, says):
    r = run("factors", command, "--simulated-users", 600, "--simulated-items", 60, "--rank", 5)
    if command != "dropout":
        r = run("factors", command, "--simulated-users", 600, "--simulated-items", 60, "--rank", 5, *(
            ["--lam", 100] if command == "project" else ["--lam-factors", 10]))  # fmt: skip
    assert r.exit_code == 0, r.output
    assert says in " ".join(r.stdout.split())


def test_restarts_and_figure(tmp_path):
    r = run(
        "factors",
        "restarts",
        "--simulated-users",
        400,
        "--simulated-items",
        40,
        "--rank",
        2,
        "--starts",
        1,
        "--lam-factors",
        10,
    )
    assert r.exit_code == 0
    assert "start 0" in r.stdout
    r = run("factors", "figure1", "--simulated-users", 500, "--simulated-items", 60, "--rank", 6, "--lam-factors", 5, "--lam-product", 25,
            "--out", tmp_path / "f.png")  # fmt: skip
    assert r.exit_code == 0, r.output
    assert (tmp_path / "f.png").exists()


def test_your_own_interactions(tmp_path):
    X = simulate(300, 40, seed=1).X
    sparse.save_npz(tmp_path / "x.npz", X)
    np.save(tmp_path / "x.npy", X.toarray())
    seen = [
        json.loads(run("factors", "project", "--data", tmp_path / name, "--rank", 4, "--lam", 10, "--json", "-").stdout)
        for name in ("x.npz", "x.npy")
    ]
    assert seen[0]["groups"][0]["rows"][3]["lists"] == pytest.approx(seen[1]["groups"][0]["rows"][3]["lists"])
    wrong = X.tolil()
    wrong[2] = 0
    sparse.save_npz(tmp_path / "empty.npz", wrong.tocsr())
    r = run("factors", "project", "--data", tmp_path / "empty.npz", "--rank", 4, "--lam", 10)
    assert r.exit_code == 0
    assert "note: fit: 1 users have no interaction (2)" in r.stderr
    r = run("factors", "project", "--data", tmp_path / "nothing.npz")
    assert r.exit_code == 2
    assert r.stderr.startswith("gonio: ")
    r = run("factors", "rescale", "--data", tmp_path / "x.npz", "--rank", 4, "--lam-factors", 1e9)
    assert r.exit_code == 2
    assert "removes every dimension" in r.stderr


def test_movielens_from_the_wheel():
    r = run("factors", "movielens", wheel("recbole"), "--rank", 20, "--json", "-")
    assert r.exit_code == 0
    assert json.loads(r.stdout)["films"] == 939
    assert run("factors", "movielens", "nowhere").exit_code == 2


def test_audit_of_a_pair_of_files(tmp_path):
    X = simulate(300, 40, seed=1).X
    m = fit(X, 4, "product", lam=10.0)
    np.save(tmp_path / "u.npy", m.users)
    np.save(tmp_path / "i.npy", m.items)
    np.save(tmp_path / "p.npy", m.popularity)
    (tmp_path / "names.txt").write_text("\n".join(f"film {i}" for i in range(40)))
    pair = ("--users", tmp_path / "u.npy", "--items", tmp_path / "i.npy")
    r = run("audit", *pair, "--labels", tmp_path / "names.txt", "--popularity", tmp_path / "p.npy", "--top", 5,
            "--csv", tmp_path / "rows.csv", "--explain")  # fmt: skip
    assert r.exit_code == 0, r.output
    assert "with popularity" in r.stdout
    assert "reach no user's top 5" in r.stdout or "reaches no user's top 5" in r.stdout
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 41
    said = json.loads(run("audit", *pair, "--trained", "factors", "--json", "-").stdout)
    findings = {f["key"]: f for f in said["findings"]}
    assert "rescaling" not in findings
    assert said["findings"][0]["key"] == "similar-items"
    assert "unique" in findings["single-cosine"]["title"]
    page = tmp_path / "a.html"
    assert run("audit", *pair, "--html", page).exit_code == 0
    assert "For similar items use the projected-back cosine" in page.read_text()
    assert "no user&#39;s top" in page.read_text()
    assert run("audit", "--users", tmp_path / "u.npy", "--items", tmp_path / "none.npy").exit_code == 2
    bad = run("audit", *pair, "--popularity", tmp_path / "u.npy")
    assert bad.exit_code == 2
    assert "popularity" in bad.stderr
