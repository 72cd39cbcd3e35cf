import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from autokernel import parse_expression
from autokernel.search.acquisition import (
    ACQUISITIONS,
    Acquisition,
    Belief,
    ExpectedImprovement,
    ExpectedImprovementPerSecond,
    ThompsonSampling,
    UpperConfidenceBound,
    expected_improvement,
    fit_cost,
)
from autokernel.search.sot import SOTKernel
from autokernel.search.surrogate import SurrogateGP

N_PARAMS = {"SE": 2, "LIN": 2, "PER": 3, "RQ": 3}


def improvement(mean, std, best):
    return expected_improvement(np.atleast_1d(mean), np.full(np.size(mean), std), best=best)


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


@pytest.fixture(scope="module")
def expressions(random_expressions):
    """Distinct expressions."""
    return list(dict.fromkeys(random_expressions(120, n_features=2, seed=0)))[:70]


@pytest.fixture(scope="module")
def scores(expressions):
    """Scores of the first 40, which fall with the number of leaves, and vary."""
    n_leaves = np.array([expression.n_leaves for expression in expressions[:40]])
    return -0.1 * n_leaves + 0.1 * np.random.default_rng(1).normal(size=40)


@pytest.fixture(scope="module")
def surrogate(expressions, scores):
    return SurrogateGP(SOTKernel(), expressions[:40], scores)


def same_cost(expressions):
    return np.full(len(expressions), 0.1)


def values_of(acquisition, surrogate, expressions, *, best=0.0, cost=same_cost, seed=0):
    belief = Belief(surrogate, best, cost, np.random.default_rng(seed))
    return acquisition.values(belief)(expressions)


def test_ei_per_second_divides_by_the_predicted_seconds(surrogate, expressions):
    def cost(expressions):
        return np.exp(-3 + 0.4 * count_params(expressions))

    per_second, ei = (
        values_of(acquisition, surrogate, expressions, best=-0.5, cost=cost)
        for acquisition in (ExpectedImprovementPerSecond(), ExpectedImprovement())
    )
    seconds = cost(expressions)
    assert seconds.max() > 100 * seconds.min()  # or the test shows nothing
    np.testing.assert_allclose(per_second * seconds, ei, rtol=1e-12)  # rounding
    expected = expected_improvement(*surrogate.predict(expressions), best=-0.5)
    np.testing.assert_array_equal(ei, expected)


@pytest.mark.parametrize("kappa", [0, 0.5, 2, 10.0])
def test_ucb_is_the_mean_and_kappa_standard_deviations(kappa, surrogate, expressions):
    mean, std = surrogate.predict(expressions)
    np.testing.assert_array_equal(
        values_of(UpperConfidenceBound(kappa=kappa), surrogate, expressions),
        mean + kappa * std,
    )


def test_thompson_gives_an_expression_one_value(surrogate, expressions, scores):
    belief = Belief(surrogate, 0.0, same_cost, np.random.default_rng(0))
    function = ThompsonSampling().values(belief)
    first, again, last = function(expressions), function(expressions), function(expressions[-1:])
    # each answer has a variance of 1e-9 of that of the prior, of its own: five deviations
    prior_std = scores.std() * np.exp(0.5 * surrogate.theta[0])
    atol = 5 * np.sqrt(2e-9) * prior_std
    np.testing.assert_allclose(again, first, atol=atol)
    assert last[0] == pytest.approx(first[-1], abs=atol)
    assert np.std(first) > 100 * atol  # or the test shows nothing


def count_params(expressions):
    """Parameters of all leaves, and that of the noise."""
    return np.array([1 + sum(N_PARAMS[leaf.kernel.name] for leaf in e.leaves) for e in expressions])


def test_cost_is_the_least_squares_fit_of_log_seconds(expressions):
    seconds = np.exp(np.random.default_rng(0).normal(size=len(expressions)))
    slope, intercept = np.polyfit(count_params(expressions), np.log(seconds), 1)
    predicted = fit_cost(expressions, seconds)(expressions)
    expected = np.exp(intercept + slope * count_params(expressions))
    np.testing.assert_allclose(predicted, expected, rtol=1e-11)  # rounding


def test_cost_of_equal_numbers_of_parameters_is_the_geometric_mean():
    known = [
        parse_expression(text) for text in ("SE[0] + LIN[0]", "SE[0] * SE[1]", "LIN[0] * LIN[1]")
    ]
    cost = fit_cost(known, np.array([1.0, 2.0, 4.0]))
    assert cost(known) == pytest.approx([2.0] * 3, rel=1e-12)  # rounding
    others = cost([parse_expression("SE[0]"), parse_expression("SE[0] * (PER[0] + RQ[0])")])
    np.testing.assert_allclose(others, 2.0, rtol=1e-12)  # rounding: no size is known to cost more


def test_cost_of_zero_seconds_throughout_is_positive_and_finite(expressions):
    seconds = fit_cost(expressions, np.zeros(len(expressions)))(expressions)
    np.testing.assert_allclose(seconds, 1e-6, rtol=1e-10)  # rounding of logarithms of size 14


def test_the_registry_holds_every_acquisition_function():
    assert dict(ACQUISITIONS) == {
        "ei": ExpectedImprovement,
        "ei_per_second": ExpectedImprovementPerSecond,
        "ucb": UpperConfidenceBound,
        "thompson": ThompsonSampling,
    }
    ours = {c for c in Acquisition.__subclasses__() if c.__module__.startswith("autokernel.")}
    assert set(ACQUISITIONS.values()) == ours


@pytest.fixture(params=ACQUISITIONS)
def acquisition(request):
    return ACQUISITIONS[request.param]()


@pytest.mark.parametrize("kappa", [-1, -1e-9, np.nan, np.inf, "2", None])
def test_a_kappa_that_is_no_finite_number_from_zero_is_an_error_that_says_so(kappa):
    expected = rf"'kappa' parameter of UpperConfidenceBound must be a float in .*Got {kappa!r}"
    with pytest.raises(ValueError, match=expected):
        UpperConfidenceBound(kappa=kappa)._validate_params()


def test_it_prefers_a_kernel_that_is_better_in_mean_and_in_deviation(
    acquisition, surrogate, expressions
):
    new = expressions[40:]
    mean, std = surrogate.predict(new)
    above, wider = np.subtract.outer(mean, mean), np.subtract.outer(std, std)
    better, worse = np.unravel_index(np.argmax(np.where(wider > 0, above, -np.inf)), above.shape)
    pair = [new[better], new[worse]]
    n_draws = 200
    values = [values_of(acquisition, surrogate, pair, seed=seed) for seed in range(n_draws)]
    gain, loss = np.mean(values, axis=0)
    assert gain > loss
    # of functions that are drawn, the mean says so: more than five of its deviations apart
    deviation = std[[better, worse]].sum()
    assert above[better, worse] > 5 * deviation / np.sqrt(n_draws)
