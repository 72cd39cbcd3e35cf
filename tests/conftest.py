"""Settings of all tests, read before numpy and matplotlib are imported."""

import os

# The matrices of the tests are small: a second thread of BLAS costs more than it saves. Workers
# of pytest-xdist and the processes that tests start inherit the variables.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn and not shown

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from tests.dense import dense_covariance, dense_log_posterior  # noqa: E402

collect_ignore_glob = ["reference/make*.py"]  # some need other packages; they run by hand

__all__ = ["dense_covariance", "dense_log_posterior"]  # fixtures of several folders

pytest.register_assert_rewrite("tests.batteries")

# derandomize: the same examples in every run; deadline: machines differ in speed
settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=20)
settings.load_profile("deterministic")


@pytest.fixture
def rng():
    """Random numbers, the same in every test."""
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of evaluations, for searches of the same data."""
    return tmp_path_factory.mktemp("kept")


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """Run all tests of a file in one worker, so that they share their fits."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)
