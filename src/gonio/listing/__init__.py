"""Listing: every label set and every ranking a head can output, exactly, and what cosines tell of them.

`label_set_list` and `ranking_list` hold the collections a user gets. Below them: `arrangement` (rows as hyperplanes),
`cell_list` (their cells), the walks that list cells (`generic_walk`, `degenerate_walk`, in plain exact arithmetic
`exact_cells`), and `oriented_matroid` (the signs of all maximal minors).
"""
