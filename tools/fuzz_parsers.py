"""Coverage-guided fuzzing of every parser of files (tests/parsers.py), one process a parser, with atheris.

    python tools/fuzz_parsers.py                       the names of the parsers
    python tools/fuzz_parsers.py npz gguf --seconds 60
    python tools/fuzz_parsers.py all --seconds 3600 --keep corpus

Anything but an answer or a GonioError of one line is a finding: an exception, ten seconds, or 2 GB. The file that did
it is left in the folder --findings, and `--again FILE` reads it once more. The seconds are of the processor; --hang is
by the clock. With --keep, what was found to reach new code is kept and begun from the next time. `pip install atheris`
first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SEEN = ["gonio.files", "gonio.core", "gonio.cli.model", "gonio.factors.interactions", "gonio.proofs", "zipfile", "json"]


def fuzz(name: str, seconds: float, keep: Path | None, findings: Path, hang: int) -> None:
    """Fuzz one parser in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=SEEN, enable_loader_override=False):
        from tests.parsers import PARSERS, seeds_of

        from gonio.core.errors import GonioError

    folder = Path(tempfile.mkdtemp())
    work, corpus = folder / "work", keep / name.replace(" ", "_") if keep else folder / "corpus"
    work.mkdir()
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    for k, seed in enumerate(seeds_of(name, folder)):
        (corpus / f"seed{k}").write_bytes(seed)
    parser, runs, refused, began = PARSERS[name], 0, 0, time.process_time()

    def one(raw: bytes) -> None:
        nonlocal runs, refused
        if time.process_time() - began > seconds:
            print(f"{name}: {runs:,} files in {seconds:g} s, {refused:,} refused, 0 findings", flush=True)
            os._exit(0)
        runs, start = runs + 1, time.process_time()
        try:
            parser(work, raw)
        except GonioError as e:
            refused += 1
            if "\n" in str(e):
                raise AssertionError("a sentence of several lines") from e
        if time.process_time() - start > 10:
            raise AssertionError("ten seconds for a small file")

    prefix = findings / f"{name.replace(' ', '_')}-"
    limits = [f"-timeout={hang}", "-rss_limit_mb=2048", "-max_len=16384", "-verbosity=0"]
    atheris.Setup([sys.argv[0], str(corpus), *limits, f"-artifact_prefix={prefix}"], one)
    atheris.Fuzz()


def again(name: str, path: Path) -> None:
    from tests.parsers import PARSERS, seeds_of

    folder = Path(tempfile.mkdtemp())
    seeds_of(name, folder)
    (folder / "work").mkdir()
    PARSERS[name](folder / "work", path.read_bytes())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("parsers", nargs="*")
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--keep", type=Path, help="a folder for what reaches new code")
    arguments.add_argument("--findings", type=Path, default=Path("findings"))
    arguments.add_argument("--again", type=Path, help="read this file once, instead")
    arguments.add_argument("--hang", type=int, default=60, help="seconds after which a file is taken to hang")
    a = arguments.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiled code cannot be looked into
    if len(a.parsers) == 1 and a.parsers != ["all"]:
        name = a.parsers[0]
        return again(name, a.again) if a.again else fuzz(name, a.seconds, a.keep, a.findings, a.hang)
    from tests.parsers import PARSERS

    wanted: list[str] = list(PARSERS) if a.parsers == ["all"] else a.parsers
    if not wanted:
        print("\n".join(PARSERS))
    more: list[Any] = ["--seconds", a.seconds, "--findings", a.findings, "--hang", a.hang]
    more += ["--keep", a.keep] if a.keep else []
    failed = []
    for name in wanted:
        command = [sys.executable, __file__, name, *map(str, more)]
        if subprocess.run(command, check=False).returncode:  # noqa: S603  the names are our own
            failed.append(name)
    if failed:
        raise SystemExit(f"findings in: {', '.join(failed)}")
    return None


if __name__ == "__main__":
    main()
