import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.mode_search import find_modes
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.scan import CoordinateScan
from autokernel.evidence.starts import DataScales
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import Seasonal
from autokernel.kernels.parameters import check_priors


def build(text, x, y, *, nodes=None, coarse=False, base_kernels=()):
    expression = parse_expression(text, base_kernels=base_kernels)
    data = TrainingData(x[:, None], y)
    posterior = LogPosterior(ExactLikelihood(expression, data), priors=check_priors("paper"))
    nodes = range(len(expression.nodes)) if nodes is None else nodes
    return posterior, CoordinateScan(posterior, DataScales(data), nodes, coarse=coarse)


@pytest.fixture
def pulses():
    """Narrow pulses with a period of 1 / 13.4: the first harmonics say little of their shape."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=100))
    phase = (13.4 * x) % 1.0
    y = np.exp(-((phase - 0.5) ** 2) / 0.002) + 0.02 * rng.normal(size=100)
    return x, (y - y.mean()) / y.std()


def smooth_mode(posterior):
    """Run from a period that is not there, with a smooth shape."""
    return maximise(posterior, np.log([1.0, 1.0, 1.5, 0.3]), max_iterations=300)


def test_the_shape_and_the_period_of_pulses_are_found_together(pulses):
    posterior, scan = build("PER[0]", *pulses)
    stuck = smooth_mode(posterior)
    assert np.exp(stuck.theta[2]) > 0.5  # or the test shows nothing
    mode = find_modes(posterior, [Point(stuck.theta)], scan)[0]
    assert np.exp(mode.theta[2]) == pytest.approx(1 / 13.4, rel=2e-3)
    assert np.exp(mode.theta[0]) < 0.3
    assert mode.log_posterior > stuck.log_posterior + 30


def test_a_coarse_scan_finds_the_period_with_half_of_the_calls(pulses):
    calls = {}
    for coarse in (False, True):
        posterior, scan = build("PER[0]", *pulses, coarse=coarse)
        stuck = smooth_mode(posterior)
        before = posterior.n_evaluations
        best = scan.around(stuck.theta)[0]
        calls[coarse] = posterior.n_evaluations - before
        assert np.exp(best.theta[2]) == pytest.approx(1 / 13.4, rel=1e-2)
    assert calls[True] < 0.5 * calls[False]


def test_candidates_come_best_first_with_their_values_within_the_bounds(pulses):
    posterior, scan = build("PER[0] * SE[0] + RQ[0]", *pulses)
    found = scan.around(np.log([1, 1, 0.1, 0.5, 1, 0.2, 0.1, 1, 1e-3]))
    values = [candidate.log_posterior for candidate in found]
    assert values == sorted(values, reverse=True)
    assert all(np.isfinite(values))
    for candidate in found:
        assert posterior.value(candidate.theta) == candidate.log_posterior
        assert np.all((posterior.lower <= candidate.theta) & (candidate.theta <= posterior.upper))
    thetas = np.array([candidate.theta for candidate in found])
    apart = np.abs(thetas[:, None] - thetas).max(axis=2)[np.triu_indices(len(found), 1)]
    assert apart.min() > 0.02  # no two runs to the same end


def test_two_leaves_of_a_kind_exchange_their_parameters():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 40)
    _, scan = build("SE[0] * LIN[0] + SE[0]", x, rng.normal(size=40))
    theta = np.log([0.5, 0.7, 1.0, 1.1, 0.04, 0.2, 0.1])
    exchanged = theta[[4, 5, 2, 3, 0, 1, 6]]
    assert any(np.allclose(one.theta, exchanged) for one in scan.around(theta))


def test_a_smooth_and_a_periodic_leaf_exchange_how_fast_they_forget():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 60)
    _, scan = build("SE[0] + PER[0]", x, rng.normal(size=60))
    theta = np.log([0.15, 0.2, 0.3, 0.9, 0.8, 0.1])
    reach = 0.3 * 0.8 / np.pi  # of the periodic leaf, becomes the lengthscale of the other
    found = [
        np.exp(one.theta) for one in scan.around(theta) if np.isclose(np.exp(one.theta[0]), reach)
    ]
    assert found
    for one in found:
        assert one[2] == pytest.approx(np.pi * 0.15)  # forgets over 0.15 where its period is one
        np.testing.assert_allclose(one[[1, 3]], [0.9, 0.2])


def test_leaves_on_other_columns_keep_their_parameters():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(size=(40, 2)), rng.normal(size=40)
    data, expression = TrainingData(X, y), parse_expression("SE[0] + SE[1]")
    posterior = LogPosterior(ExactLikelihood(expression, data), priors=check_priors("paper"))
    theta = np.log([0.5, 0.7, 0.04, 0.2, 0.1])
    found = CoordinateScan(posterior, DataScales(data), range(2)).around(theta)
    changed = np.array([one.theta for one in found]) != theta
    assert found
    assert not np.any(changed[:, :2].any(axis=1) & changed[:, 2:4].any(axis=1))


@pytest.mark.parametrize(
    ("nodes", "others"), [([0, 2], [2, 3, 4]), ([1], [0, 1, 5, 6, 7]), ([], range(9))]
)
def test_leaves_that_are_not_asked_about_stay_as_they_are(pulses, nodes, others):
    _, scan = build("SE[0] + PER[0] + RQ[0]", *pulses, nodes=nodes)
    theta = np.log([1, 1, 0.1, 0.5, 1, 0.2, 0.1, 1, 1e-3])
    found = scan.around(theta)
    assert bool(found) == bool(nodes)
    for candidate in found:
        np.testing.assert_array_equal(candidate.theta[others], theta[others])


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_cycle_that_is_soon_forgotten_is_found_from_a_wrong_period(seed):
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, 80)
    difference = x[:, None] - x
    wave = np.sin(np.pi * 15.3 * difference)
    K = np.exp(-(wave**2) / (2 * 0.8**2) - difference**2 / (2 * 0.06**2))
    y = np.linalg.cholesky(K + 0.05**2 * np.eye(80)) @ rng.normal(size=80)
    posterior, scan = build("PER[0] * SE[0]", x, (y - y.mean()) / y.std())
    stuck = maximise(posterior, np.log([1, 1, 1.5, 0.3, 1, 0.1]), max_iterations=300)
    truth = np.log([0.8, 1, 1 / 15.3, 0.06, 1, 0.05**2])
    planted = maximise(posterior, truth, max_iterations=300).log_posterior
    assert stuck.log_posterior < planted - 5  # or the test shows nothing
    mode = find_modes(posterior, [Point(stuck.theta)], scan)[0]
    assert mode.log_posterior > planted - 1e-3  # two runs to one top
    # one cycle is remembered: the period is known to a tenth
    assert np.exp(mode.theta[2]) == pytest.approx(1 / 15.3, rel=0.1)


def test_only_a_factor_says_over_what_a_cycle_is_forgotten(pulses):
    # in a sum too, the lengthscale of the other leaf would come with other periods
    _, scan = build("PER[0] + SE[0]", *pulses)
    _, of_product = build("PER[0] * SE[0]", *pulses)
    theta = np.log([1, 1, 1.5, 0.3, 1, 0.3])
    for found, expected in ((scan, False), (of_product, True)):
        reach = [np.exp(one.theta[3]) for one in found.around(theta) if one.theta[0] > np.log(0.4)]
        assert any(np.isclose(one, np.ptp(pulses[0]) / 4) for one in reach) == expected


def test_points_without_factor_are_no_candidates(pulses, monkeypatch):
    posterior, scan = build("PER[0]", *pulses)
    monkeypatch.setattr(posterior, "value", lambda theta: -np.inf)
    assert scan.around(np.log([1.0, 1.0, 1.5, 0.3])) == []


def test_a_known_period_is_scanned_near_it_alone(pulses):
    season = Seasonal(0.3, scale=1.0)
    _, scan = build(f"{season.name}[0]", *pulses, base_kernels=[season])
    periods = [np.exp(found.theta[2]) for found in scan.around(np.log([0.5, 1, 0.3, 0.1]))]
    assert periods
    assert all(abs(period / 0.3 - 1) < 0.16 for period in periods)


def test_a_known_period_of_many_cycles_is_found_in_few_calls():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=120))
    y = np.sin(2 * np.pi * x / 0.0051) + 0.1 * rng.normal(size=120)
    season = Seasonal(0.005, scale=1.0)  # two percent off, which is four cycles
    posterior, scan = build(f"{season.name}[0]", x, y, base_kernels=[season])
    best = scan.around(np.log([1.0, 1.0, 0.005, 0.1]))[0]
    assert abs(1 / np.exp(best.theta[2]) - 1 / 0.0051) < 0.25  # cycles
    assert posterior.n_evaluations < 3000  # the whole range has 60 cycles, 3000 points at 0.03


def test_a_known_period_far_below_the_rows_ends_soon():
    rng = np.random.default_rng(0)
    x, y = np.linspace(0, 1, 50), rng.normal(size=50)
    season = Seasonal(1e-7, scale=1.0)
    posterior, scan = build(f"{season.name}[0]", x, y, base_kernels=[season])
    scan.around(np.log([1.0, 1.0, 1e-7, 0.1]))
    assert posterior.n_evaluations < 1000
