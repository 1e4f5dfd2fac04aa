"""The interactive page."""

from gonio.explorer.page import page, plane, write

__all__ = ["page", "plane", "write"]
