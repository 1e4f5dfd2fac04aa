"""A command run here, with what a process of its own would have given: to start one takes longer than most commands.

That commands do start in a process of their own is seen in test_info.py and in tests/truth/test_commands.py.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from gonio.cli import main


def run(*arguments: Any, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What `gonio ARGUMENTS` prints and its exit code; what it raises is raised."""
    with contextlib.chdir(cwd) if cwd else contextlib.nullcontext():
        done = CliRunner().invoke(main, [str(a) for a in arguments], prog_name="gonio", catch_exceptions=False)
    return subprocess.CompletedProcess(["gonio", *map(str, arguments)], done.exit_code, done.stdout, done.stderr)
