"""The distances by which SOT, BOMS and Arc compare kernels, and the kernels that these make."""

from collections import Counter
from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import gammaincinv

from autokernel import parse_expression
from autokernel.evidence.importance import sobol_points
from autokernel.expression import Grammar, arrange
from autokernel.inference import TrainingData
from autokernel.kernels import BASE_KERNELS, OPERATORS, PRESETS
from autokernel.search.distances import SOTKernel
from autokernel.search.methods.arc import N_DEPTHS
from autokernel.search.methods.boms import (
    JITTER,
    MAX_CACHED_EXPRESSIONS,
    N_SAMPLES,
    N_SOBOL_DIMENSIONS,
    NOISE_VARIANCE,
    HellingerKernel,
)
from tests.batteries import covariance, reshuffled
from tests.search.stand_ins import kernel_kernels, walks_of

GRAMMAR = Grammar(
    tuple(BASE_KERNELS.values()), tuple(OPERATORS.values()), columns=(0, 1, 2), max_leaves=10
)
X = np.random.default_rng(0).uniform(size=(20, 3))  # as many as are used: none is drawn
KERNEL_KERNELS = kernel_kernels(X[:5])
ROUNDING = 1e-13  # of log determinants of 20 pivots between 0.01 and 20


def walks(n, seed):
    """Expressions of one to ten leaves, of all operators."""
    rng = np.random.default_rng(seed)
    return [
        GRAMMAR.random_walk(GRAMMAR.leaves[i % len(GRAMMAR.leaves)], int(rng.integers(14)), rng)
        for i in range(n)
    ]


# some of them equal, and one out of five with change points
EXPRESSIONS = [*walks_of(80, n_features=2, seed=0), *walks(20, seed=0)]


def pair(one, other):
    return [parse_expression(one)], [parse_expression(other)]


# All three.


@pytest.fixture(scope="module", params=KERNEL_KERNELS)
def kernel_kernel(request):
    return KERNEL_KERNELS[request.param]


@pytest.fixture(scope="module")
def distances(kernel_kernel):
    return kernel_kernel.distances(EXPRESSIONS, EXPRESSIONS)


def random_params(kernel_kernel, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(*np.transpose(kernel_kernel.bounds))


def test_distances_are_symmetric_not_negative_and_parts_of_one_matrix(kernel_kernel, distances):
    # sums of some dozen frequencies in another order, in SOT
    np.testing.assert_allclose(distances, distances.swapaxes(1, 2), rtol=0, atol=1e-14)
    assert distances.min() >= 0
    assert distances.max() > 0.5  # or the test shows nothing
    part = kernel_kernel.distances(EXPRESSIONS[:7], EXPRESSIONS[50:])
    assert part.shape == (len(distances), 7, 50)
    np.testing.assert_allclose(part, distances[:, :7, 50:], rtol=0, atol=1e-14)
    square = kernel_kernel.distances(EXPRESSIONS[:50], EXPRESSIONS[:50])
    # of an expression to itself: exactly zero
    np.testing.assert_array_equal(np.diagonal(square, axis1=1, axis2=2), 0.0)


@pytest.mark.parametrize("name", ["hellinger", "arc"])
def test_reordered_and_regrouped_trees_are_one_expression(name):
    rng, few = np.random.default_rng(0), EXPRESSIONS[:50]
    others = [reshuffled(expression, rng) for expression in few]
    assert sum(a != b for a, b in zip(few, others, strict=True)) > 10  # or the test shows nothing
    # one canonical text: everything is computed from the same tree
    to_others = KERNEL_KERNELS[name].distances(few, others)
    np.testing.assert_array_equal(np.diagonal(to_others, axis1=1, axis2=2), 0.0)
    np.testing.assert_array_equal(to_others, KERNEL_KERNELS[name].distances(few, few))


@pytest.mark.parametrize("seed", range(2))
def test_the_kernel_is_positive_semi_definite(seed, kernel_kernel, distances):
    weights, _ = kernel_kernel.weights(random_params(kernel_kernel, seed))
    K = np.exp(-np.tensordot(weights, distances, axes=1))
    # some are equal: the smallest eigenvalue is 0, and its computed value off by a small multiple
    # of eps times the norm, at most 100; distances are off by 1e-14, times weights of at most 55
    assert np.linalg.eigvalsh(K)[0] > -100 * (100 * np.finfo(float).eps + 55e-14)


@pytest.mark.parametrize("seed", range(2))
def test_jacobian_of_the_weights_is_that_of_finite_differences(seed, kernel_kernel):
    params = random_params(kernel_kernel, seed)
    values, jacobian = kernel_kernel.weights(params)
    assert jacobian.shape == (len(values), len(kernel_kernel.bounds))
    step = 1e-5
    differences = [
        (kernel_kernel.weights(params + e)[0] - kernel_kernel.weights(params - e)[0]) / (2 * step)
        for e in step * np.eye(len(kernel_kernel.bounds))
    ]
    # relative to the weight, rounding over the step, 1e-11, and the squared step times a sixth of
    # the third derivative, which is at most eight weights
    error = np.abs(jacobian - np.transpose(differences)) / values[:, None]
    assert error.max() < 1e-9
    for params in np.transpose(kernel_kernel.bounds):  # up to the bounds, around where a fit starts
        values, jacobian = kernel_kernel.weights(params)
        assert np.all(values > 0)
        assert np.isfinite(jacobian).all()


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize("name", KERNEL_KERNELS)
def test_weights_are_those_of_the_papers(name):
    params = random_params(KERNEL_KERNELS[name], 0)
    lengthscale, shares = np.exp(params[0] / 2), sigmoid(params[1:])
    gammas = [1 / lengthscale, *shares]  # that of the root first
    expected = {
        "sot": shares / shares.sum() / lengthscale**2,  # SOT appendix A.5: sigmoids, normalised
        "hellinger": [1 / (2 * lengthscale**2)],  # BOMS eq. 8
        "arc": np.cumprod(gammas) ** 2,  # of all levels down to this one
    }[name]
    computed, _ = KERNEL_KERNELS[name].weights(params)
    np.testing.assert_allclose(computed, expected, rtol=1e-12)  # rounding of ten factors


# SOT, with a second implementation in exact fractions, and without any text as a key.

FIRST = "LIN[0] * (PER[0] * SE[0] + SE[0])"
SECOND = "(LIN[0] + SE[0]) * (PER[0] * LIN[0] + SE[0])"


def frequencies(elements):
    counts = Counter(elements)
    return {element: Fraction(count, counts.total()) for element, count in counts.items()}


def total_variation(one, other):
    return sum(abs(one.get(e, 0) - other.get(e, 0)) for e in one.keys() | other.keys()) / 2


def bases(expression, column):
    kernels = [leaf.kernel for leaf in expression.leaves if leaf.column == column]
    return frequencies(kernels or ["none"])


def paths(expression, above=()):
    if expression.n_leaves == 1:
        return [(*above, expression)]
    if above[-1:] != (expression.operator,):
        above = (*above, expression.operator)
    return [path for operand in expression.operands for path in paths(operand, above)]


def shape(expression):
    """A value that is equal for trees that differ by swaps of left and right."""
    if expression.n_leaves == 1:
        return expression
    sides = Counter(map(shape, expression.operands))
    return (expression.operator, frozenset(sides.items()))


def exact_distances(one, other, n_features):
    return [
        sum(total_variation(bases(one, c), bases(other, c)) for c in range(n_features)),
        total_variation(frequencies(paths(one)), frequencies(paths(other))),
        total_variation(
            frequencies(map(shape, one.subtrees())), frequencies(map(shape, other.subtrees()))
        ),
    ]


@pytest.mark.parametrize("n_features", [1, 3])
def test_sot_agrees_with_exact_fractions(n_features):
    expressions = walks_of(20, n_features=n_features, seed=n_features)
    expected = np.array(
        [[exact_distances(e, f, n_features) for f in expressions] for e in expressions], float
    )
    computed = SOTKernel().distances(expressions, expressions)
    # at most a few dozen terms of size one
    np.testing.assert_allclose(computed, np.moveaxis(expected, -1, 0), atol=1e-14)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (FIRST, SECOND, [3 / 20, 11 / 20, 11 / 21]),  # SOT, appendix B
        # an unused column counts as NULL. Column 0: SE against nothing, column 1: nothing
        # against SE, column 2: nothing in both
        ("SE[0]", "SE[1]", [2, 1, 1]),
        # column 0: the same, column 1: nothing against SE
        ("SE[0]", "SE[0] + SE[1]", [1, 1, 2 / 3]),
    ],
)
def test_sot_distances_of_examples(one, other, expected):
    found = SOTKernel().distances(*pair(one, other))[:, 0, 0]
    assert found == pytest.approx(expected, rel=1e-12)  # sums of a few fractions, to rounding


# Arc.


def by_position(expression):
    """Values of positions, numbered as in a heap: the children of k are 2 k and 2 k + 1."""
    values, trees = {}, {1: arrange(expression.tree)[0]}
    while trees:
        number, tree = trees.popitem()
        if tree.n_leaves == 1:
            values[number] = (tree.kernel, tree.column)
        else:
            values[number] = tree.operator
            left, right = tree.operands
            trees |= {2 * number: left, 2 * number + 1: right}
    return values


def by_definition(one, other):
    """Distances by level, from the categorical pseudo-metric (Hutter and Osborne, section 3)."""
    one, other = by_position(one), by_position(other)
    total = Counter()
    for number in one.keys() | other.keys():
        level = min(number.bit_length() - 1, N_DEPTHS - 1)
        if number in one and number in other:
            total[level] += 2 * (one[number] != other[number])
        else:
            total[level] += 1
    return [total[level] for level in range(N_DEPTHS)]


def test_arc_distances_are_those_of_the_definition_at_every_position():
    kernels = [e for e in EXPRESSIONS if e.n_leaves > 1][:40]
    expected = np.array([[by_definition(e, f) for f in kernels] for e in kernels])
    computed = 2 * KERNEL_KERNELS["arc"].distances(kernels, kernels)
    np.testing.assert_array_equal(computed, np.moveaxis(expected, -1, 0))  # whole numbers


# Hellinger, by the likelihood engine and from its definition.


def hellinger_distances(items, others=None, *, X=X, priors=PRESETS["default"]):
    kernel_kernel = HellingerKernel(TrainingData(np.array(X), np.zeros(len(X))), priors)
    return kernel_kernel.distances(items, others or items)[0]


def hellinger(one, other, **options):
    return hellinger_distances(*pair(one, other), **options).item()


def sampled_covariances(expression, n_samples=N_SAMPLES, X=X):
    """Covariances (n_samples, n, n) with noise, by the likelihood engine, sample by sample."""
    arranged = arrange(expression.tree)[0]
    priors = [parameter.prior for node in arranged.nodes for parameter in node.parameters]
    shape, rate = np.array(priors).T
    points = sobol_points(n_samples, N_SOBOL_DIMENSIONS, np.random.default_rng(0))[:, : len(priors)]
    K = np.array([covariance(arranged, params, X) for params in gammaincinv(shape, points) / rate])
    jitter = JITTER * np.trace(K, axis1=1, axis2=2)[:, None, None] / len(X)
    return K + (NOISE_VARIANCE + jitter) * np.eye(len(X))


def squared_hellinger(P, Q):
    """BOMS eq. 6 with zero means, straight from its definition."""
    det = np.linalg.det
    return 1 - det(P) ** 0.25 * det(Q) ** 0.25 / det((P + Q) / 2) ** 0.5


def test_the_distance_of_two_numbers_is_the_integral_of_its_definition():
    # of one input: LIN has v + c, SE a variance that is drawn as c is, and both the noise
    def integrand(v, c):
        prior = 0.25 * exp(-0.25 * v) * 9 * c * exp(-3 * c)  # 1e-14 of it beyond 12 and 130
        a, b = v + c + NOISE_VARIANCE, c + NOISE_VARIANCE
        return prior * sqrt(2 * sqrt(a * b) / (a + b))

    expected, X = 1 - dblquad(integrand, 0, 12, 0, 130, epsabs=1e-6)[0], np.ones((1, 1))
    for n, value in ((4096, expected), (N_SAMPLES, hellinger("LIN[0]", "SE[0]", X=X))):
        P, Q = (sampled_covariances(parse_expression(e), n, X) for e in ("LIN[0]", "SE[0]"))
        assert squared_hellinger(P, Q).mean() == pytest.approx(value, abs=1e-4 if n > 100 else 1e-8)


def test_hellinger_distances_are_those_of_the_definition():
    kernels = walks(8, seed=1)
    K = [sampled_covariances(kernel) for kernel in kernels]
    expected = [[squared_hellinger(P, Q).mean() for Q in K] for P in K]
    # determinants of twenty variances, which may be small: their roots cancel to eight digits
    np.testing.assert_allclose(hellinger_distances(kernels), expected, atol=1e-8)


def test_hellinger_distances_do_not_depend_on_what_is_cached():
    kernels = list({kernel.canonical: kernel for kernel in walks(25, seed=9)}.values())
    many = [parse_expression(f"SE[{column}]") for column in range(MAX_CACHED_EXPRESSIONS + 100)]
    inputs = np.random.default_rng(0).uniform(size=(3, len(many)))
    expected = hellinger_distances(kernels, X=inputs)
    known = HellingerKernel(TrainingData(inputs, np.zeros(3)), PRESETS["default"])
    known.distances(kernels[:8], kernels[:2])
    for some in np.array_split(np.array(many, dtype=object), 8):  # the first ones are dropped
        known.distances(list(some), kernels[3:8])
    np.testing.assert_allclose(
        known.distances(kernels, kernels)[0], expected, rtol=0, atol=ROUNDING
    )


def test_smooth_kernels_are_nearer_to_each_other_than_to_a_line_or_a_period():
    # BOMS figure 1
    D = hellinger_distances([parse_expression(f"{name}[0]") for name in ("SE", "RQ", "PER", "LIN")])
    assert D[0, 1] < 0.5 * D[:2, 2:].min()


def test_the_noise_prior_does_not_matter_and_the_others_do():
    default = hellinger("SE[0]", "LIN[0]")
    assert default == hellinger("SE[0]", "LIN[0]", priors={"noise_variance": (1, 100)})
    assert default != hellinger("SE[0]", "LIN[0]", priors={"lengthscale": (3, 1)})
    assert default != hellinger("SE[0]", "LIN[0]", priors=PRESETS["paper"])  # of the slope


def test_a_kernel_whose_covariances_overflow_is_far_from_all_others():
    assert hellinger("LIN[0] * LIN[0]", "SE[0]", X=[[1e100], [2e100]]) == 1


@pytest.mark.parametrize("name", KERNEL_KERNELS)
def test_kernels_on_different_scales_of_the_target_differ_by_less_than_unlike_kernels(name):
    texts = ["SE[0] + LIN[1]", "log(y) ~ SE[0] + LIN[1]", "sqrt(y) ~ SE[0] + LIN[1]", "PER[0]"]
    expressions = [parse_expression(text) for text in texts]
    distances = KERNEL_KERNELS[name].distances(expressions, expressions).sum(0)
    assert distances[0, 1] == pytest.approx(distances[0, 2])
    assert 0 < distances[0, 1] < distances[0, 3]
