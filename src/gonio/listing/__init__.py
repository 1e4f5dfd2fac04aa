"""Patterns: every label set and every ranking a head can output, exactly.

And questions about single ones at any size.
"""
