"""The search of the highest mode: parts of a kernel, known fits, scans of single leaves."""

import numpy as np
import pytest

from autokernel import CallableKernel, evaluate_kernel, parse_expression
from autokernel.evidence import Evaluator
from autokernel.evidence.evaluation import WarmStart
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.mode_search import CoordinateScan, ModeSearch, find_modes, random_stream
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.starts import Magnitudes, draw_starts
from autokernel.expression import arrange
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import VARIANCE, Seasonal
from autokernel.kernels.parameters import check_priors
from tests.maxima import posterior_of

PRIORS = check_priors("paper")


def decaying_cycle(seed, n_samples, *, frequency=9.3, reach=0.4, amplitude=0.15, noise=0.003):
    """Smooth cycles that are forgotten over ``reach``, with shorter wiggles."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n_samples)
    difference = x[:, None] - x
    wave = np.sin(np.pi * frequency * difference)
    K = np.exp(-(wave**2) / (2 * 0.8**2) - difference**2 / (2 * reach**2))
    K += amplitude**2 * np.exp(-(difference**2) / (2 * 0.03**2)) + noise**2 * np.eye(n_samples)
    y = np.linalg.cholesky(K) @ rng.normal(size=n_samples)
    return x[:, None], (y - y.mean()) / y.std()


@pytest.fixture(scope="module")
def series():
    return decaying_cycle(1, 30)


def evaluator(series, seed=0):
    return Evaluator(TrainingData(*series), priors=PRIORS, seed=seed)


def test_parts_find_what_the_whole_misses():
    series, text, seed = decaying_cycle(3, 70), "LIN[0] + PER[0] * SE[0] + SE[0]", 3
    expression, _ = arrange(parse_expression(text))
    posterior = posterior_of(expression, *series)
    (by_parts, *_), _ = ModeSearch(posterior.data, priors=PRIORS, seed=seed)(posterior)
    scales = Magnitudes(posterior.data)
    rng = random_stream(seed, expression, "whole")  # those of a kernel that has no parts
    starts = draw_starts(posterior, scales, 12, rng=rng)
    scan = CoordinateScan(posterior, scales, range(len(expression.nodes)))
    whole, *_ = find_modes(posterior, [Point(theta) for theta in starts], scan)
    assert by_parts.log_posterior > whole.log_posterior + 2


def test_a_kernel_gets_no_lower_than_where_known_fits_have_left_it_and_at_less_cost(series):
    known = [evaluator(series)(parse_expression(text)) for text in ("SE[0]", "PER[0]")]
    child = parse_expression("SE[0] + PER[0]")
    cold, helped = evaluator(series)(child), evaluator(series)(child, known)
    assert helped.n_evaluations < cold.n_evaluations / 2
    assert helped.log_posterior > cold.log_posterior - 0.5  # or the top next to the highest
    thetas = [fit.theta for fit in known]
    begins = [*thetas[0][:-1], *thetas[1][:-1], min(theta[-1] for theta in thetas)]
    assert helped.log_posterior >= posterior_of(child, *series).value(np.array(begins))
    assert helped.log_likelihood > known[0].log_likelihood - 1  # a term may be of no account


def test_a_new_term_finds_what_rows_with_the_same_value_have_in_common():
    # on the subsample of the rows hardly two have the same value
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(120), 2)
    X = np.column_stack([rng.uniform(size=240), rng.uniform(size=120)[group]])
    y = np.sin(6 * X[:, 0]) + 0.5 * rng.normal(size=120)[group] + 0.2 * rng.normal(size=240)
    parent = evaluator((X, y))(parse_expression("SE[0]"))
    child = evaluator((X, y))(parse_expression("SE[0] + SE[1]"), [parent])
    assert child.log_evidence > parent.log_evidence + 10
    values = {(p.kernel, p.name): p.value for p in child.parameters}
    assert values["SE[1]", "lengthscale"] < 0.01


def test_what_rows_of_the_same_value_have_in_common_is_found_from_nothing():
    rng = np.random.default_rng(4)  # of 0 to 11, one of five that other starts miss
    X = rng.uniform(size=(120, 3))
    group = rng.integers(80, size=120)
    X[:, 1] = rng.uniform(size=80)[group]
    y = np.sin(5 * X[:, 0] * X[:, 1]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=120)
    y += 0.25 * rng.normal(size=80)[group]
    y = (y - y.mean()) / y.std()
    fit = evaluate_kernel("SE[0] * SE[1] * SE[2] + SE[0] + SE[1] + SE[2]", X, y)
    lengthscales = [p.value for p in fit.parameters if p.name == "lengthscale"]
    # of the fourth to sixth leaf, that of column 1 tells apart even neighbouring groups
    assert lengthscales[4] < 1 / 80
    assert min(lengthscales[3], lengthscales[5]) > 0.1


@pytest.mark.parametrize("seed", range(4))
def test_a_function_that_varies_fast_in_two_columns_is_not_taken_for_noise(seed):
    # from as few random starts, three of these four end at a lower mode
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(128, 2))
    y = np.sin(30 * X[:, 0]) * np.sin(30 * X[:, 1])
    fit = evaluate_kernel("SE[0] * SE[1]", X, y / y.std(), random_state=seed)
    lengthscales = [p.value for p in fit.parameters if p.name == "lengthscale"]
    assert max(lengthscales) < 0.2  # a wave has the length 0.21


def test_two_leaves_on_one_column_find_a_fast_and_a_slow_part():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 120)
    y = np.sin(120 * x) + 4 * x + np.sin(9 * x) + 0.1 * rng.normal(size=120)
    fit = evaluate_kernel("SE[0] + SE[0]", x[:, None], (y - y.mean()) / y.std())
    fast, slow = sorted(p.value for p in fit.parameters if p.name == "lengthscale")
    assert fast < 0.05  # a wave of the length 0.052
    assert slow > 0.1


@pytest.mark.parametrize("n_more", [0, 30])
def test_a_fit_of_the_kernel_itself_leads_to_that_of_other_rows_by_one_run(n_more):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(90, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=90)
    few, text = 90 - n_more, "SE[0] + LIN[1]"
    of_few, subject = evaluator((X[:few], y[:few])), evaluator((X, y))
    known, larger = (of_few(parse_expression(one)) for one in (text, f"{text} + SE[1]"))
    job = subject.prepare(parse_expression(text), [larger, known])
    [[start]] = job.warm_starts
    expected = 90 / few * np.linalg.norm(known.hessian)  # in whichever order
    assert np.linalg.norm(start.hessian) == pytest.approx(expected, rel=1e-12)
    again, cold = subject.run(job), subject(parse_expression(text))
    # a run of some ten steps, and the Hessian with as many calls as there are parameters
    assert again.n_evaluations < 15 + 2 * again.n_params
    assert again.score == pytest.approx(cold.score, abs=1e-4)  # the optimiser's tolerance


# ---- scans of single leaves


def build(text, X, y, *, nodes=None, base_kernels=()):
    posterior = posterior_of(text, X, y, base_kernels=base_kernels)
    nodes = range(len(posterior.expression.nodes)) if nodes is None else nodes
    return posterior, CoordinateScan(posterior, Magnitudes(posterior.data), nodes)


@pytest.fixture
def pulses():
    """Narrow pulses with a period of 1 / 13.4: the first harmonics say little of their shape."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=100))
    phase = (13.4 * x) % 1.0
    y = np.exp(-((phase - 0.5) ** 2) / 0.002) + 0.02 * rng.normal(size=100)
    return x[:, None], (y - y.mean()) / y.std()


def smooth_mode(posterior):
    """Run from a period that is not there, with a smooth shape."""
    return maximise(posterior, Point(np.log([1.0, 1.0, 1.5, 0.3])), max_iterations=300)


def test_a_fit_to_rows_without_noise_is_no_bad_start_for_rows_with_noise():
    """Rows with the same inputs have other targets, which an earlier fit has not seen."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(size=(30, 1)), 2, axis=0)
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=60)
    data, kernel = TrainingData(X, y), parse_expression("SE[0]")
    posterior = LogPosterior(ExactLikelihood(kernel, data), priors=check_priors("default"))
    quiet = np.log([0.3, 1.0, 1e-8])
    assert posterior.value(quiet) < -1e5
    start = WarmStart((0,), quiet)
    before = posterior.n_evaluations
    modes, _ = ModeSearch(data, priors=check_priors("default"), seed=0)(posterior, [[start]])
    assert np.exp(modes[0].theta[-1]) == pytest.approx(0.01, rel=0.5)
    assert posterior.n_evaluations - before < 50


def test_the_shape_and_the_period_of_pulses_are_found_together(pulses):
    posterior, scan = build("PER[0]", *pulses)
    stuck = smooth_mode(posterior)
    assert np.exp(stuck.theta[2]) > 0.4  # or the test shows nothing
    mode = find_modes(posterior, [Point(stuck.theta)], scan)[0]
    assert np.exp(mode.theta[2]) == pytest.approx(1 / 13.4, rel=2e-3)
    assert np.exp(mode.theta[0]) < 0.3
    assert mode.log_posterior > stuck.log_posterior + 30


def parameters_around(text, *params):
    """Parameters of the candidates of a scan of noise."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.linspace(0, 1, 60), rng.uniform(size=60)])
    _, scan = build(text, X, rng.normal(size=60))
    return np.exp([candidate.theta for candidate in scan.around(np.log(params))])


def test_two_leaves_of_a_kind_exchange_their_parameters_if_they_are_on_one_column():
    found = parameters_around("SE[0] * LIN[0] + SE[0]", 0.5, 0.7, 1.0, 1.1, 0.04, 0.2, 0.1)
    assert np.isclose(found, [0.04, 0.2, 1.0, 1.1, 0.5, 0.7, 0.1]).all(axis=1).any()
    params = (0.5, 0.7, 0.04, 0.2, 0.1)
    changed = ~np.isclose(parameters_around("SE[0] + SE[1]", *params), params)
    assert len(changed) > 0
    assert not np.any(changed[:, :2].any(axis=1) & changed[:, 2:4].any(axis=1))


def test_a_cycle_that_is_soon_forgotten_is_found_from_a_wrong_period():
    X, y = decaying_cycle(0, 80, frequency=15.3, reach=0.06, amplitude=0, noise=0.05)
    posterior, scan = build("PER[0] * SE[0]", X, y)
    stuck = maximise(posterior, Point(np.log([1, 1, 1.5, 0.3, 1, 0.1])), max_iterations=300)
    truth = np.log([0.8, 1, 1 / 15.3, 0.06, 1, 0.05**2])
    planted = maximise(posterior, Point(truth), max_iterations=300).log_posterior
    assert stuck.log_posterior < planted - 5  # or the test shows nothing
    mode = find_modes(posterior, [Point(stuck.theta)], scan)[0]
    assert mode.log_posterior > planted - 1e-3  # two runs to one top
    # one cycle is remembered: the period is known to a tenth
    assert np.exp(mode.theta[2]) == pytest.approx(1 / 15.3, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_fit_with_a_period_that_takes_wiggles_for_noise_is_left(seed):
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, 60)
    K = 0.2**2 * np.exp(-((x[:, None] - x) ** 2) / (2 * 0.02**2)) + 1e-4 * np.eye(60)
    y = 2 * x + 0.3 * np.sin(2.5 * x) + np.sin(10 * np.pi * x)
    y += np.linalg.cholesky(K) @ rng.normal(size=60)
    posterior, _ = build("LIN[0] + PER[0] + SE[0]", x[:, None], (y - y.mean()) / y.std())
    line, cycle = posterior.centre[:2], np.log([1, 1, 0.2])
    ends = [
        maximise(posterior, Point([*line, *cycle, *np.log(others)]), max_iterations=300)
        for others in ([0.6, 0.3, 0.04], [0.02, 0.04, 0.001])  # the smooth term, and the noise
    ]
    assert ends[0].log_posterior < ends[1].log_posterior - 10  # or the test shows nothing
    known = WarmStart((0, 1, 2), ends[0].theta)
    search = ModeSearch(posterior.data, priors=PRIORS, seed=0)
    modes, _ = search(posterior, [[known]])
    assert modes[0].log_posterior > ends[1].log_posterior - 1e-3


def test_points_without_factor_are_no_candidates(pulses):
    negative = CallableKernel("NEG", lambda x, z, v: -1e6 - v + 0 * (x - z.T), (VARIANCE,))
    _, scan = build("PER[0] + NEG[0]", *pulses, base_kernels=[negative])
    assert scan.around(np.log([1.0, 1.0, 1.5, 1.0, 0.3])) == []


# the whole range of the first has 60 cycles, 3000 points at 0.03
@pytest.mark.parametrize(("period", "most"), [(0.005, 3000), (1e-7, 1000)])
def test_a_known_period_of_many_cycles_is_found_in_few_calls_or_left(period, most):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=120))
    y = np.sin(2 * np.pi * x / 0.0051) + 0.1 * rng.normal(size=120)
    season = Seasonal(period)
    posterior, scan = build(f"{season.name}[0]", x[:, None], y, base_kernels=[season])
    best = scan.around(np.log([1.0, 1.0, period, 0.1]))[0]
    if period == 0.005:  # two percent off, which is four cycles
        assert abs(1 / np.exp(best.theta[2]) - 1 / 0.0051) < 0.25  # cycles
    assert posterior.n_evaluations < most
