"""Every command that stands in a block of a page is run, with small files in the place of the reader's."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio.cli import main
from tests.docs.blocks import ROOT, commands_of
from tests.docs.preludes import WORDS, a_live_model

# What a reader would write in the place of these words.
FOR = {
    "[LABEL...]": "dog", "LABEL...": "dog cat", "LABEL LABEL": "dog cat", "[PAPER]": "--list", "[MODEL]": "model.npz",
    "[--queries Q]": "--queries queries.npy", "[--was OLD]": "--was old.npy", "CORPUS": "corpus.npy",
    "--sets FILE": "--sets train_labels.txt", "--proof FILE": "--proof proof.npz", "verify MODEL FILE": "verify MODEL proof.npz",
    "--html FILE": "--html page.html", "--text FILE": "--text text.txt", "--out DIR": "--out made",
    "--to 32064": "--to 64", "tcp://scheduler:8786": "local:1", "local:4": "local:1",
}  # fmt: skip
# Lines that name a family of commands, and one of that family.
ONE_OF = {
    "factors ...": "factors --help",
    "alike-inputs|direction MODEL ...": "alike-inputs --help",
    "study NAME [MODEL ...]": "study sphere model.npz",
    "compare MODEL MODEL": "compare model.npz model.npz",
}
TYPED = commands_of([ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A head of words, its states, tables of embeddings and what else pages speak of."""
    at = tmp_path_factory.mktemp("reader")
    rng = np.random.default_rng(0)
    words = [*WORDS, "fish", *(f"word {i}" for i in range(7))]
    (at / "demo").mkdir()
    pinyin = ["hang2", "xing2", *(f"x{i}" for i in range(18))]
    for name, link, labels in (
        ("model", "softmax", words), ("tagger", "sigmoid", words), ("demo/g2pM", "softmax", pinyin)
    ):  # fmt: skip
        np.savez(at / f"{name}.npz", W=rng.normal(size=(20, 4)).astype(np.float32), link=link, labels=labels)
    np.save(at / "demo" / "states.npy", rng.normal(size=(300, 4)).astype(np.float32))
    for name, rows in (("corpus", 80), ("queries", 30), ("old", 80)):
        np.save(at / f"{name}.npy", rng.normal(size=(rows, 6)).astype(np.float32))
    (at / "train_labels.txt").write_text("dog\tcat\nfish\n")
    (at / "text.txt").write_text("\n".join(" ".join(rng.choice(WORDS, 30)) for _ in range(20)))
    return at


def _with_parquet(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pip install 'gonio[arrow]'")
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    ids = [str(i) for i in range(60)]
    for name in ("corpus", "queries", "new", "old"):
        rows = rng.normal(size=(60, 6)).tolist()
        pq.write_table(pa.table({"id": ids, "embedding": rows}), folder / f"{name}.parquet")
    for name in ("q_new", "q_old"):
        np.save(folder / f"{name}.npy", rng.normal(size=(30, 6)).astype(np.float32))
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {q} 1\n" for q in ids))
    gonio.remedies.Center().fit(rng.normal(size=(60, 6))).save(folder / "center.npz")


def _with_language_model(folder: Path) -> str:
    if not (folder / "lm").exists():
        names: dict = {}
        a_live_model(names)
        names["model"].save_pretrained(folder / "lm")
        names["tokenizer"].save_pretrained(folder / "lm")
    return "lm"


def _cases() -> list:
    slow = pytest.mark.slow  # workers take seconds to start
    return [pytest.param(*x, marks=[slow] if "--cluster" in x[1] else []) for x in sorted(set(TYPED))]


@pytest.mark.parametrize(("page", "line"), _cases())
def test_the_command_runs(page, line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    typed = ONE_OF.get(line, line)
    if "--cluster" in typed:
        pytest.importorskip("distributed", reason="pip install 'gonio[cluster]'")
    if ".parquet" in typed:
        _with_parquet(folder)
    for word, instead in FOR.items():
        typed = typed.replace(word, instead)
    needs_model = "--text" in typed or typed.startswith("undertrained")
    model = _with_language_model(folder) if needs_model else "tagger.npz" if "can-label" in typed else "model.npz"
    typed = re.sub(r"\bMODEL\b|\bmodel\.safetensors\b", model, typed)
    if typed.startswith("explore"):
        typed += " --html page.html --no-open"
    if "verify" in typed:
        CliRunner().invoke(main, shlex.split(f"can-win {shlex.split(typed)[1]} --proof proof.npz"))
    shutil.rmtree("made", ignore_errors=True)
    first, *rest = shlex.split(typed.partition(" || ")[0])
    for command in first.split("|"):
        ran = CliRunner().invoke(main, [command, *rest])
        fails = "--fail-on" in rest  # a gate may close
        assert ran.exit_code == 0 or (fails and ran.exit_code == 1), f"gonio {command} {rest}: {ran.output}"


def test_there_are_commands_to_run():
    assert len(TYPED) > 40
