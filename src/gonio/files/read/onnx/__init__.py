"""The output head of an ONNX model, told from its graph; only what follows the product is run, in a process apart."""

from gonio.files.read.onnx.head import draft

__all__ = ["draft"]
