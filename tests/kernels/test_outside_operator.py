"""An operator that no module knows goes everywhere that ``+`` and ``*`` go."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autokernel import AutoKernelGPRegressor, ExpressionSyntaxError, evaluate_kernel
from autokernel.evidence import Evaluator
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.scan import CoordinateScan
from autokernel.evidence.starts import DataScales
from autokernel.expression import (
    Expression,
    Grammar,
    Operation,
    align,
    arrange,
    node_swaps,
    parse_expression,
    slots_of,
    splits,
    theta_order,
)
from autokernel.inference import Covariance, ExactLikelihood, TrainingData
from autokernel.inference.packed import unpack
from autokernel.kernels import ADD, FEW_COLUMNS, MULTIPLY, Operator
from autokernel.search import STRATEGIES
from autokernel.search.arc import ArcKernel
from autokernel.search.boms import HellingerKernel
from autokernel.search.sot import SOTKernel
from tests.batteries import numerical_gradient, reshuffled, seeds
from tests.fits import assert_predicts_as_its_kernel
from tests.kernels.gate import EXACT_GATE, GATE, Gate, fall
from tests.search.stand_ins import QUICK

OPERATORS = (ADD, MULTIPLY, GATE)
GRAMMAR = Grammar(FEW_COLUMNS, OPERATORS, columns=(0, 1), max_leaves=5)


def read(text: str) -> Expression:
    return parse_expression(text, operators=[GATE, EXACT_GATE])


@st.composite
def gated(draw: st.DrawFn) -> Expression:
    """Draw a walk of the grammar, which joins subtrees by all three operators."""
    rng = np.random.default_rng(draw(seeds))
    leaf = GRAMMAR.leaves[int(rng.integers(len(GRAMMAR.leaves)))]
    return GRAMMAR.random_walk(leaf, int(rng.integers(1, 6)), rng)


def broken_line(n_samples: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """A wave up to 0.6, then a straight line."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, n_samples)
    y = np.where(x < 0.6, np.sin(40 * x), 4 * (x - 0.8)) + 0.05 * rng.normal(size=n_samples)
    return x[:, None], y


@given(expression=gated())
def test_printing_and_parsing_are_inverse_to_each_other(expression: Expression) -> None:
    assert read(str(expression)) == expression
    names = ["time", "a, (b)"]
    text = expression.to_text(names)
    assert parse_expression(text, names, operators=[GATE]) == expression


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GATE(SE[0], LIN[0])", "expected the column of GATE in square brackets"),
        ("GATE[0](SE[0])", "expected ',': GATE has 2"),
        ("GATE[0](SE[0], LIN[0], PER[0])", "expected ')'"),
        ("GATE[0] SE[0]", "expected '(': GATE has 2"),
    ],
)
def test_wrong_text_is_refused_with_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as error:
        read(text)
    assert message in str(error.value)


def test_without_the_operator_its_name_is_that_of_no_base_kernel() -> None:
    with pytest.raises(ExpressionSyntaxError, match="unknown base kernel 'GATE'"):
        parse_expression("GATE[0](SE[0], LIN[0])")


def test_operands_do_not_change_places_but_terms_inside_them_do() -> None:
    assert read("GATE[0](SE[0], LIN[0])").canonical != read("GATE[0](LIN[0], SE[0])").canonical
    assert (
        read("GATE[0](SE[0] + LIN[0], PER[0])").canonical
        == read("GATE[0](LIN[0] + SE[0], PER[0])").canonical
    )
    assert (
        read("SE[1] + GATE[0](SE[0], LIN[0])").canonical
        == read("GATE[0](SE[0], LIN[0]) + SE[1]").canonical
    )


@given(expression=gated())
def test_arranging_tells_where_each_node_comes_from(expression: Expression) -> None:
    arranged, nodes = arrange(expression)
    assert sorted(nodes) == list(range(len(expression.nodes)))
    for node, original in zip(arranged.nodes, nodes, strict=True):
        assert node.canonical == expression.nodes[original].canonical
    assert arrange(arranged).expression == arranged


def test_the_parameters_of_an_operator_stand_before_those_of_its_operands() -> None:
    expression = read("SE[1] + GATE[0](LIN[0], SE[0])")
    names = [p.name for slot in slots_of(expression) for p in slot.node.parameters]
    se = ["lengthscale", "variance"]
    assert names == [*se, "location", "variance", "offset", *se]
    assert [slot.entries.start for slot in slots_of(expression)] == [0, 2, 3, 5]
    assert theta_order(expression, [1, 2, 3, 0]).tolist() == [2, 3, 4, 5, 6, 0, 1, 7]


def test_the_grammar_joins_in_both_places_and_on_every_column() -> None:
    leaf = read("SE[0]")
    found = {text.canonical for text in GRAMMAR.neighbours(leaf)}
    for text in ("GATE[0](SE[0], LIN[1])", "GATE[1](LIN[1], SE[0])", "GATE[1](SE[0], SE[0])"):
        assert text in found
    assert GRAMMAR.spans(read("GATE[1](SE[0], LIN[1])"), FEW_COLUMNS)
    assert not GRAMMAR.spans(read("GATE[2](SE[0], LIN[1])"), FEW_COLUMNS)
    assert not Grammar(FEW_COLUMNS, (ADD,), (0, 1), 5).spans(
        read("GATE[1](SE[0], LIN[1])"), FEW_COLUMNS
    )


def test_splits_take_terms_out_of_its_operands_and_keep_its_parameter() -> None:
    expression = read("GATE[0](SE[0] + LIN[0], PER[0])")
    found = {str(split.term): split for split in splits(expression)}
    assert set(found) == {"SE[0]", "LIN[0]"}
    assert found["SE[0]"].rest == read("GATE[0](LIN[0], PER[0])")
    assert found["SE[0]"].rest_nodes == (0, 2, 3)
    assert found["SE[0]"].term_nodes == (1,)


def test_alignment_pairs_the_operator_and_each_operand_in_its_place() -> None:
    one, other = read("GATE[0](SE[0], LIN[0]) + PER[0]"), read("GATE[0](SE[0], LIN[0])")
    assert align(one, other) == [(0, 0), (1, 1), (2, 2)]
    assert align(other, read("GATE[0](LIN[0], SE[0])")) == [(0, 0)]
    assert align(other, read("GATE[1](SE[0], LIN[0])")) == []
    assert align(other, read("SE[0]")) == [(1, 0)]
    assert align(read("LIN[0]"), other) == [(0, 2)]


def test_equal_operands_are_no_symmetry() -> None:
    assert node_swaps(read("GATE[0](SE[0], SE[0])")) == []
    assert node_swaps(read("GATE[0](SE[0] + SE[0], LIN[0])")) == [(0, 2, 1, 3)]


@given(expression=gated(), seed=seeds)
def test_the_engine_computes_the_definition(expression: Expression, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (7, 2))
    data = TrainingData(X, np.zeros(7))
    covariance = Covariance(expression, data.pairs)
    params = np.exp(rng.uniform(-1, 1, len(covariance.parameters)))
    values = iter([params[entries] for _, entries in slots_of(expression)])

    def dense(tree: Expression) -> np.ndarray:
        if not isinstance(tree, Operation):
            single = Covariance(tree, data.pairs)
            return unpack(single.forward(next(values)), 7)
        own = next(values) if tree.operator is GATE else None
        left, right = (dense(operand) for operand in tree.operands)
        if tree.operator is GATE:
            s = fall(X[:, tree.column], own[0])
            return np.outer(s, s) * left + np.outer(1 - s, 1 - s) * right
        return left + right if tree.operator == ADD else left * right

    expected = dense(expression)
    # products of up to five factors, each right to some 1e-14 (the cosines of PER)
    np.testing.assert_allclose(
        unpack(covariance.forward(params), 7), expected, rtol=1e-11, atol=1e-13 * expected.max()
    )


@pytest.mark.parametrize("operator", ["GATE", "EXACTGATE"])
@given(seed=seeds)
def test_the_gradient_of_the_likelihood_equals_finite_differences(operator: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = "SE[1] * XX[0](SE[0] + LIN[0], XX[1](LIN[1], RQ[0])) + LIN[0]".replace("XX", operator)
    data = TrainingData(rng.uniform(0, 1, (12, 2)), rng.normal(size=12))
    likelihood = ExactLikelihood(read(text), data)
    theta = rng.uniform(-1, 0.5, len(likelihood.parameters))
    expected = numerical_gradient(likelihood.value, theta)
    found = likelihood.value_and_gradient(theta)[1]
    # differences are good to 1e-8 (see numerical_gradient), those of GATE itself as well
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


def test_a_fit_finds_the_location_and_prefers_the_right_order() -> None:
    X, y = broken_line()
    right = evaluate_kernel("GATE[0](SE[0], LIN[0])", X, y, operators=[GATE])
    wrong = evaluate_kernel("GATE[0](LIN[0], SE[0])", X, y, operators=[GATE])
    assert right.status == wrong.status == "ok"
    assert right.score > wrong.score + 10
    location = right.parameters[0]
    assert (location.leaf, location.name) == (None, "location")
    assert location.value == pytest.approx(0.6, abs=0.1)


@given(expression=gated(), seed=seeds)
def test_all_ways_to_write_a_kernel_have_one_tree(expression: Expression, seed: int) -> None:
    def shuffled(tree: Expression, rng: np.random.Generator) -> Expression:
        if isinstance(tree, Operation) and tree.operator is GATE:
            return tree.join([shuffled(operand, rng) for operand in tree.operands])
        return reshuffled(tree, rng) if not _holds_gate(tree) else tree

    other = shuffled(expression, np.random.default_rng(seed))
    assert arrange(other).expression == arrange(expression).expression


def _holds_gate(tree: Expression) -> bool:
    return any(isinstance(e, Operation) and e.operator is GATE for e in tree.subtrees())


def test_a_warm_start_takes_over_the_parameter_of_the_operator() -> None:
    X, y = broken_line(30)
    evaluator = Evaluator(X, y, priors={}, seed=0)
    known = evaluator(read("GATE[0](SE[0], LIN[0])"))
    job = evaluator.prepare(read("GATE[0](SE[0], LIN[0]) + PER[0]"), [known])
    ((start, *_), *_) = job.warm_starts
    assert sorted(start.nodes) == [0, 1, 2]
    np.testing.assert_array_equal(start.theta, known.theta)
    assert evaluator.run(job).log_likelihood >= known.log_likelihood - 0.1


def test_sot_tells_the_operands_apart_and_counts_what_is_shared() -> None:
    one, other = read("GATE[0](SE[0], LIN[0])"), read("GATE[0](LIN[0], SE[0])")
    _, paths, subtrees = SOTKernel().distances([one], [other])
    assert paths == 1
    assert subtrees == pytest.approx(1 / 3)
    _, paths, _ = SOTKernel().frequencies(one)
    assert list(paths) == ["GATE[0]0:SE[0]", "GATE[0]1:LIN[0]"]


@given(trees=st.lists(gated(), min_size=8, max_size=12))
def test_distances_between_expressions_are_those_of_positive_kernels(trees: list) -> None:
    X = np.random.default_rng(0).uniform(size=(15, 2))
    for distances in (
        *SOTKernel().distances(trees),
        2 * ArcKernel().distances(trees).sum(axis=0),
        *HellingerKernel(X, {}, n_samples=5).distances(trees),
    ):
        np.testing.assert_array_equal(distances, distances.T)
        assert np.diag(distances).max() == 0
        assert np.linalg.eigvalsh(np.exp(-distances)).min() > -1e-10


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_searches_with_it(name: str) -> None:
    X, y = broken_line(25)
    model = AutoKernelGPRegressor(
        base_kernels=("SE", "LIN"),
        operators=("+", GATE),
        strategy=QUICK[name],
        n_iter=12,
        max_leaves=3,
        averaging=None,
        random_state=0,
    ).fit(X, y)
    history = model.search_history_
    gates = [text for text in history["kernel"] if "GATE" in text]
    assert gates
    assert all(status == "ok" for status in history["status"])
    model.refit(X, y, kernel=gates[0])
    X_new = np.linspace(-0.1, 1.1, 7)[:, None]
    assert_predicts_as_its_kernel(model, X, y, X_new)


def test_workers_and_memory_carry_it(tmp_path) -> None:
    X, y = broken_line(20)
    settings = {"operators": ("+", GATE), "base_kernels": ("SE",), "n_iter": 1}
    fits = [
        AutoKernelGPRegressor(**settings, max_leaves=2, random_state=0, **more).fit(X, y)
        for more in ({}, {"n_jobs": 2, "memory": tmp_path}, {"memory": tmp_path})
    ]
    scores = [fit.search_history_["score"] for fit in fits]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


class Three(Operator):
    """The sum of three kernels, as a word."""

    symbol = "SUM3"
    n_operands = 3

    def value(self, at):
        return at.values[0] + at.values[1] + at.values[2]

    def adjoints(self, at, adjoint):
        yield from (adjoint, adjoint, adjoint)


def test_three_operands_keep_to_the_largest_number_of_leaves() -> None:
    X, y = broken_line(15)
    settings = {"operators": (Three(),), "base_kernels": ("SE", "LIN"), "random_state": 0}
    for max_leaves, largest in ((2, 1), (3, 3), (4, 3)):
        model = AutoKernelGPRegressor(**settings, max_leaves=max_leaves, n_iter=2).fit(X, y)
        assert model.search_history_["n_leaves"].max() == largest


class Steep(Gate):
    """Gates of one symbol that differ in an attribute."""

    def __init__(self, steepness: float) -> None:
        self.steepness = steepness


def test_operators_are_told_apart_by_their_attributes() -> None:
    X, y = broken_line(10)
    evaluator = Evaluator(X, y, priors={}, seed=0)
    trees = [
        parse_expression("GATE[0](SE[0], LIN[0])", operators=[Steep(steepness)])
        for steepness in (8.0, 40.0)
    ]
    assert Steep(8.0) == Steep(8.0) != Steep(40.0)
    assert evaluator.key(evaluator.prepare(trees[0])) != evaluator.key(evaluator.prepare(trees[1]))
    with pytest.raises(ValueError, match="operators must have different symbols"):
        AutoKernelGPRegressor(operators=(Steep(8.0), Steep(40.0))).fit(X, y)


class Scanned(Gate):
    """A gate whose location is scanned, as one mode of it hides many others."""

    has_many_modes = True
    parameters = (replace(Gate.parameters[0], grid=tuple(np.linspace(0.05, 0.95, 19))),)


def test_a_parameter_with_a_grid_is_scanned_where_there_are_many_modes() -> None:
    X, y = broken_line()
    expression = parse_expression("GATE[0](SE[0], LIN[0])", operators=[Scanned()])
    data = TrainingData(X, y)
    posterior = LogPosterior(ExactLikelihood(expression, data), priors={})
    theta = np.log([0.1, 0.05, 0.5, 1.0, 1.0, 0.01])
    found = CoordinateScan(posterior, DataScales(data), [0]).around(theta)
    best = max(
        np.linspace(0.05, 0.95, 19), key=lambda a: posterior.value(np.append(np.log(a), theta[1:]))
    )
    assert np.exp(found[0].theta[0]) == pytest.approx(best)


def test_an_operator_with_an_impossible_declaration_is_refused() -> None:
    class Commuting(type(GATE)):
        commutes = True

    with pytest.raises(ValueError, match="commutes, and so must have no parameters"):
        AutoKernelGPRegressor(operators=("+", Commuting())).fit(*broken_line(10))
    with pytest.raises(TypeError, match=r"got a class: call Gate\(\)"):
        AutoKernelGPRegressor(operators=("+", Gate)).fit(*broken_line(10))
    with pytest.raises(ValueError, match="operators must be a selection of"):
        AutoKernelGPRegressor(operators=("-",)).fit(*broken_line(10))
