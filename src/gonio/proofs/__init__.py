"""The trusted kernel: everything that has to be right for a proof of gonio's to be right. It imports `core` only.

A certificate (`certificates`, `comparisons`) holds plain numbers: an embedding x, or rivals and weights. Its `verify`
takes the head's stored numbers for the rationals they are and proves one inequality, in floats with a bound of their
rounding where that can tell, in whole numbers where it cannot. So a proof is right if

    core.head, core.row_table, core.inputs   give the scores W x + b and the set of inputs that the model has,
    core.equal_labels                        finds exactly the labels whose scores are equal everywhere,
    exact_numbers                            adds and multiplies whole numbers, and solves linear systems of them,
    margins, score_gaps                      bound the rounding of scores (least_margins, beats, Places; least_gap),
    rival_mean, never_below                  bound a weighted mean of rivals, and show that exact weights exist,
    observed_inputs                          looks at every observed embedding,
    mapped_rows, row_maxima, own_direction   state the lemma by which most labels win, and bound its rounding,
    bulk, proof_file                         verify thousands at once, and read no more than a file holds.

The rule for floats: every operation here has its relative and its absolute error accounted for, whatever the
magnitudes; numbers are scaled by exact powers of two first, sums are long floats or carry what underflow may take, and
where that cannot be, exact arithmetic decides. A bound is a bound: what is not known is another type, not a number.

Nothing else is believed: `search` proposes, `ask` passes on only what was verified here. docs/proofs.md tells the
mathematics and the file, and tools/check_proof.py checks the same files with none of this code.
"""

from gonio.proofs.certificate_base import Certificate, CertificateError
from gonio.proofs.certificates import NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.comparisons import Impossible, Open, Possible

__all__ = [
    "Certificate",
    "CertificateError",
    "Impossible",
    "NeverTies",
    "NeverWins",
    "Open",
    "Possible",
    "Ties",
    "Undecided",
    "Wins",
]
