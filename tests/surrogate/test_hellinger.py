from functools import partial
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from mpmath import mp
from scipy.integrate import dblquad
from scipy.special import gammaincinv

from autokernel import parse_expression
from autokernel.expression import Grammar, arrange
from autokernel.kernels import BASE_KERNELS, OPERATORS
from autokernel.search import distances as hellinger
from autokernel.search import distances as prior_covariances
from autokernel.search.distances import (
    JITTER,
    NOISE,
    HellingerDistances,
    hellinger_distances,
    log_determinants,
    sobol_points,
)
from tests.batteries import covariance, expressions, reshuffled, seeds

GRAMMAR = Grammar(
    tuple(BASE_KERNELS.values()), tuple(OPERATORS.values()), columns=(0, 1, 2), max_leaves=10
)
X = np.random.default_rng(0).uniform(size=(20, 3))  # as many as are used: none is drawn
ROUNDING = 1e-13  # of log determinants of 20 pivots between 0.01 and 20


def walks(n, seed):
    """Expressions of one to ten leaves."""
    rng = np.random.default_rng(seed)
    return [
        GRAMMAR.random_walk(GRAMMAR.leaves[i % len(GRAMMAR.leaves)], int(rng.integers(14)), rng)
        for i in range(n)
    ]


def distance(one, other, **options):
    pair = [parse_expression(one)], [parse_expression(other)]
    return hellinger_distances(*pair, **{"X": X, **options}).item()


def sampled_covariances(expression, X, n_samples, seed=0):
    """Covariances (n_samples, n, n) with noise, by the likelihood engine, sample by sample."""
    arranged = arrange(expression).expression
    priors = [parameter.prior for node in arranged.nodes for parameter in node.parameters]
    shape, rate = np.array(priors).T
    points = sobol_points(n_samples, np.random.default_rng(seed))[:, : len(priors)]
    K = np.array([covariance(arranged, params, X) for params in gammaincinv(shape, points) / rate])
    jitter = JITTER * np.trace(K, axis1=1, axis2=2)[:, None, None] / len(X)
    return K + (NOISE + jitter) * np.eye(len(X))


def squared_hellinger(P, Q):
    """BOMS eq. 6 with zero means, straight from its definition."""
    det = np.linalg.det
    return 1 - det(P) ** 0.25 * det(Q) ** 0.25 / det((P + Q) / 2) ** 0.5


def affinity(a, b):
    return sqrt(2 * sqrt(a * b) / (a + b))


def test_the_distance_of_two_numbers_is_the_integral_of_its_definition():
    # of one input: LIN has v + c, SE a variance that is drawn as c is, and both the noise
    def integrand(v, c):
        prior = 0.25 * exp(-0.25 * v) * 9 * c * exp(-3 * c)  # 1e-14 of it beyond 12 and 130
        return prior * affinity(v + c + NOISE, c + NOISE)

    expected = 1 - dblquad(integrand, 0, 12, 0, 130, epsabs=1e-6)[0]
    computed = distance("LIN[0]", "SE[0]", X=[[1.0]], n_samples=4096)
    assert computed == pytest.approx(expected, abs=1e-4)  # the quasi-Monte-Carlo error


def test_one_input_cannot_tell_kernels_apart_whose_variances_are_drawn_alike():
    # second in all but LIN, and so is the offset of LIN, which is all of it at zero
    kernels = [parse_expression(f"{name}[0]") for name in BASE_KERNELS]
    np.testing.assert_allclose(hellinger_distances(kernels, X=[[0.0]]), 0.0, atol=ROUNDING)


def test_distances_are_those_of_the_definition():
    kernels = walks(12, seed=1)
    K = [sampled_covariances(kernel, X, n_samples=10) for kernel in kernels]
    expected = [[squared_hellinger(P, Q).mean() for Q in K] for P in K]
    computed = hellinger_distances(kernels, X=X, n_samples=10)
    # determinants of twenty variances, which may be small: their roots cancel to eight digits
    np.testing.assert_allclose(computed, expected, atol=1e-8)


@pytest.mark.parametrize("other", ["SE[0] + PER[0]", "LIN[0]", "RQ[1] * SE[0]"])
def test_a_distance_has_twelve_digits(other):
    kernels = [parse_expression("SE[0]"), parse_expression(other)]
    P, Q = (sampled_covariances(kernel, X, n_samples=3) for kernel in kernels)
    with mp.workdps(50):
        terms = []
        for p, q in zip(P, Q, strict=True):
            det_p, det_q, det = (mp.det(mp.matrix(K.tolist())) for K in (p, q, (p + q) / 2))
            terms.append(1 - mp.sqrt(mp.sqrt(det_p * det_q) / det))
        expected = float(sum(terms) / 3)
    # the covariances themselves are given in double precision, by another way
    assert distance("SE[0]", other, n_samples=3) == pytest.approx(expected, rel=1e-12)


def test_distances_are_expectations_over_the_priors(monkeypatch):
    kernels = [parse_expression(text) for text in ("SE[0]", "PER[0] + LIN[0]", "RQ[1] * SE[0]")]
    sobol = hellinger_distances(kernels, X=X, n_samples=1024)
    monkeypatch.setattr(hellinger, "sobol_points", lambda n, rng: rng.uniform(size=(n, 256)))
    random = hellinger_distances(kernels, X=X, n_samples=4000, rng=5)
    # distances spread by at most 0.3, so that the error of the mean is 0.005
    np.testing.assert_allclose(random, sobol, atol=0.02)


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_log_determinants_are_those_of_numpy(n):
    A = np.random.default_rng(n).normal(size=(30, n, n + 2))
    K = A @ A.swapaxes(1, 2)
    columns, rows = np.triu_indices(n)
    packed = np.ascontiguousarray(K[:, rows, columns].T)
    # rounding, times the condition of the matrices
    np.testing.assert_allclose(log_determinants(packed), np.linalg.slogdet(K)[1], atol=1e-10)


def test_distances_are_symmetric_between_0_and_1_and_0_for_equals():
    D = hellinger_distances(walks(60, seed=2), X=X, n_samples=16)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(np.diag(D), 0.0)
    assert D.min() == 0
    assert D.max() <= 1
    two = "SE[0] + PER[1]", "LIN[2] * RQ[0]"
    assert distance(*two) == distance(*two[::-1])  # each computed for itself


@given(expressions(GRAMMAR), expressions(GRAMMAR), seeds)
@settings(max_examples=10)
def test_the_order_and_grouping_of_operands_do_not_matter(expression, other, seed):
    rng = np.random.default_rng(seed)
    variants = [reshuffled(expression, rng), expression]
    np.testing.assert_array_equal(hellinger_distances(variants, X=X, n_samples=4), 0.0)
    # another tree comes first and is sampled; now it is the second
    one, two = (hellinger_distances([v], [other], X=X, n_samples=4) for v in variants)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("lengthscale", [0.2, 1.0, 3.0])
def test_the_kernel_is_positive_semi_definite(lengthscale):
    D = hellinger_distances(walks(200, seed=3), X=X, n_samples=8)
    K = np.exp(-D / (2 * lengthscale**2))
    # some walks end at one kernel, so that the smallest eigenvalue is 0: rounding of D and of K
    assert np.linalg.eigvalsh(K)[0] > -1e-12


def test_roots_of_distances_obey_the_triangle_inequality():
    D = np.sqrt(hellinger_distances(walks(40, seed=4), X=X, n_samples=8))
    detours = (D[:, :, None] + D[None, :, :]).min(axis=1)
    assert (D - detours).max() <= 1e-6  # the root of the rounding of distances near zero


def test_distances_to_others_are_a_part_of_the_square_matrix():
    kernels = walks(40, seed=6)
    square = hellinger_distances(kernels, X=X, n_samples=16)
    part = hellinger_distances(kernels[:9], kernels[5:], X=X, n_samples=16)
    assert part.shape == (9, 35)
    np.testing.assert_allclose(part, square[:9, 5:], rtol=0, atol=ROUNDING)


def test_smooth_kernels_are_nearer_to_each_other_than_to_a_line_or_a_period():
    # BOMS figure 1
    base = [parse_expression(f"{name}[0]") for name in ("SE", "RQ", "PER", "LIN")]
    D = hellinger_distances(base, X=X)
    assert D[0, 1] < 0.5 * D[:2, 2:].min()


def test_a_kernel_on_another_column_is_another_kernel():
    assert distance("SE[0]", "SE[1]") > 0.1


@pytest.fixture
def no_more(monkeypatch):
    """Make further computations fail."""

    def forbid():
        for module in (hellinger, prior_covariances):
            monkeypatch.setattr(module, "log_determinants", None)

    return forbid


def test_growing_lists_give_what_all_at_once_gives():
    kernels = walks(30, seed=7)
    known = HellingerDistances(X, n_samples=16)
    known(kernels[:3])
    known(kernels[10:], kernels[:4])
    grown = known(kernels)
    at_once = hellinger_distances(kernels, X=X, n_samples=16)
    np.testing.assert_allclose(grown, at_once, rtol=0, atol=ROUNDING)


def test_nothing_is_computed_twice(no_more):
    kernels = walks(20, seed=8)
    known = HellingerDistances(X, n_samples=4)
    part, square = known(kernels[:5], kernels[10:]), known(kernels)
    no_more()
    np.testing.assert_array_equal(known(kernels), square)
    np.testing.assert_array_equal(known(kernels[10:], kernels[:5]), part.T)


def test_many_kernels_at_once_are_kept(monkeypatch, no_more):
    monkeypatch.setattr(hellinger, "_MOST_TEXTS", 3)
    kernels = walks(20, seed=8)
    known = HellingerDistances(X, n_samples=4)
    square = known(kernels)
    no_more()
    np.testing.assert_array_equal(known(kernels), square)


def test_equal_kernels_need_no_computation(no_more):
    no_more()
    assert distance("SE[0] + LIN[1]", "LIN[1] + SE[0]") == 0


@pytest.mark.parametrize("limit", [{"_MEMORY": 0}, {"_MOST_TEXTS": 7}])
def test_distances_do_not_depend_on_what_is_kept(limit, monkeypatch):
    kernels = list({kernel.canonical: kernel for kernel in walks(25, seed=9)}.values())
    expected = hellinger_distances(kernels, X=X, n_samples=4)
    for name, value in limit.items():
        monkeypatch.setattr(hellinger, name, value)
    forgetful = HellingerDistances(X, n_samples=4)
    for start in range(0, 20, 5):
        few = kernels[start : start + 5]
        np.testing.assert_allclose(
            forgetful(few, kernels[:2]), expected[start : start + 5, :2], rtol=0, atol=ROUNDING
        )
    np.testing.assert_allclose(forgetful(kernels), expected, rtol=0, atol=ROUNDING)


def test_distances_between_kernels_that_are_asked_for_again_stay(monkeypatch, no_more):
    monkeypatch.setattr(hellinger, "_MOST_TEXTS", 9)
    kernels = list({kernel.canonical: kernel for kernel in walks(60, seed=11)}.values())
    known = HellingerDistances(X, n_samples=4)
    stays = kernels[:4]
    square = known(stays)
    for start in range(4, 24, 4):
        known([*stays, *kernels[start : start + 4]], stays)
    no_more()
    np.testing.assert_array_equal(known(stays), square)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(hellinger, "_MOST_TEXTS", 9)
    monkeypatch.setattr(hellinger, "_MEMORY", 5 * 210 * 4 * 8)
    distances = HellingerDistances(X, n_samples=4)
    for kernel in walks(40, seed=10):
        distances([kernel], [parse_expression("SE[0]")])
        assert len(distances._kept) <= 5
        assert len(distances._table) <= 9


def test_where_memory_is_short_a_kernel_is_sampled_once_for_a_block(monkeypatch):
    sampled = []
    covariance_of = prior_covariances.Covariance

    def noting(expression, pairs):
        sampled.append(expression)
        return covariance_of(expression, pairs)

    monkeypatch.setattr(prior_covariances, "Covariance", noting)
    monkeypatch.setattr(hellinger, "_MEMORY", 8 * 210 * 4 * 8)  # eight kernels at four samples
    kernels = list({kernel.canonical: kernel for kernel in walks(30, seed=11)}.values())[:20]
    hellinger_distances(kernels, X=X, n_samples=4)
    assert len(kernels) == 20
    assert 20 <= len(sampled) <= 100  # five blocks of four; 190 distances have 380 sides


def test_without_rng_the_result_is_always_the_same():
    many = np.random.default_rng(1).uniform(size=(50, 1))
    assert distance("SE[0]", "LIN[0]", X=many) == distance("SE[0]", "LIN[0]", X=many)


@pytest.mark.parametrize("n_inputs", [20, 50])
def test_rng_draws_points_and_inputs(n_inputs):
    compute = partial(distance, "SE[0]", "LIN[0]", X=np.linspace(0, 1, n_inputs)[:, None])
    assert compute(rng=3) == compute(rng=np.random.default_rng(3))
    assert compute(rng=3) != compute(rng=4)


def test_twenty_different_inputs_are_used_where_there_are_more():
    used = HellingerDistances(np.arange(100.0)[:, None])._sampler._X
    assert used.shape == (20, 1)
    assert len(np.unique(used)) == 20


def test_the_noise_prior_does_not_matter_and_the_others_do():
    default = distance("SE[0]", "LIN[0]")
    assert default == distance("SE[0]", "LIN[0]", priors={"noise_variance": (1, 100)})
    assert default != distance("SE[0]", "LIN[0]", priors={"lengthscale": (3, 1)})
    assert default != distance("SE[0]", "LIN[0]", priors="paper")  # of the slope


def test_there_may_be_more_parameters_than_dimensions_of_the_points():
    # of 150 SE: the 256 dimensions serve 128 of them
    long = " * ".join(["SE[0]"] * 150)
    assert 0 < distance(long, "SE[0]", n_samples=2) <= 1


@pytest.mark.filterwarnings("error")
def test_priors_may_be_so_wide_that_variances_vanish():
    priors = {"variance": (1e-3, 1), "lengthscale": (1e-3, 1)}
    kernels = [parse_expression(text) for text in ("SE[0]", " * ".join(["SE[0]"] * 10), "LIN[0]")]
    D = hellinger_distances(kernels, X=X, priors=priors)
    assert np.isfinite(D).all()


def test_covariances_that_overflow_are_an_error():
    with pytest.raises(ValueError, match=r"X must be .* of LIN\[0\] \* LIN\[0\] do not overflow"):
        distance("LIN[0] * LIN[0]", "SE[0]", X=[[1e100], [2e100]])


@pytest.mark.parametrize("pair", [("SE[0]", "LIN[0] + SE[3]"), ("LIN[0] + SE[3]", "SE[0]")])
def test_a_column_that_the_inputs_do_not_have_is_an_error(pair):
    with pytest.raises(ValueError, match=r"X must have .* got 3 columns and LIN\[0\] \+ SE\[3\]"):
        distance(*pair)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1, got 0"),
        ({"X": [[np.nan]]}, "X contains NaN"),
        ({"X": [1.0, 2.0]}, "Expected 2D array"),
        ({"priors": "wide"}, "priors must be one of"),
    ],
)
def test_invalid_arguments_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        distance("SE[0]", "LIN[0]", **options)


def test_no_expressions_have_no_distances():
    assert hellinger_distances([], X=X).shape == (0, 0)
    assert hellinger_distances([parse_expression("SE[0]")], [], X=X).shape == (1, 0)
