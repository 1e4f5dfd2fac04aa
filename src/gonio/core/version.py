"""The version of gonio, written once."""

__version__ = "0.2.0"
