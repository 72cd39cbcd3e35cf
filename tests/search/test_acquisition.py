import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from autokernel.search.acquisition import (
    Belief,
    CorrectedEstimates,
    ExpectedImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
    expected_improvement,
)
from autokernel.search.distances import SOTKernel
from autokernel.search.surrogate import SurrogateGP
from tests.search.stand_ins import distinct_walks


def improvement(mean, std, best):
    return expected_improvement(np.atleast_1d(mean), np.full(np.size(mean), std), best=best)


@pytest.mark.parametrize("best", [-2.0, 0.3, 1.5])
@pytest.mark.parametrize("std", [0.2, 3.0])
def test_expected_improvement_is_the_integral_of_its_definition(std, best):
    value, _ = quad(
        lambda f: (f - best) * norm.pdf(f, 0.3, std), best, np.inf, epsabs=0, epsrel=1e-10
    )
    assert improvement(0.3, std, best) == pytest.approx(value, rel=1e-8)  # the quadrature's error


def test_expected_improvement_is_never_negative():
    # far below the best, where two terms almost cancel
    assert np.all(improvement(np.linspace(-50, 5, 100_001), 1.0, 0.0) >= 0)


def test_without_uncertainty_it_is_the_improvement_of_the_mean():
    # a standard deviation of zero is taken as 1e-12, of which 0.4 is left at the best itself
    np.testing.assert_allclose(improvement([1.0, 2.0, 5.0], 0.0, 2.0), [0, 0, 3], atol=1e-12)


EXPRESSIONS = distinct_walks(70, n_walks=120)
KNOWN, NEW = EXPRESSIONS[:40], EXPRESSIONS[40:]


@pytest.fixture(scope="module")
def surrogate():
    """Of scores that fall with the number of leaves, and vary."""
    n_leaves = np.array([expression.n_leaves for expression in KNOWN])
    scores = -0.1 * n_leaves + 0.1 * np.random.default_rng(1).normal(size=40)
    return SurrogateGP(SOTKernel(), KNOWN, scores)


@pytest.mark.parametrize("kind", ["surrogate", "estimates"])
def test_values_are_those_of_the_surrogate_or_of_estimates_with_errors(kind, surrogate):
    mean, std = surrogate.predict(NEW)
    known, rng = surrogate, np.random.default_rng(0)
    if kind == "surrogate":
        drawn = surrogate.draw(rng)(NEW)
    else:
        pairs = zip(mean, std, strict=True)
        known, drawn = CorrectedEstimates(dict(zip(NEW, pairs, strict=True))), rng.normal(mean, std)
    for acquisition, expected in [
        (ExpectedImprovement(), expected_improvement(mean, std, best=-0.5)),
        (UpperConfidenceBound(kappa=0), mean),
        (UpperConfidenceBound(kappa=0.5), mean + 0.5 * std),
        (ThompsonSampling(), drawn),
    ]:
        values = acquisition.values(Belief(known, -0.5, np.random.default_rng(0)))(NEW)
        np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("kappa", [-1e-9, np.inf, "2"])
def test_a_kappa_that_is_no_finite_number_from_zero_is_an_error_that_says_so(kappa):
    expected = rf"'kappa' parameter of UpperConfidenceBound must be a float in .*Got {kappa!r}"
    with pytest.raises(ValueError, match=expected):
        UpperConfidenceBound(kappa=kappa)._validate_params()
