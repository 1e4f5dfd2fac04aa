"""Print what one extra of pyproject.toml installs, so that a tool's venv can hold it without gonio itself.

python tools/pinned.py docs
"""

import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

if __name__ == "__main__":
    print(" ".join(PROJECT["optional-dependencies"][sys.argv[1]]))
