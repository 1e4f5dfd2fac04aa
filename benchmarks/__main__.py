"""Run the benchmarks: python -m benchmarks [NAME...]"""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(wanted: list[str]) -> int:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE
    ).stdout.strip()
    about = {
        "commit": commit,
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "python": platform.python_version(),
    }
    slow = 0
    for path in sorted(HERE.glob("bench_*.py")):
        if wanted and not any(w in path.stem for w in wanted):
            continue
        for case in importlib.import_module(f"benchmarks.{path.stem}").cases(toy=False):
            result = case.measure()
            slow += result["ratio"] > case.most
            mark = "ok  " if result["ratio"] <= case.most else "SLOW"
            more = "".join(f"  {k} {v:,.4g}" for k, v in result.items() if k not in ("name", "ratio", "most"))
            print(f"{mark} {case.name:<60} {result['ratio']:8.2f} (at most {case.most:g}){more}", flush=True)
            with (HERE / "results.jsonl").open("a") as f:
                f.write(json.dumps(result | about) + "\n")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
