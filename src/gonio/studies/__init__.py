"""The papers' open questions as experiments that anyone can run on models of their own: one a file.

What they have in common is in `study`; the fixtures they were run on here are in `fixture_heads` and `texts`. The
recorded runs are in docs/findings.json and told in docs/findings.md.
"""
