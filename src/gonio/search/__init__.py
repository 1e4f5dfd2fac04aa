"""Proposes witnesses and weights, fast; nothing it says is believed until `proofs` has verified it."""
