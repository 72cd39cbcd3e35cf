"""Estimates of the scores of neighbours: their likelihoods are exact, their order is useful."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from autokernel.data import Columns, RowNoise, Target
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluator
from autokernel.evidence.screening import MAX_ROWS, Screening
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import (
    Grammar,
    Leaf,
    arranged,
    factorings,
    normal_form,
    parse_expression,
    slots_of,
    uniform_prior,
    with_numbers,
)
from autokernel.inference import ExactLikelihood, LeafValues, TrainingData
from autokernel.kernels import BASE_KERNELS, OPERATORS, PRESETS, Operator, Role
from tests.own_kernels import OrnsteinUhlenbeck

PRIORS = PRESETS["default"]


def season_on_a_trend(n=60, n_columns=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, n_columns))
    y = np.sin(2 * np.pi * X[:, 0] / 0.2) + 2 * X[:, -1] + 0.1 * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


def grammar_of(n_columns=1, *, kernels=("SE", "LIN", "PER"), operators="+*", reduces=True):
    base_kernels = tuple(BASE_KERNELS[name] for name in kernels)
    signs = tuple(OPERATORS[symbol] for symbol in operators)
    return Grammar(base_kernels, signs, tuple(range(n_columns)), 6, reduces=reduces)


def rough_fit(text, data):
    return Evaluator(data, priors=PRIORS, seed=0).run_roughly(arranged(parse_expression(text)))


def screening_of(fit, data, first_values=None, n_samples=None):
    values = LeafValues(data)
    rows, n = (first_values or values, values), n_samples or len(data.y)
    return Screening(fit, rows, n_samples=n, priors=PRIORS, seed=0)


def screened(screening, neighbour, data):
    """Parameters of a neighbour, at which it has the value that is stated."""
    _, found, log_prior, _ = screening.screened(neighbour)
    exact = ExactLikelihood(neighbour, data).value(found.theta)
    assert found.log_posterior - log_prior == pytest.approx(exact, rel=1e-9, abs=1e-6), neighbour
    return found.theta


def search_of(x, y):
    return Evaluator(TrainingData(x, (y - y.mean()) / y.std()), priors=PRIORS, seed=0)


def neighbours(evaluator, parent, grammar, **options):
    changed = list(map(normal_form, grammar.changes(with_numbers(parent.expression))))
    return evaluator.estimate_changes(parent, changed, **options)


@pytest.mark.parametrize(
    ("text", "operators", "reduces"),
    [
        ("SE[0]", "+*", True),
        ("LIN[0] + PER[1] * SE[0]", "+*", True),
        ("(LIN[1] + SE[0]) * PER[0]", "+*", False),
        ("SE[0] + SE[0] * SE[1]", "+*", True),
        ("CP[0](SE[0], PER[0])", ("+", "CP"), False),
    ],
)
def test_every_operation_keeps_the_cycles_of_the_parent_and_has_the_value_of_its_point(
    text, operators, reduces
):
    n_columns = 1 if "CP" in operators else 2
    data = TrainingData(*season_on_a_trend(20, n_columns))
    fit = rough_fit(text, data)
    screening = screening_of(fit, data)
    old = slots_of(screening.parent)
    before = {one.number: fit.theta[at] for one, at in old if isinstance(one, Leaf)}
    grammar = grammar_of(n_columns, operators=operators, reduces=reduces)
    neighbours = list(grammar.changes(screening.parent))
    assert len(neighbours) > 15
    for neighbour in map(normal_form if reduces else arranged, neighbours):
        theta = screened(screening, neighbour, data)
        for node, entries in slots_of(neighbour):
            roles = [parameter.role for parameter in node.parameters]
            cycle = [role in (Role.PERIOD, Role.CYCLE_LENGTHSCALE) for role in roles]
            if isinstance(node, Leaf) and node.number is not None:
                kept = theta[entries][cycle]
                expected = before[node.number][cycle]
                np.testing.assert_array_equal(kept, expected, err_msg=str(neighbour))


@pytest.mark.parametrize("n_columns", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_best_of_the_first_three_is_nearly_the_best_of_all(n_columns):
    evaluator = Evaluator(TrainingData(*season_on_a_trend(60, n_columns)), priors=PRIORS, seed=0)
    parent = evaluator(parse_expression(f"PER[0] + SE[{n_columns - 1}]"))
    estimates = neighbours(evaluator, parent, grammar_of(n_columns))
    scores = [
        evaluator.run(evaluator.prepare(one.expression, [parent], one.start)).score
        for one in estimates
    ]
    assert max(scores[:3]) > max(scores) - 0.5
    assert spearmanr([one.score for one in estimates], scores).statistic > 0.7
    assert np.median(np.abs([e.score - s for e, s in zip(estimates, scores, strict=True)][:8])) < 1


class Refusing(OrnsteinUhlenbeck):
    """A kernel that cannot be computed."""

    def value(self, params, pairs):
        raise MemoryError("9 GiB")


def test_a_kernel_that_fails_is_left_out_and_nothing_is_estimated_after_the_deadline():
    evaluator = Evaluator(TrainingData(*season_on_a_trend(20)), priors=PRIORS, seed=0)
    parent = evaluator(parse_expression("SE[0]"))
    grammar = Grammar((BASE_KERNELS["SE"], Refusing()), (OPERATORS["+"],), (0,), 4, reduces=True)
    with pytest.warns(UserWarning, match="custom part .* failed: MemoryError: 9 GiB"):
        found = neighbours(evaluator, parent, grammar)
    assert [str(e.expression) for e in found] == ["SE[0] + SE[0]"]
    with pytest.raises(OutOfTimeError):
        neighbours(evaluator, parent, grammar, deadline=Deadline(0.0))


def test_estimates_on_some_of_the_rows_are_those_of_all():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = np.sin(9 * X[:, 0]) + 0.3 * X[:, 1] + 0.3 * rng.normal(size=300)
    evaluator = search_of(X, y)
    parent = evaluator(parse_expression("SE[0]"))
    best = neighbours(evaluator, parent, grammar_of(2, kernels=("SE", "LIN")))[0]
    score = evaluator.run(evaluator.prepare(best.expression, [parent], best.start)).score
    assert score > parent.score + 2
    # a gain is a sum over rows, with a variance of two nats for each nat
    error = np.sqrt(2 * (score - parent.score) * (300 / MAX_ROWS - 1))
    assert best.score == pytest.approx(score, abs=2 * error)


def test_a_season_is_seen_behind_a_term_that_wiggles_as_fast():
    """The residuals of SE hardly show it."""
    x = np.linspace(0, 1, 90)[:, None]
    K = np.exp(-((x - x.T) ** 2) / (2 * 0.03**2)) + 0.05**2 * np.eye(90)
    y = np.linalg.cholesky(K) @ np.random.default_rng(3).normal(size=90) + 0.6 * np.sin(
        2 * np.pi * x[:, 0] / 0.07
    )
    evaluator = search_of(x, y)
    parent = evaluator(parse_expression("SE[0]"))
    estimates = neighbours(evaluator, parent, grammar_of(kernels=("SE", "PER"), operators="+"))
    [found] = [one for one in estimates if str(one.expression) == "PER[0] + SE[0]"]
    assert np.exp(found.start.theta[2]) == pytest.approx(0.07, rel=0.01)
    fitted = evaluator(found.expression)
    assert found.score > parent.score + 2
    assert found.score == pytest.approx(fitted.score, abs=2)  # that of a few steps, with no scan


def test_a_pattern_of_months_is_seen_behind_a_term_that_follows_it():
    """Fewer rows show other periods, and the highest peak is not that of the best one."""
    x, rng = np.linspace(0, 1, 180)[:, None], np.random.default_rng(11)
    K = (1 + (x - x.T) ** 2 / (1.2 * 0.04**2)) ** -0.6 + 0.03**2 * np.eye(180)
    trend, of_month = rng.normal(size=180), np.random.default_rng(61).normal(size=12)
    y = np.linalg.cholesky(K) @ trend + 0.15 * np.tile(of_month, 15)
    evaluator = search_of(x, y)
    parent = evaluator(parse_expression("RQ[0]"))
    estimates = neighbours(evaluator, parent, grammar_of(kernels=("RQ", "PER"), operators="+"))
    [found] = [one for one in estimates if str(one.expression) == "PER[0] + RQ[0]"]
    assert found.score > parent.score + 100


@pytest.mark.parametrize("reverse", [False, True])
def test_a_common_factor_is_estimated_from_either_leaf(reverse):
    data = TrainingData(*season_on_a_trend(20, 2))
    fit = rough_fit("LIN[0] * SE[1] + PER[0] * SE[1]", data)
    screening = screening_of(fit, data)
    neighbour = normal_form([*factorings(screening.parent)][reverse])
    assert str(neighbour) == "(LIN[0] + PER[0]) * SE[1]"
    theta = screened(screening, neighbour, data)
    kept = slots_of(fit.expression)[-1 if reverse else 1].entries
    assert theta[slots_of(neighbour)[-1].entries][0] == fit.theta[kept][0]  # lengthscale


def test_a_cycle_is_seen_as_a_factor_of_what_has_followed_every_wave():
    """Beside a period the lengthscale, so far that of a wave, is some times as long."""
    x = np.linspace(0, 1, 100)
    distances = np.abs(x[:, None] - x)
    K = np.exp(-2 * np.sin(np.pi * distances / 0.1) ** 2 - (distances / 0.15) ** 2 / 2)
    y = np.linalg.cholesky(K + 0.01 * np.eye(100)) @ np.random.default_rng(5).normal(size=100)
    evaluator = search_of(x[:, None], y)
    parent = evaluator(parse_expression("SE[0]"))
    estimates = neighbours(evaluator, parent, grammar_of(kernels=("SE", "PER"), operators="*"))
    [found] = [one for one in estimates if str(one.expression) == "PER[0] * SE[0]"]
    fitted = evaluator(found.expression)
    assert fitted.score > parent.score + 30
    assert found.score == pytest.approx(fitted.score, abs=5)


class Squared(Operator):
    """The square of a sum, which is not linear in its operands."""

    symbol = "SQ"

    def value(self, at):
        return (at.values[0] + at.values[1]) ** 2

    def adjoints(self, at, adjoint):
        for _ in at.values:
            yield 2 * adjoint * (at.values[0] + at.values[1])


def test_an_operator_that_is_not_linear_is_computed_as_a_whole():
    data = TrainingData(*season_on_a_trend(20))
    screening = screening_of(rough_fit("SE[0]", data), data)
    grammar = Grammar((BASE_KERNELS["SE"],), (Squared(),), (0,), 3, reduces=False)
    (grown, *_) = grammar.changes(screening.parent)
    screened(screening, arranged(grown), data)


def test_estimates_on_other_scales_are_near_the_scores():
    """Of an exchange of the scale of a column in all leaves, and of that of the target."""
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(0, 4, 60))
    y = np.exp(np.sin(np.log(x)) + 0.1 * rng.normal(size=60))
    X, noise = np.column_stack([x, rng.uniform(size=60)]), RowNoise(np.ones(60))
    columns, target = Columns.of_names(None, 2).of_rows(X), Target.of(y, noise)
    data = TrainingData(columns.inputs(X, first_row=0), target.forward(y), noise, target)
    grammar = replace(
        grammar_of(2, kernels=("SE", "LIN")),
        scales=(("identity", "log"), ("identity",)),
        targets=("identity", "log"),
    )
    evaluator = Evaluator(data, priors=PRIORS, seed=0)
    fit = evaluator(parse_expression("SE[0] + LIN[1]"))

    rescaled = map(arranged, grammar.rescalings(with_numbers(fit.expression)))
    found = evaluator.estimate_changes(fit, list(rescaled))
    assert len(found) == 2
    for one in found:
        assert one.score == pytest.approx(evaluator(one.expression).score, abs=3)
    assert found[0].score > fit.score + 10


def test_starts_on_some_of_the_rows_have_the_log_posterior_that_all_rows_are_expected_to_have():
    """The rows are independent, nearly, so that a gain is proportional to their number."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    y = np.sin(9 * X[:, 0]) + 2 * X[:, 1] + 0.3 * rng.normal(size=200)
    evaluator = search_of(X, y)
    data, fit = evaluator.data, evaluator(parse_expression("SE[0]"))
    by_all = screening_of(fit, data)
    some = LeafValues(data.take(np.arange(0, 200, 2)))
    by_some = screening_of(fit, data, first_values=some)
    expression = arranged(by_all.parent + Leaf(BASE_KERNELS["LIN"], 1))
    [expected, found] = [one.screened(expression).point for one in (by_all, by_some)]
    gain = expected.log_posterior - fit.log_posterior
    assert gain > 30
    assert found.log_posterior - fit.log_posterior == pytest.approx(gain, rel=0.2)
    [once] = by_all.estimates([expression], uniform_prior)
    thrice = screening_of(fit, data, n_samples=600)
    [one] = thrice.estimates([expression], uniform_prior)
    assert one.score - fit.score == pytest.approx(3 * (once.score - fit.score), rel=0.1)


@pytest.mark.parametrize(("text", "expected"), [("SE[0] * SE[1]", 1.0), ("SE[1]", 0.7)])
def test_a_new_factor_has_a_variance_of_one_and_a_leaf_in_place_of_another_one_that_of_it(
    text, expected
):
    data = TrainingData(*season_on_a_trend(20, 2))
    fit = replace(rough_fit("SE[0]", data), theta=np.log([0.1, 0.7, 0.02]))
    screening = screening_of(fit, data)
    [changed] = [n for n in grammar_of(2).changes(screening.parent) if str(n) == text]
    found = screening.screened(normal_form(changed)).point.theta
    assert np.exp(found[-2]) == pytest.approx(expected)  # the last but the noise
