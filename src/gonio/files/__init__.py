"""Model files: `read` one into a Head, `write` a changed one back in its own format."""
