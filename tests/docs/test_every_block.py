"""No block of any page goes unrun: each line of one is known to a test that runs it, or stands below with its reason.

A new block that is none of these fails here until it is run, or is named in NOT_RUN with why it cannot be.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio.cli import main
from tests.docs import test_blocks, test_commands_of_pages
from tests.docs.blocks import BLOCK, COMMAND, ROOT, commands_of

MADE = {"cli.md"}  # from --help, which tests/contracts checks
BESIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES = [*BESIDE, *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.name not in MADE)]


def check_proof(line: str, folder: Path) -> None:
    W = np.random.default_rng(0).normal(size=(8, 3))
    np.savez(folder / "m.npz", W=W, link="softmax")
    done = CliRunner().invoke(main, ["can-win", str(folder / "m.npz"), "--proof", str(folder / "p.npz")])
    assert done.exit_code == 0, done.output
    words = shlex.split(re.split(r"\s{2,}", line)[0])
    words = [{"python": sys.executable, "tools/check_proof.py": str(ROOT / "tools/check_proof.py"), "FILE": "p.npz"}.get(w, w) for w in words]  # fmt: skip
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def fit_a_remedy(line: str, folder: Path) -> None:
    np.save(folder / "corpus.npy", np.random.default_rng(0).normal(size=(40, 5)))
    python, option, code = shlex.split(line)
    assert (python, option) == ("python", "-c")
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "mean_" in np.load(folder / "center.npz")  # what `gonio apply` reads


def step_of_an_action(block: str, folder: Path) -> None:
    """Its inputs are the action's; tests/cli/test_gates.py runs the steps of action.yml."""
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed; make test installs it")
    (step,) = yaml.safe_load(block)
    assert step["uses"].endswith(f"/gonio@v{gonio.__version__}")
    assert set(step["with"]) <= set(yaml.safe_load((ROOT / "action.yml").read_text())["inputs"])


def hook(block: str, folder: Path) -> None:
    """The hook's command, with these arguments."""
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed; make test installs it")
    (typed,) = yaml.safe_load(block)
    (known,) = (h for h in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()) if h["id"] == typed["id"])
    (folder / "models").mkdir()
    np.savez(folder / "models" / "head.npz", W=np.array([[1.0, 0], [0, 1], [-1, -1]]), link="softmax")
    done = CliRunner().invoke(main, [*known["entry"].split()[1:], *typed["args"]])
    assert done.exit_code == 0, done.output
    assert re.match(typed["files"], "models/head.npz")


# By how it begins, a line of a block (of YAML: the block), and what runs it.
RUN_HERE: dict[str, Callable[[str, Path], None]] = {
    "python tools/check_proof.py FILE": check_proof,
    'python -c "import gonio, numpy as np; gonio.remedies.Center()': fit_a_remedy,
    "- uses: OWNER/gonio@": step_of_an_action,
    "- id: gonio-audit": hook,
}
# By how it begins, a line of a block that cannot be run here, and why. There is none now.
NOT_RUN: dict[str, str] = {}


def lines_nothing_runs(page: Path, text: str) -> list[str]:
    """The lines of a page's blocks that no other test runs; a block of YAML is one."""
    whole = page in test_blocks.WRITTEN  # its Python and consoles are run in order
    typed = {line for name, line in test_commands_of_pages.TYPED if name == page.name}
    left: list[str] = []
    for kind, block in BLOCK.findall(text):
        if (kind == "python" and (whole or page in test_blocks.PYTHON)) or (kind == "console" and whole):
            continue
        if kind in ("python", "yaml"):
            left.append(block)
            continue
        for line in block.replace("\\\n", " ").splitlines():
            found = commands_of_line(line)
            if line.strip() and not line.lstrip().startswith("#") and not (found and found in typed and not whole):
                left.append(line)
    return left


def commands_of_line(line: str) -> str | None:
    """The words behind `gonio`, as `commands_of` reads them; None where it is no such command."""
    match = COMMAND.match(line)
    return re.split(r"\s{2,}(?=[a-z])|\s+#", match[1])[0].strip() if match else None


LEFT = [(p, line) for p in PAGES for line in lines_nothing_runs(p, p.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "line"), LEFT, ids=lambda x: x.name if isinstance(x, Path) else x.split("\n")[0][:40])
def test_a_line_that_no_other_test_runs_is_run_or_has_its_reason(page, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = next((run for begins, run in RUN_HERE.items() if line.startswith(begins)), None)
    if run is not None:
        run(line, tmp_path)
        return
    why = next((why for begins, why in NOT_RUN.items() if line.startswith(begins)), None)
    assert why, f"{page.name}: nothing runs {line!r}: run it in RUN_HERE, or say in NOT_RUN why it cannot be run"


def test_what_is_named_here_still_stands_on_a_page():
    for begins in (*RUN_HERE, *NOT_RUN):
        assert any(line.startswith(begins) for _, line in LEFT), f"no page has {begins!r} any more"


def test_every_fence_is_a_block_that_is_seen():
    """A fence that is indented, or whose kind is more than a word, would be passed over."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert 2 * len(BLOCK.findall(text)) == len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)), page


@pytest.mark.parametrize(
    "block",
    ["```\npip install gonio\n```", "```bash\nmake docs\n```", "```console\n$ dask scheduler\n```", "```yaml\na: 1\n```",
     "```\ngonio no-such-command\n```", "```python\nx = 1\n```"],
)  # fmt: skip
def test_a_new_block_would_be_seen(block):
    assert lines_nothing_runs(ROOT / "CONTRIBUTING.md", f"# A page\n\n{block}\n")


def test_lines_are_read_as_the_test_of_commands_reads_them():
    for page in (p for p in PAGES if p not in BESIDE):
        for _, line in commands_of([page]):
            assert commands_of_line(f"gonio {line}") == line
