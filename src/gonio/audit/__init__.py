"""The audit: everything gonio knows, asked once, in order, for one head."""

import sys
from types import ModuleType
from typing import Any

from gonio.audit.alike import Alike, alike
from gonio.audit.finding import Finding
from gonio.audit.run import Audit, audit

__all__ = ["Alike", "Audit", "Finding", "alike", "audit"]


class _Room(ModuleType):
    """`gonio.audit` is both this room and the question: whoever imported the room first can still ask."""

    def __call__(self, *args: Any, **options: Any) -> Audit:
        return audit(*args, **options)


sys.modules[__name__].__class__ = _Room
