"""The output head of an ONNX model, read from its graph without running anything."""

from gonio.load.onnx.head import draft

__all__ = ["draft"]
