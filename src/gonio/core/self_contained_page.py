"""What a page needs to stand alone: a policy that allows its own script and style only, and data inside its text."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def policy(script: str, style: str) -> str:
    """A content security policy: this script, this style, and nothing from anywhere."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )


def inline_json(data: Any) -> str:
    """Data as JSON inside a script element: nothing in it can end the element.

    >>> inline_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
