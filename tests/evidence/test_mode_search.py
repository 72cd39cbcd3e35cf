"""Kernels that begin at their parts, and at known fits."""

from dataclasses import replace

import numpy as np
import pytest

from autokernel import evaluate_kernel, parse_expression
from autokernel.evidence import Evaluation, Evaluator
from autokernel.evidence import mode_search as modes_module
from autokernel.evidence.mode_search import ModeSearch, find_modes, random_stream
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import Expression, arrange, slots_of
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import check_priors

PRIORS = check_priors("paper")


def decaying_cycle(seed, n_samples, *, reach=0.4, short=0.03, amplitude=0.15, noise=0.003):
    """Smooth cycles of 1 / 9.3 that are forgotten over ``reach``, beside shorter wiggles."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n_samples)
    difference = x[:, None] - x
    wave = np.sin(np.pi * 9.3 * difference)
    K = np.exp(-(wave**2) / (2 * 0.8**2) - difference**2 / (2 * reach**2))
    K += amplitude**2 * np.exp(-(difference**2) / (2 * short**2)) + noise**2 * np.eye(n_samples)
    y = np.linalg.cholesky(K) @ rng.normal(size=n_samples)
    return x[:, None], (y - y.mean()) / y.std()


@pytest.fixture(scope="module")
def series():
    return decaying_cycle(1, 30)


def evaluator(series, seed=0):
    return Evaluator(*series, priors=PRIORS, seed=seed)


def read(text: str) -> Expression:
    return parse_expression(text)


def same(one: Evaluation, other: Evaluation) -> bool:
    """Whether two evaluations are the same to the last bit, and as dear."""
    return (
        one.theta.tobytes() == other.theta.tobytes()
        and one.score == other.score
        and one.n_evaluations == other.n_evaluations
    )


@pytest.fixture
def calls(monkeypatch):
    """A list that grows with every call of a likelihood."""
    made = []
    for name in ("value", "value_and_gradient"):
        original = getattr(LogPosterior, name)

        def counting(self, theta, original=original):
            made.append(self.expression.canonical)
            return original(self, theta)

        monkeypatch.setattr(LogPosterior, name, counting)
    return made


def test_parts_find_what_the_whole_misses(monkeypatch):
    data, seed = TrainingData(*decaying_cycle(3, 70)), 3
    expression = arrange(read("LIN[0] + PER[0] * SE[0] + SE[0]"))[0]
    posterior = LogPosterior(ExactLikelihood(expression, data), priors=PRIORS)

    def best():
        found = ModeSearch(data, priors=PRIORS, seed=seed)(posterior)
        return found[0][0].log_posterior

    by_parts = best()
    monkeypatch.setattr(modes_module, "splits", lambda expression: [])
    assert by_parts > best() + 2


def test_a_kernel_begins_at_its_parts_each_leaf_at_its_own_parameters(series, monkeypatch):
    began, ended = {}, {}

    def noting(posterior, starts, *arguments, **options):
        modes = find_modes(posterior, starts, *arguments, **options)
        began[posterior.expression.canonical] = starts
        ended[posterior.expression.canonical] = modes[0].theta
        return modes

    monkeypatch.setattr(modes_module, "find_modes", noting)
    evaluator(series)(read("(LIN[0] + RQ[0]) * PER[0]"))
    per_rq, lin = ended["PER[0] * RQ[0]"], ended["LIN[0]"]  # PER comes before RQ here
    expected = [*lin[:2], *per_rq[3:6], *per_rq[:3]]
    noises = [
        theta[-1]
        for theta, curvature in ((p.theta, p.curvature) for p in began["(LIN[0] + RQ[0]) * PER[0]"])
        if np.array_equal(theta[:-1], expected) and curvature is not None
    ]
    assert noises == [min(per_rq[-1], lin[-1])]
    # without the leaf, what it has is drawn, and the noise lowered in one of two draws
    alone = [
        theta[-1]
        for theta in (p.theta for p in began["(LIN[0] + RQ[0]) * PER[0]"])
        if np.array_equal(theta[2:-1], expected[2:]) and not np.array_equal(theta[:2], lin[:2])
    ]
    assert alone[0] == per_rq[-1]
    assert len(alone) == 2
    assert alone[1] < alone[0]


def test_a_result_and_its_cost_do_not_depend_on_what_was_evaluated_before(series):
    texts = ("PER[0] * SE[0] + SE[0]", "PER[0] * SE[0]", "SE[0] + PER[0]")
    alone = [evaluator(series)(read(text)) for text in texts]
    known = alone[1:]
    helped = evaluator(series)(read("RQ[0] + PER[0] * SE[0]"), known)
    one, other = evaluator(series), evaluator(series)
    forth = [one(read(text)) for text in texts]
    back = [other(read(text)) for text in reversed(texts)][::-1]
    assert all(map(same, forth, alone))
    assert all(map(same, back, alone))
    assert same(one(read("RQ[0] + PER[0] * SE[0]"), known), helped)


def test_all_calls_are_counted_those_of_a_part_of_two_parts_once(series, calls):
    evaluator(series, seed=1)(read("LIN[0] + PER[0]"))  # what other seeds found is of no account
    calls.clear()
    fit = evaluator(series)(read("LIN[0] + PER[0] + SE[0]"))
    assert fit.n_evaluations == len(calls)
    assert {"PER[0]", "LIN[0] + PER[0]", "PER[0] + SE[0]", "LIN[0]", "SE[0]"} < set(calls)


def test_calls_on_a_sample_of_many_rows_are_counted_too(calls):
    X, y = decaying_cycle(0, 260)
    assert evaluator((X, y))(read("LIN[0] + PER[0]")).n_evaluations == len(calls)


def test_a_kernel_without_a_period_needs_no_parts(series, calls):
    evaluator(series)(read("LIN[0] * SE[0] + SE[0]"))
    assert len(set(calls)) == 1


def test_random_numbers_are_of_one_seed_kernel_and_purpose():
    texts, purposes = ("SE[0] + LIN[0]", "SE[0]"), ("whole", "part")
    draws = [
        random_stream(seed, read(text), purpose).uniform()
        for seed in (0, 1)
        for text in texts
        for purpose in purposes
    ]
    assert len(set(draws)) == 8
    assert draws[0] == random_stream(0, read("LIN[0] + SE[0]"), "whole").uniform()


@pytest.mark.parametrize(
    ("parent", "added"),
    [("PER[0] * SE[0]", "LIN[0]"), ("SE[0]", "PER[0]"), ("LIN[0]", "PER[0]")],
)
def test_a_kernel_gets_no_lower_than_where_known_fits_have_left_it_and_at_less_cost(
    parent, added, series
):
    known = [evaluator(series)(read(text)) for text in (parent, added)]
    child = read(f"{parent} + {added}")
    cold, helped = evaluator(series)(child), evaluator(series)(child, known)
    assert helped.n_evaluations < cold.n_evaluations / 2
    assert helped.log_posterior > cold.log_posterior - 0.5  # or the top beside the highest
    thetas = [fit.theta for fit in known]
    begins = [*thetas[0][:-1], *thetas[1][:-1], min(theta[-1] for theta in thetas)]
    posterior = LogPosterior(ExactLikelihood(child, TrainingData(*series)), priors=PRIORS)
    assert helped.log_posterior >= posterior.value(np.array(begins))
    assert helped.log_likelihood > known[0].log_likelihood - 1  # a term may be of no account


def test_the_maximum_of_a_known_fit_is_not_lost():
    # not to be found from four draws and without a scan
    X, y = decaying_cycle(1, 50)
    parent = evaluator((X, y))(read("PER[0] * SE[0] + SE[0]"))
    helped = evaluator((X, y))(read("RQ[0] * (SE[0] + SE[0] * PER[0])"), [parent])
    unhelped = evaluator((X, y))(
        read("RQ[0] * (SE[0] + SE[0] * PER[0])"), [replace(parent, theta=0 * parent.theta)]
    )
    assert helped.log_likelihood > parent.log_likelihood - 1
    assert unhelped.log_likelihood < helped.log_likelihood - 3


def test_what_is_known_is_taken_over_leaf_by_leaf_however_both_were_written(series):
    fits = [evaluator(series)(read(text)) for text in ("PER[0] * SE[0]", "SE[0] * PER[0]")]
    texts = ("LIN[0] + PER[0] * SE[0]", "SE[0] * PER[0] + LIN[0]")
    one, *others = [evaluator(series)(read(text), [fit]) for fit in fits for text in texts]
    for other in others:
        assert other.score == one.score
        assert other.n_evaluations == one.n_evaluations


def test_a_failed_fit_or_one_with_nothing_in_common_changes_nothing(series):
    text = read("LIN[0] + PER[0]")
    cold = evaluator(series)(text)
    sound = evaluator(series)(read("PER[0]"))
    failed = replace(sound, score=-np.inf, status="a saddle")
    assert same(evaluator(series)(text, [failed]), cold)
    assert same(evaluator(series)(text, [evaluator(series)(read("RQ[0] * SE[0]"))]), cold)
    assert not same(evaluator(series)(text, [sound]), cold)  # or the test shows nothing


def test_roles_are_sought_for_new_leaves_alone(series, calls):
    known = [evaluator(series)(read("LIN[0] + PER[0] * SE[0]"))]
    calls.clear()
    evaluator(series)(read("LIN[0] + PER[0] * SE[0] + LIN[0]"), known)
    few = len(calls)  # LIN plays but one role
    calls.clear()
    evaluator(series)(read("LIN[0] + PER[0] * SE[0] + PER[0]"), known)
    assert len(calls) > 2 * few


def test_a_new_term_finds_what_rows_with_the_same_value_have_in_common():
    # on the subsample of the rows hardly two have the same value
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(150), 2)
    X = np.column_stack([rng.uniform(size=300), rng.uniform(size=150)[group]])
    y = np.sin(6 * X[:, 0]) + 0.5 * rng.normal(size=150)[group] + 0.2 * rng.normal(size=300)
    parent = evaluator((X, y))(read("SE[0]"))
    child = evaluator((X, y))(read("SE[0] + SE[1]"), [parent])
    assert child.log_evidence > parent.log_evidence + 10
    values = {(p.kernel, p.name): p.value for p in child.parameters}
    assert values["SE[1]", "lengthscale"] < 0.01


def test_each_leaf_of_a_sum_is_tried_as_what_explains_the_noise(series, monkeypatch):
    tried = []

    def noting(posterior, starts, scan, *, variants, **options):
        modes = find_modes(posterior, starts, scan, variants=variants, **options)
        if variants is not None:
            tried.append((modes[0], variants(modes[0])))
        return modes

    monkeypatch.setattr(modes_module, "find_modes", noting)
    fit = evaluator(series)(read("SE[0] * LIN[0] + RQ[0] + SE[0] + LIN[0]"))
    ((mode, starts),) = tried
    changed = [np.flatnonzero(start.theta != mode.theta).tolist() for start in starts]
    slots = slots_of(arrange(fit.expression)[0])
    terms = [slot.entries for slot in slots if slot.node.canonical in ("RQ[0]", "SE[0]")]
    *_, noise = range(len(mode.theta))
    possible = [[entries.start, entries.start + 1, noise] for entries in terms]
    assert len(changed) == 2  # the terms RQ and SE, not LIN and no factor of the product
    assert all(entries in possible for entries in changed)
    for start, entries in zip(starts, changed, strict=True):
        length, variance, _ = np.exp(start.theta[entries])
        assert length == pytest.approx(0.1 / 29)  # a tenth of the spacing
        assert variance == pytest.approx(0.75 * np.exp(mode.theta[-1]))
        assert np.exp(start.theta[-1] - mode.theta[-1]) == pytest.approx(0.25)
        assert start.curvature is mode.curvature


@pytest.mark.parametrize("seed", [2, 4, 6])  # of 0 to 11, one of five that other starts miss
def test_what_rows_of_the_same_value_have_in_common_is_found_from_nothing(seed):
    rng = np.random.default_rng(seed)
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
