"""Build the wheel and the sdist, install the wheel into an empty venv elsewhere, and use it there as a stranger would.

    python tools/check_package.py [--python python3.13] [--keep DIR]

Run by `make package`, in a venv with the extra `package`. Every step prints its time; the first that fails says why.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MADE = """import numpy as np
rng = np.random.default_rng(0)
W = rng.normal(size=(40, 4))
W[7] = W[[1, 2, 3]].mean(axis=0)
np.savez("made.npz", W=W, link="softmax", labels=np.array([f"label {i}" for i in range(40)]))
"""
AUDIT = ["audit", "made.npz", "--html", "audit.html", "--json", "audit.json", "--junit", "audit.xml"]
USES = (  # a command, its exit code, words that it prints
    (["--version"], 0, "gonio"),
    ([*AUDIT, "--fail-on", "never-wins"], 1, "can never win"),
    (["can-win", "made.npz", "--proof", "proof.npz"], 0, "proofs"),
    (["verify", "made.npz", "proof.npz"], 0, "40 proofs hold"),
    (["explore", "made.npz", "--html", "explore.html", "--no-open"], 0, "written"),
    (["reproduce", "--list"], 0, "grivas-2022"),
)
WRITTEN = {
    "made.npz", "audit.html", "audit.json", "audit.xml", "proof.npz", "proof.head.npz", "explore.html",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python of the empty venv")
    parser.add_argument("--keep", metavar="DIR", help="copy the two files here (default: dist)", default=ROOT / "dist")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gonio-package-") as folder:
        place = Path(folder)
        wheel, sdist = build(place / "dist")
        same_files(wheel, sdist)
        python = install(wheel, given.python, place / "venv")
        read_only(python, place / "venv", place / "elsewhere", place / "home")
        Path(given.keep).mkdir(exist_ok=True)
        for made in (wheel, sdist):
            shutil.copy(made, given.keep)
    print(f"package: {wheel.name} and {sdist.name} are good; copied to {given.keep}")


def build(to: Path) -> tuple[Path, Path]:
    """The wheel, built from the sdist, and the sdist; both as an index would take them."""
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", to, ROOT])
    wheel, sdist = next(to.glob("*.whl")), next(to.glob("*.tar.gz"))
    run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist])
    return wheel, sdist


def same_files(wheel: Path, sdist: Path) -> None:
    """The wheel holds every file of the package and nothing else; the sdist holds what builds and tests it."""
    package = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src" / "gonio").rglob("*") if p.is_file()}
    package = {p for p in package if "__pycache__" not in p}
    with zipfile.ZipFile(wheel) as z:
        inside = {n for n in z.namelist() if ".dist-info/" not in n}
        entries = z.read(next(n for n in z.namelist() if n.endswith("entry_points.txt"))).decode()
    must(inside == package, f"the wheel lacks {sorted(package - inside)} and has besides {sorted(inside - package)}")
    must("gonio/py.typed" in inside, "the wheel has no py.typed")
    must("gonio = gonio.__main__:main" in entries and "[pytest11]" in entries, f"entry points are {entries}")
    with tarfile.open(sdist) as t:
        held = {n.partition("/")[2] for n in t.getnames()}
    lacking = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "tools/check_proof.py"} - held
    must(not lacking, f"the sdist lacks {sorted(lacking)}")
    must(not [n for n in held if n.endswith((".whl", ".pyc"))], "the sdist has files that are not sources")


def install(wheel: Path, python: str, to: Path) -> Path:
    """The Python of a new venv that holds the wheel and what it needs."""
    run([python, "-m", "venv", to])
    inner = to / "bin" / "python"
    run([inner, "-m", "pip", "--disable-pip-version-check", "install", "-q", wheel])
    return inner


def read_only(python: Path, venv: Path, cwd: Path, home: Path) -> None:
    """Use it with a site-packages that nobody may write to: with a home that takes compiled code, and without one."""
    folders = [p for p in venv.rglob("*") if p.is_dir() and not p.is_symlink()]
    for p in (cwd, home):
        p.mkdir()
    for p in folders:
        p.chmod(0o555)
    try:
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        use(python, cwd, USES, env=env, preexec_fn=no_override)
        must(not [*venv.rglob("*.nbi")], "compiled code went into a read-only site-packages")
        must(bool([*home.rglob("*.nbi")]), "compiled code was kept nowhere")
        beside = {p.name for p in home.iterdir()} - {".cache"}
        must(not beside, f"the commands left {beside} in the home folder")
        lost = env | {"HOME": str(place_without_write(home))}
        use(python, cwd, USES[2:3], env=lost, preexec_fn=no_override)
    finally:
        for p in [home / "none", *folders]:
            p.chmod(0o755)


def place_without_write(home: Path) -> Path:
    """A folder that nobody may write to."""
    (home / "none").mkdir(mode=0o555)
    return home / "none"


def use(python: Path, cwd: Path, uses: tuple, **options) -> None:
    """Commands in a folder, which afterwards holds the files they name and no others."""
    run([python, "-c", MADE], cwd=cwd, **options)
    for words, code, wanted in uses:
        done = run([python.parent / "gonio", *words], cwd=cwd, code=code, **options)
        must(wanted in done, f"gonio {' '.join(words)} did not say {wanted!r} but {done!r}")
    left = {str(p.relative_to(cwd)) for p in cwd.rglob("*")}
    must(left == WRITTEN, f"beside what was asked for, the commands left {sorted(left ^ WRITTEN)}")
    there = run([python, "-c", "import gonio; print(gonio.__file__)"], cwd=cwd, **options)
    must(str(ROOT) not in there, f"it ran {there}, not the installed package")


def no_override() -> None:
    """Give up the right of root to write where permissions forbid it (PR_CAPBSET_DROP of CAP_DAC_OVERRIDE)."""
    if os.getuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def run(command: list, *, code: int = 0, **options) -> str:
    """What a command prints; a failure where it ends with another code."""
    begun = time.monotonic()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)  # noqa: S603
    told = done.stdout + done.stderr
    print(
        f"{time.monotonic() - begun:6.1f} s  {' '.join(Path(str(c)).name.split(chr(10))[0] for c in command[:5])}",
        flush=True,
    )
    must(done.returncode == code, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{told}")
    return told


def must(holds: bool, otherwise: str) -> None:
    if not holds:
        sys.exit(f"package: {otherwise}")


if __name__ == "__main__":
    main()
