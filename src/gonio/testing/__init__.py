"""Assertions about models and tables of embeddings, for test suites: each failure names the labels and the proof.

    from gonio.testing import assert_every_label_can_win, assert_no_padded_wins

    def test_the_head_can_output_every_class():
        assert_every_label_can_win("model.safetensors")

A model is whatever `gonio.load` takes, or a `Head`. What was not decided does not pass: what is green was proven.
`pytest --gonio-proofs DIR` keeps the proofs of failures there, for `gonio verify` and `tools/check_proof.py`.
"""

from gonio.testing.neighbours import assert_neighbours_kept
from gonio.testing.possible import assert_every_label_can_win, assert_no_padded_wins
from gonio.testing.same import assert_same_model

__all__ = ["assert_every_label_can_win", "assert_neighbours_kept", "assert_no_padded_wins", "assert_same_model"]
