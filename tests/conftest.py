"""Settings of all tests."""

import pytest
from hypothesis import settings

from tests.dense import dense_covariance, dense_log_posterior

__all__ = ["dense_covariance", "dense_log_posterior"]  # fixtures of several folders

pytest.register_assert_rewrite("tests.batteries")

# derandomize: the same examples in every run; deadline: machines differ in speed
settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("deterministic")
