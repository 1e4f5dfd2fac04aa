"""The units of rounding, written once."""

UNIT = 2.0**-53  # the relative error of one rounding to float64
UNIT32 = 2.0**-24  # and to float32
TINY = 2.0**-1000  # more than all that underflow can take from one sum in float64
