"""From what users hold, a path or a live object, to a Head."""

from gonio.models.loading import load

__all__ = ["load"]
