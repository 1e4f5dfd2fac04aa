"""Checkpoints written anew with some tensors changed: beside the target first, moved into place when whole."""
