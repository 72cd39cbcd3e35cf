import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from autokernel import parse_expression
from autokernel.search.acquisition import (
    Belief,
    ExpectedImprovement,
    ExpectedImprovementPerSecond,
    ThompsonSampling,
    UpperConfidenceBound,
    expected_improvement,
    fit_cost,
)
from autokernel.search.distances import SOTKernel
from autokernel.search.surrogate import SurrogateGP
from tests.search.stand_ins import walks_of

N_PARAMS = {"SE": 2, "LIN": 2, "PER": 3, "RQ": 3}


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


# distinct
EXPRESSIONS = list(dict.fromkeys(walks_of(120, n_features=2, seed=0)))[:70]
KNOWN, NEW = EXPRESSIONS[:40], EXPRESSIONS[40:]


@pytest.fixture(scope="module")
def surrogate():
    """Of scores that fall with the number of leaves, and vary."""
    n_leaves = np.array([expression.n_leaves for expression in KNOWN])
    scores = -0.1 * n_leaves + 0.1 * np.random.default_rng(1).normal(size=40)
    return SurrogateGP(SOTKernel(), KNOWN, scores)


def seconds_of(expressions):
    return np.exp(-3 + 0.4 * count_params(expressions))


def values_of(acquisition, surrogate, expressions, *, seed=0):
    belief = Belief(surrogate, -0.5, seconds_of, np.random.default_rng(seed))
    return acquisition.values(belief)(expressions)


def test_values_are_those_of_the_surrogate(surrogate):
    mean, std = surrogate.predict(EXPRESSIONS)
    seconds = seconds_of(EXPRESSIONS)
    assert seconds.max() > 100 * seconds.min()  # or the test shows nothing
    improvement = expected_improvement(mean, std, best=-0.5)
    for acquisition, expected in [
        (ExpectedImprovement(), improvement),
        (ExpectedImprovementPerSecond(), improvement / seconds),
        (UpperConfidenceBound(kappa=0), mean),
        (UpperConfidenceBound(kappa=0.5), mean + 0.5 * std),
        (ThompsonSampling(), surrogate.draw(np.random.default_rng(0))(EXPRESSIONS)),
    ]:
        np.testing.assert_array_equal(values_of(acquisition, surrogate, EXPRESSIONS), expected)


def count_params(expressions):
    """Parameters of all leaves, and that of the noise."""
    return np.array([1 + sum(N_PARAMS[leaf.kernel.name] for leaf in e.leaves) for e in expressions])


def test_cost_is_the_least_squares_fit_of_log_seconds():
    seconds = np.exp(np.random.default_rng(0).normal(size=len(EXPRESSIONS)))
    slope, intercept = np.polyfit(count_params(EXPRESSIONS), np.log(seconds), 1)
    predicted = fit_cost(EXPRESSIONS, seconds)(EXPRESSIONS)
    expected = np.exp(intercept + slope * count_params(EXPRESSIONS))
    np.testing.assert_allclose(predicted, expected, rtol=1e-11)  # rounding


def test_cost_of_equal_numbers_of_parameters_is_the_geometric_mean():
    known = [
        parse_expression(text) for text in ("SE[0] + LIN[0]", "SE[0] * SE[1]", "LIN[0] * LIN[1]")
    ]
    cost = fit_cost(known, np.array([1.0, 2.0, 4.0]))
    assert cost(known) == pytest.approx([2.0] * 3, rel=1e-12)  # rounding
    others = cost([parse_expression("SE[0]"), parse_expression("SE[0] * (PER[0] + RQ[0])")])
    np.testing.assert_allclose(others, 2.0, rtol=1e-12)  # rounding: no size is known to cost more


def test_cost_of_zero_seconds_throughout_is_positive_and_finite():
    seconds = fit_cost(EXPRESSIONS, np.zeros(70))(EXPRESSIONS)
    np.testing.assert_allclose(seconds, 1e-6, rtol=1e-10)  # rounding of logarithms of size 14


@pytest.mark.parametrize("kappa", [-1e-9, np.inf, "2"])
def test_a_kappa_that_is_no_finite_number_from_zero_is_an_error_that_says_so(kappa):
    expected = rf"'kappa' parameter of UpperConfidenceBound must be a float in .*Got {kappa!r}"
    with pytest.raises(ValueError, match=expected):
        UpperConfidenceBound(kappa=kappa)._validate_params()
