"""Surrogates for the score of an expression."""
