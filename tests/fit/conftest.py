"""Histories, as for the tests of the search."""

from tests.search.conftest import make_evaluation, make_history

__all__ = ["make_evaluation", "make_history"]
