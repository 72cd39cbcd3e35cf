"""Settings of all tests, those in docstrings included; read before numpy is imported."""

import os

import pytest

# The matrices of the tests are small: a second thread of BLAS costs more than it saves. Workers
# of pytest-xdist and the processes that tests start inherit the variables.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """Run all tests of a file in one worker, so that they share their fits."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)
