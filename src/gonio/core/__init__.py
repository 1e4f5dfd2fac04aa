"""What everything rests on: the Head, its table of rows, the inputs that can reach it, and how work is checked, shown
and split."""
