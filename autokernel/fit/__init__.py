"""One run of ``fit``."""
