"""Tests of gonio.testing."""
