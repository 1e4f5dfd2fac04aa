"""Heads made to order."""
