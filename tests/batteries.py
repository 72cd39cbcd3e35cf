"""What several test files share: random expressions, parameters and data, and batteries.

A battery is one set of property tests that runs on every instance of a kind of thing, so that a
new instance, such as another base kernel, is tested by the line that registers it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Kernel

from autokernel import AutoKernelGPRegressor, evaluate_kernel
from autokernel.data.scaling import Scaling
from autokernel.expression import (
    Expression,
    Grammar,
    Leaf,
    Operation,
    n_kernel_params,
    parse_expression,
)
from autokernel.inference.covariance import Covariance
from autokernel.inference.packed import unpack
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import (
    ADD,
    BASE_KERNELS,
    MULTIPLY,
    PRESETS,
    BaseKernel,
    ExponentialKernel,
    Operator,
    Role,
)
from autokernel.model import to_sklearn
from autokernel.typing import FloatArray

EPS = float(np.finfo(float).eps)
GRAMMAR = Grammar(tuple(BASE_KERNELS.values()), (ADD, MULTIPLY), columns=(0, 1, 2), max_leaves=6)

seeds = st.integers(0, 2**32 - 1)


@st.composite
def grammars(draw: st.DrawFn) -> Grammar:
    """Draw a grammar over some of the base kernels, operators and columns."""

    def some(values: tuple) -> st.SearchStrategy[tuple]:
        return st.lists(st.sampled_from(values), min_size=1, unique=True).map(tuple)

    return Grammar(
        draw(some(tuple(BASE_KERNELS.values()))),
        draw(some((ADD, MULTIPLY))),
        columns=draw(some((0, 1, 2, 10))),
        max_leaves=draw(st.integers(1, 4)),
    )


@st.composite
def expressions(
    draw: st.DrawFn, grammar: Grammar = GRAMMAR, *, max_leaves: int | None = None
) -> Expression:
    """Draw any tree over the leaves and operators of a grammar, within its number of leaves."""

    def tree(n_leaves: int) -> Expression:
        if n_leaves == 1:
            return draw(st.sampled_from(grammar.leaves))
        n_left = draw(st.integers(1, n_leaves - 1))
        operator = draw(st.sampled_from(grammar.operators))
        column = draw(st.sampled_from(grammar.columns)) if operator.acts_on_column else None
        return Operation(operator, tree(n_left), tree(n_leaves - n_left), column=column)

    return tree(draw(st.integers(1, max_leaves or grammar.max_leaves)))


def flat_terms(expression: Expression, operator: Operator) -> list[Expression]:
    """Terms of a chain of one operator, from left to right."""
    if isinstance(expression, Operation) and expression.operator == operator:
        return [term for e in expression.operands for term in flat_terms(e, operator)]
    return [expression]


def reshuffled(expression: Expression, rng: np.random.Generator) -> Expression:
    """Put the terms of every chain in another order and group them in another way."""
    if isinstance(expression, Leaf):
        return expression
    if not expression.operator.commutes:
        return expression.with_operands([reshuffled(e, rng) for e in expression.operands])
    terms = [reshuffled(e, rng) for e in flat_terms(expression, expression.operator)]
    rng.shuffle(terms)
    while len(terms) > 1:
        i = rng.integers(len(terms) - 1)
        terms[i : i + 2] = [Operation(expression.operator, *terms[i : i + 2])]
    return terms[0]


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Problem:
    """A kernel with its parameters and data to explain."""

    expression: Expression
    theta: FloatArray  # (n_params,), noise variance last
    X: FloatArray  # (n_samples, n_features)
    y: FloatArray  # (n_samples,)


@st.composite
def problems(draw: st.DrawFn, *, n_features: int) -> Problem:
    """Draw a random expression, theta, X and y.

    The parameters stay within a factor ``e`` of 1 and the noise above ``exp(-4)``, so that the
    covariance has a condition number below about 1e7 and two ways to compute it agree.
    """
    grammar = Grammar(
        GRAMMAR.base_kernels, GRAMMAR.operators, tuple(range(n_features)), max_leaves=6
    )
    expression = draw(expressions(grammar))
    n_samples = draw(st.sampled_from((12, 11, 25, 2, 1)))  # odd and even: packed differently
    rng = np.random.default_rng(draw(seeds))
    theta = np.append(rng.uniform(-1, 1, n_kernel_params(expression)), rng.uniform(-4, 0))
    X = rng.uniform(-1, 1, (n_samples, n_features))
    return Problem(expression, theta, X, rng.standard_normal(n_samples))


def covariance(expression: Expression, params: FloatArray, X: FloatArray) -> FloatArray:
    """Noise-free covariance matrix, computed the way the engine does."""
    of_pairs = Covariance(
        expression, lambda column: PackedPairs(np.ascontiguousarray(X[:, column]))
    )
    return unpack(of_pairs.forward(params), len(X))


def exported(problem: Problem) -> Kernel:
    """Scikit-learn kernel of a problem on inputs that were not scaled."""
    zeros = np.zeros(problem.X.shape[1])
    return to_sklearn(problem.expression, problem.theta, scaling=Scaling(zeros, zeros + 1))


def numerical_gradient(
    function: Callable[[FloatArray], float], theta: FloatArray, *, step: float = 1e-3
) -> FloatArray:
    """Central differences with three steps, extrapolated to an error of order ``step**6``.

    With the default step the truncation error is below 1e-9 of the derivative where the function
    has features no finer than 0.02; the rounding error is ``EPS / step`` or 2e-13 of the value,
    times the condition number of its computation.
    """

    def central(h: float) -> FloatArray:
        steps = h * np.eye(len(theta))
        return np.array([function(theta + s) - function(theta - s) for s in steps]) / (2 * h)

    coarse, middle, fine = central(step), central(step / 2), central(step / 4)
    better, best = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * best - better) / 15


def random_params(kernel: BaseKernel, rng: np.random.Generator) -> FloatArray:
    """Draw parameters within a factor of 4.5 of 1."""
    return np.exp(rng.uniform(-1.5, 1.5, len(kernel.parameters)))


class BaseKernelBattery:
    """What holds for every base kernel; a test class supplies ``kernel`` by parametrisation."""

    def test_is_registered_under_a_name_that_the_notation_reads(self, kernel: BaseKernel) -> None:
        assert BASE_KERNELS[kernel.name] is kernel
        assert parse_expression(f"{kernel.name}[0]") == Leaf(kernel, 0)

    def test_describes_itself_in_a_few_words_on_one_line(self, kernel: BaseKernel) -> None:
        params = random_params(kernel, np.random.default_rng(0))
        words = kernel.describe(params, scale=12.0).split(" ")
        assert 1 <= len(words) <= 8
        assert all(word.isprintable() and word for word in words)

    def test_every_parameter_has_a_prior_in_every_preset(self, kernel: BaseKernel) -> None:
        for priors in PRESETS.values():
            for parameter in kernel.parameters:
                shape, rate = parameter.prior_in(priors)
                assert 0 < shape < np.inf
                assert 0 < rate < np.inf

    def test_has_distinct_parameters_and_one_of_them_is_its_variance(
        self, kernel: BaseKernel
    ) -> None:
        kernel.check()
        names = [parameter.name for parameter in kernel.parameters]
        assert len(set(names)) == len(names)
        assert "variance" in names
        assert kernel.parameters[names.index("variance")].role is Role.VARIANCE
        if isinstance(kernel, ExponentialKernel):
            assert names[kernel.variance_index] == "variance"

    def test_evaluates_alone_and_beside_another_kernel(self, kernel: BaseKernel) -> None:
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(20, 1))
        y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=20)
        for text in (f"{kernel.name}[0]", f"LIN[0] * {kernel.name}[0] + SE[0]"):
            fit = evaluate_kernel(text, X, y)
            assert fit.status == "ok"
            assert np.isfinite(fit.score)

    def test_wins_a_short_fit_where_it_is_alone(self, kernel: BaseKernel) -> None:
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 50, size=(20, 1))
        # a wave on a trend: each kernel explains more of it than noise alone does
        y = np.sin(X[:, 0] / 5) + X[:, 0] / 10 + 0.1 * rng.normal(size=20)
        model = AutoKernelGPRegressor(base_kernels=(kernel.name,), n_iter=1, max_leaves=2)
        model.fit(X, y)
        assert set(model.search_history_["status"]) == {"ok"}
        assert f"{kernel.name}[0]" in model.best_expression_
        assert np.isfinite(model.predict(X, return_std=True)).all()

    @given(seed=seeds, scale=st.sampled_from([1.0, 12.0, 0.01]))
    def test_value_equals_that_of_the_exported_kernel_on_scaled_inputs(
        self, kernel: BaseKernel, seed: int, scale: float
    ) -> None:
        rng = np.random.default_rng(seed)
        params, X = random_params(kernel, rng), rng.uniform(-1, 1, (9, 1))
        K = covariance(Leaf(kernel, 0), params, X)
        expected = kernel.to_sklearn(params, scale=scale)(scale * X)
        # a phase of up to 60 in PER, divided by 2 l^2 >= 0.1, loses up to 600 EPS
        np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-13 * abs(expected).max())

    @given(seed=seeds)
    def test_exported_hyperparameters_lie_strictly_within_their_bounds(
        self, kernel: BaseKernel, seed: int
    ) -> None:
        params = random_params(kernel, np.random.default_rng(seed))
        sklearn_kernel = kernel.to_sklearn(params, scale=1e4)
        lower, upper = sklearn_kernel.bounds.T
        assert (lower < sklearn_kernel.theta).all()
        assert (sklearn_kernel.theta < upper).all()

    @given(seed=seeds, n_samples=st.integers(1, 9))
    def test_gradient_in_the_log_parameters_equals_finite_differences(
        self, kernel: BaseKernel, seed: int, n_samples: int
    ) -> None:
        rng = np.random.default_rng(seed)
        theta = np.log(random_params(kernel, rng))
        pairs = PackedPairs(rng.uniform(-1, 1, n_samples))
        weights = rng.standard_normal(n_samples * (n_samples + 1) // 2)
        packed = Covariance(Leaf(kernel, 0), lambda column: pairs)

        def weighted_sum(theta: FloatArray) -> float:
            return weights @ packed.forward(np.exp(theta))

        expected = numerical_gradient(weighted_sum, theta)
        packed.forward(np.exp(theta))
        # phases of 60, amplified by 1 / (2 l^2), make PER vary within 0.002: truncation below 1e-8
        np.testing.assert_allclose(
            packed.backward(weights), expected, rtol=1e-7, atol=1e-7 * abs(expected).max()
        )

    @given(seed=seeds)
    def test_is_symmetric_in_its_two_inputs(self, kernel: BaseKernel, seed: int) -> None:
        rng = np.random.default_rng(seed)
        params, X = random_params(kernel, rng), rng.uniform(-1, 1, (8, 1))
        leaf = Leaf(kernel, 0)
        forwards, backwards = covariance(leaf, params, X), covariance(leaf, params, X[::-1])
        # the mean that PER takes off rounds differently; amplified as in the test of the values
        np.testing.assert_allclose(forwards, backwards[::-1, ::-1], rtol=1e-12, atol=1e-14)

    @given(seed=seeds)
    def test_is_positive_semidefinite(self, kernel: BaseKernel, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-3, 3, (20, 1))
        eigenvalues = np.linalg.eigvalsh(covariance(Leaf(kernel, 0), random_params(kernel, rng), X))
        # entries are off by up to 1e-13 (the phases of PER), eigenvalues by n times as much
        assert eigenvalues.min() >= -20 * 1e-13 * eigenvalues.max()

    @given(seed=seeds)
    def test_computing_it_leaves_the_pairs_as_they_are(self, kernel: BaseKernel, seed: int) -> None:
        rng = np.random.default_rng(seed)
        params, pairs = random_params(kernel, rng), PackedPairs(rng.uniform(-1, 1, 6))
        packed = Covariance(Leaf(kernel, 0), lambda column: pairs)
        before = packed.forward(params).copy()
        packed.backward(np.ones_like(before))
        np.testing.assert_array_equal(packed.forward(params), before)
