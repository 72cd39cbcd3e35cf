"""Random expressions, parameters and data, and derivatives by differences."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Kernel

from autokernel.data import Column, Columns, Inputs, RowNoise, Target
from autokernel.data.scales import Identity, Scale
from autokernel.expression import IDENTITY, Expression, Grammar, Leaf, Operation, n_kernel_params
from autokernel.inference import TrainingData
from autokernel.inference.covariance import Covariance
from autokernel.inference.packed import unpack
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import (
    ADD,
    BASE_KERNELS,
    MULTIPLY,
    OPERATORS,
    BaseKernel,
    Operator,
    Seasonal,
)
from autokernel.model import to_sklearn
from autokernel.typing import FloatArray, IntArray
from tests.kernels.gate import GATE

EPS = float(np.finfo(float).eps)
GRAMMAR = Grammar(tuple(BASE_KERNELS.values()), (ADD, MULTIPLY), columns=(0, 1, 2), max_leaves=6)

# with change points, change windows and an operator from outside of the package
EVERY_OPERATOR = Grammar(
    tuple(BASE_KERNELS.values()), (*OPERATORS.values(), GATE), columns=(0, 1, 2), max_leaves=6
)

SCALES = (IDENTITY, "log", "sqrt")
ON_SCALES = replace(
    EVERY_OPERATOR,
    base_kernels=(*BASE_KERNELS.values(), Seasonal(12), Seasonal(365.2425)),
    scales=(SCALES,) * 3,
)

seeds = st.integers(0, 2**32 - 1)


@st.composite
def grammars(draw: st.DrawFn) -> Grammar:
    """Draw a grammar over some of the base kernels, operators, columns and scales."""

    def some(values: tuple) -> st.SearchStrategy[tuple]:
        return st.lists(st.sampled_from(values), min_size=1, unique=True).map(tuple)

    columns = draw(some((0, 1, 2, 10)))
    has_scales = draw(st.booleans())
    return Grammar(
        draw(some(tuple(BASE_KERNELS.values()))),
        draw(some((ADD, MULTIPLY))),
        columns=columns,
        max_leaves=draw(st.integers(1, 4)),
        scales=tuple(draw(some(SCALES)) for _ in columns) if has_scales else None,
        targets=draw(some(SCALES)),
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


def every_tree(grammar: Grammar, n_leaves: int) -> Iterator[Expression]:
    """All trees with this number of leaves over a grammar of operators with two operands."""
    if n_leaves == 1:
        yield from grammar.leaves
    for n_left in range(1, n_leaves):
        for left in every_tree(grammar, n_left):
            for right in every_tree(grammar, n_leaves - n_left):
                for operator in grammar.operators:
                    for column in grammar.columns if operator.acts_on_column else (None,):
                        yield Operation(operator, left, right, column=column)


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
        return expression.join([reshuffled(e, rng) for e in expression.operands])
    terms = [reshuffled(e, rng) for e in flat_terms(expression, expression.operator)]
    rng.shuffle(terms)
    while len(terms) > 1:
        i = rng.integers(len(terms) - 1)
        terms[i : i + 2] = [Operation(expression.operator, *terms[i : i + 2])]
    return terms[0]


def inputs_of(X: FloatArray, *, first_row: int | None = None) -> Inputs:
    """Inputs (..., n_features) as they come, with two scales of each column."""
    scales = {"log": Scale("log", shift=0.3, width=2.0), "sqrt": Scale("sqrt", width=0.5)}
    every = (Column(f"x{number}", scales=scales) for number in range(X.shape[-1]))
    return Columns(tuple(every)).scaled(X, first_row=first_row)


def target_on(scale: Scale) -> Target:
    """A target that is not standardised, with one scale besides the identity."""
    return Target(0.0, 1.0, {IDENTITY: Identity(IDENTITY), scale.name: scale})


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Problem:
    """A kernel with its parameters and data to explain."""

    expression: Expression
    theta: FloatArray  # (n_params,), noise variance last
    X: FloatArray  # (n_samples, n_features)
    y: FloatArray  # (n_samples,)
    row_noise: RowNoise | None = None
    target: Target = field(default_factory=lambda: Target.raw(np.zeros(1)))

    @property
    def inputs(self) -> Inputs:
        """The inputs of the data."""
        return inputs_of(self.X, first_row=0)

    @property
    def data(self) -> TrainingData:
        """The data with the noise of each row."""
        return TrainingData(self.inputs, self.y, self.row_noise, self.target)

    @property
    def noise(self) -> FloatArray:
        """Noise variance (n_samples,) of each row, by its definition."""
        own = self.row_noise or RowNoise(np.ones(len(self.y)))
        return (np.exp(self.theta[-1] + own.log_factors) + own.rounding) / own.weights + own.errors

    def take(self, rows: IntArray) -> "Problem":
        """The same kernel and parameters with these rows."""
        noise = self.row_noise and self.row_noise.take(rows)
        return replace(self, X=self.X[rows], y=self.y[rows], row_noise=noise)


@st.composite
def problems(draw: st.DrawFn, *, n_features: int, has_row_noise: bool = False) -> Problem:
    """Draw a random expression, theta, X and y.

    The parameters stay within a factor ``e`` of 1 and the noise above ``exp(-4)``, so that the
    covariance has a condition number below about 1e7 and two ways to compute it agree.
    """
    grammar = Grammar(
        GRAMMAR.base_kernels,
        GRAMMAR.operators,
        tuple(range(n_features)),
        max_leaves=6,
        scales=(SCALES, *((IDENTITY,),) * (n_features - 1)),
    )
    expression = draw(expressions(grammar))
    n_samples = draw(st.sampled_from((12, 11, 25, 2, 1)))  # odd and even: packed differently
    rng = np.random.default_rng(draw(seeds))
    theta = np.append(rng.uniform(-1, 1, n_kernel_params(expression)), rng.uniform(-4, 0))
    X = rng.uniform(-1, 1, (n_samples, n_features))
    X[:, 0] += 1.1  # positive, as some scales need
    y, row_noise = rng.standard_normal(n_samples), None
    if has_row_noise:
        weights, errors = rng.uniform(0.3, 4, n_samples), rng.choice([0.0, 0.05, 1.0], n_samples)
        rounding, log_factors = rng.choice([0.0, 0.1, 0.5], n_samples), rng.normal(size=n_samples)
        row_noise = RowNoise(weights, errors, rounding, log_factors=log_factors)
    return Problem(expression, theta, X, y, row_noise)


def covariance(expression: Expression, params: FloatArray, X: FloatArray) -> FloatArray:
    """Noise-free covariance matrix, computed the way the engine does."""
    inputs = inputs_of(X)
    of_pairs = Covariance(expression, lambda view: PackedPairs(inputs.view(view)))
    return unpack(of_pairs.forward(params), len(X))


def exported(problem: Problem) -> Kernel:
    """Scikit-learn kernel of a problem on inputs that were not scaled."""
    *params, noise = np.exp(problem.theta)
    columns = problem.inputs.columns
    return to_sklearn(problem.expression, np.array(params), columns=columns, noise_variance=noise)


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
