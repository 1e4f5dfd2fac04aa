"""The interactive page."""

from gonio.explorer.build import page, plane, write

__all__ = ["page", "plane", "write"]
