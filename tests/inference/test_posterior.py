import numpy as np
import pytest
from scipy.linalg import LinAlgError

from autokernel.expression import parse_expression
from autokernel.inference.posterior import LogPosterior
from autokernel.kernels.priors import check_priors
from autokernel.likelihood import TrainingData


@pytest.fixture
def posterior():
    x = np.linspace(0, 1, 15)
    data = TrainingData(x[:, None], np.sin(6 * x))
    return LogPosterior(parse_expression("SE[0] + LIN[0]"), data, priors=check_priors("paper"))


def test_value_is_that_of_value_and_gradient_for_one_call(posterior):
    for theta in np.random.default_rng(0).normal(-1, 1, size=(5, 5)):
        expected = posterior.value_and_gradient(theta).value
        before = posterior.n_evaluations
        # the same numbers in the same order
        assert posterior.value(theta) == expected
        assert posterior.n_evaluations == before + 1


def test_value_is_minus_infinity_where_the_covariance_has_no_factor(posterior, monkeypatch):
    def never(packed, n):
        raise LinAlgError("not positive definite")

    monkeypatch.setattr("autokernel.likelihood.exact.PackedCholesky", never)
    assert posterior.value(np.zeros(5)) == -np.inf
