"""The trusted kernel."""
