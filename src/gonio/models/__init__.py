"""From what users hold, a path or a live object, to a Head, and to the states that reach it."""

from gonio.models.loading import load
from gonio.models.state_capture import states

__all__ = ["load", "states"]
