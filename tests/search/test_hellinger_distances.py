from math import exp, sqrt

import numpy as np
import pytest
from mpmath import mp
from scipy.integrate import dblquad
from scipy.special import gammaincinv

from autokernel import parse_expression
from autokernel.expression import Grammar, arrange
from autokernel.kernels import BASE_KERNELS, OPERATORS, PRESETS
from autokernel.search.boms import (
    JITTER,
    MAX_CACHED_EXPRESSIONS,
    NOISE_VARIANCE,
    HellingerKernel,
    log_determinants,
    sobol_points,
)
from tests.batteries import covariance

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


def distances(expressions, others=None, *, X=X, priors=PRESETS["default"], n_samples=100):
    return HellingerKernel(X, priors, n_samples=n_samples).distances(expressions, others)[0]


def distance(one, other, **options):
    return distances([parse_expression(one)], [parse_expression(other)], **options).item()


def sampled_covariances(expression, X, n_samples, seed=0):
    """Covariances (n_samples, n, n) with noise, by the likelihood engine, sample by sample."""
    arranged = arrange(expression).expression
    priors = [parameter.prior for node in arranged.nodes for parameter in node.parameters]
    shape, rate = np.array(priors).T
    points = sobol_points(n_samples, np.random.default_rng(seed))[:, : len(priors)]
    K = np.array([covariance(arranged, params, X) for params in gammaincinv(shape, points) / rate])
    jitter = JITTER * np.trace(K, axis1=1, axis2=2)[:, None, None] / len(X)
    return K + (NOISE_VARIANCE + jitter) * np.eye(len(X))


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
        return prior * affinity(v + c + NOISE_VARIANCE, c + NOISE_VARIANCE)

    expected = 1 - dblquad(integrand, 0, 12, 0, 130, epsabs=1e-6)[0]
    computed = distance("LIN[0]", "SE[0]", X=np.array([[1.0]]), n_samples=4096)
    assert computed == pytest.approx(expected, abs=1e-4)  # the quasi-Monte-Carlo error


def test_distances_are_those_of_the_definition():
    kernels = walks(12, seed=1)
    K = [sampled_covariances(kernel, X, n_samples=10) for kernel in kernels]
    expected = [[squared_hellinger(P, Q).mean() for Q in K] for P in K]
    computed = distances(kernels, n_samples=10)
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


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_log_determinants_are_those_of_numpy(n):
    A = np.random.default_rng(n).normal(size=(30, n, n + 2))
    K = A @ A.swapaxes(1, 2)
    columns, rows = np.triu_indices(n)
    packed = np.ascontiguousarray(K[:, rows, columns].T)
    # rounding, times the condition of the matrices
    np.testing.assert_allclose(log_determinants(packed), np.linalg.slogdet(K)[1], atol=1e-10)


def test_roots_of_distances_obey_the_triangle_inequality():
    D = np.sqrt(distances(walks(40, seed=4), n_samples=8))
    detours = (D[:, :, None] + D[None, :, :]).min(axis=1)
    assert (D - detours).max() <= 1e-6  # the root of the rounding of distances near zero


def test_smooth_kernels_are_nearer_to_each_other_than_to_a_line_or_a_period():
    # BOMS figure 1
    base = [parse_expression(f"{name}[0]") for name in ("SE", "RQ", "PER", "LIN")]
    D = distances(base)
    assert D[0, 1] < 0.5 * D[:2, 2:].min()


def test_distances_do_not_depend_on_what_is_cached():
    kernels = list({kernel.canonical: kernel for kernel in walks(25, seed=9)}.values())
    expected = distances(kernels, X=X[:3], n_samples=1)
    known = HellingerKernel(X[:3], PRESETS["default"], n_samples=1)
    known.distances(kernels[:5], kernels[:2])
    many = {e.canonical: e for e in walks(4 * MAX_CACHED_EXPRESSIONS, seed=12)}.values()
    assert len(many) > MAX_CACHED_EXPRESSIONS  # the first ones are dropped
    for some in np.array_split(np.array(list(many), dtype=object), 8):
        known.distances(list(some), kernels[:1])
    np.testing.assert_allclose(known.distances(kernels)[0], expected, rtol=0, atol=ROUNDING)


def test_the_noise_prior_does_not_matter_and_the_others_do():
    default = distance("SE[0]", "LIN[0]")
    assert default == distance("SE[0]", "LIN[0]", priors={"noise_variance": (1, 100)})
    assert default != distance("SE[0]", "LIN[0]", priors={"lengthscale": (3, 1)})
    assert default != distance("SE[0]", "LIN[0]", priors=PRESETS["paper"])  # of the slope


@pytest.mark.filterwarnings("error")
def test_priors_may_be_so_wide_that_variances_vanish():
    priors = {"variance": (1e-3, 1), "lengthscale": (1e-3, 1)}
    kernels = [parse_expression(text) for text in ("SE[0]", " * ".join(["SE[0]"] * 10), "LIN[0]")]
    D = distances(kernels, priors=priors)
    assert np.isfinite(D).all()


def test_covariances_that_overflow_are_an_error():
    with pytest.raises(ValueError, match=r"X must be .* of LIN\[0\] \* LIN\[0\] do not overflow"):
        distance("LIN[0] * LIN[0]", "SE[0]", X=np.array([[1e100], [2e100]]))
