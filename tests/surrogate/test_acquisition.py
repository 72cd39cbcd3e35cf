import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from autokernel.surrogate.acquisition import expected_improvement
from autokernel.surrogate.gp import Prediction


def improvement(mean, std, best):
    prediction = Prediction(np.atleast_1d(np.asarray(mean, float)), np.full(np.size(mean), std))
    return expected_improvement(prediction, best=best)


@pytest.mark.parametrize("best", [-2.0, 0.3, 1.5])
@pytest.mark.parametrize("std", [0.2, 1.0, 3.0])
def test_expected_improvement_is_the_integral_of_its_definition(std, best):
    value, _ = quad(
        lambda f: (f - best) * norm.pdf(f, 0.3, std), best, np.inf, epsabs=0, epsrel=1e-10
    )
    assert improvement(0.3, std, best) == pytest.approx(value, rel=1e-8)  # the quadrature's error


def test_expected_improvement_is_never_negative():
    # far below the best, where two terms almost cancel
    assert np.all(improvement(np.linspace(-50, 5, 100_001), 1.0, 0.0) >= 0)


def test_expected_improvement_grows_with_the_mean_and_with_the_standard_deviation():
    assert np.all(np.diff(improvement(np.linspace(-5, 5, 50), 1.0, 0.0)) > 0)
    values = [improvement(-1.0, std, 0.0)[0] for std in np.linspace(0.1, 5, 50)]
    assert np.all(np.diff(values) > 0)


def test_expected_improvement_scales_with_the_unit_of_the_scores():
    means = np.linspace(-3, 3, 7)
    # the same numbers times a power of two: rounding in the exponential alone
    np.testing.assert_allclose(
        improvement(1024 * means, 1024 * 0.7, 1024 * 0.5),
        1024 * improvement(means, 0.7, 0.5),
        rtol=1e-13,
    )


def test_without_uncertainty_it_is_the_improvement_of_the_mean():
    # a standard deviation of zero is taken as 1e-12, of which 0.4 is left at the best itself
    np.testing.assert_allclose(improvement([1.0, 2.0, 5.0], 0.0, 2.0), [0, 0, 3], atol=1e-12)
