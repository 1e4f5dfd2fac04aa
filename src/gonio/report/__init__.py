"""Results as text, JSON and HTML; no arithmetic."""
