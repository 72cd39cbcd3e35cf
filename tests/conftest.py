"""Settings of all tests."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.batteries")

# derandomize: the same examples in every run; deadline: machines differ in speed
settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("deterministic")
