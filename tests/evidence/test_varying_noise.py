"""How noise varies around one kernel, against a dense maximisation and the definitions."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import gamma

from autokernel.data import Column, Columns, RowNoise
from autokernel.data.columns import Levels
from autokernel.data.noise import CONSTANT
from autokernel.deadline import NEVER
from autokernel.evidence import Evaluator, update_noise
from autokernel.expression import IDENTITY, View, parse_expression
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS
from tests.model.cases import dense_covariance

PRIORS = PRESETS["paper"]
SETTINGS = {"priors": PRIORS, "deadline": NEVER}
GAMMAS = [(2, 3), (2, 3), (1, 100)]  # of LIN and of the noise in PRIORS: shape and rate
LINE = parse_expression("LIN[0]")
N = 48


def data_of(form, weights, rounding=0.0, n_levels=3, size=1.0):
    """A line with noise of a size that grows with x, or differs between levels of c."""
    n, rng = len(weights), np.random.default_rng(0)
    x, c = rng.uniform(size=n), np.arange(n) % n_levels
    std = {
        "linear": 0.03 * 30**x,
        "levels": np.where(c % 3 == 1, 0.6, 0.15),
        "constant": np.full(n, 0.3),
    }[form]
    y = 2 * x - 1 + size * std / np.sqrt(weights) * rng.normal(size=n)
    kinds = {1: Column("c", levels=Levels(tuple("abcdefghijklmnopqrstuvwxyzABCDEFGH"), False))}
    X = np.column_stack([x, c.astype(float)])
    inputs = Columns.of_names(None, 2, kinds).of_rows(X).inputs(X, first_row=0)
    return TrainingData(inputs, y, RowNoise(weights, rounding=rounding))


def found_in(data, known=CONSTANT):
    data = data.with_varying({IDENTITY: known})
    fit = Evaluator(data, priors=PRIORS, seed=0)(LINE)
    return fit, update_noise(data, (0, 1), fit, fit.score, **SETTINGS, found={})[0]


def basis_of(form, data):
    """The functions of the term by their definitions, with mean zero over the rows."""
    x, c = data.inputs.raw(0), data.inputs.raw(1)
    if form == "levels":
        functions = (c[:, None] == [0, 1, 2]).astype(float)
    else:  # 2.4 times the rank among seven quantiles
        knots = np.quantile(x, np.linspace(0, 1, 7))
        functions = 2.4 * np.interp(x, knots, np.linspace(0, 1, 7))[:, None]
    return functions - functions.mean(axis=0)


def precision_of(information, basis):
    """That of the coefficients, whose prior is standard normal, without the common variance."""
    both = np.column_stack([np.ones(len(basis)), basis])
    F = both.T @ information @ both
    return np.eye(basis.shape[1]) + F[1:, 1:] - np.outer(F[1:, 0], F[1:, 0]) / F[0, 0]


@pytest.mark.parametrize(
    ("form", "most", "rounding"),
    [("linear", 1, 0.0), ("levels", 1, 0.01), ("linear", 3, 0.01), ("levels", 3, 0.0)],
)
def test_a_term_is_where_the_dense_posterior_is_largest_and_has_its_evidence(form, most, rounding):
    weights = np.random.default_rng(1).integers(1, most, N, endpoint=True)
    data = data_of(form, weights.astype(float), rounding)
    fit, found = found_in(data)
    (term,) = found.terms
    assert term.form == form
    reading = np.repeat(np.arange(N), weights)  # each of which is a row here
    x, y = data.inputs.view(View(0))[reading, None], data.y[reading]
    basis = basis_of(form, data)[reading]

    def covariance(z):
        variance = np.exp(z[2] + basis @ z[3:])
        return dense_covariance(LINE, np.exp(z[:2]), x, x) + np.diag(variance + rounding)

    def negative(z):
        prior = sum(
            gamma.logpdf(np.exp(t), shape, scale=1 / rate) + t
            for t, (shape, rate) in zip(z, GAMMAS, strict=False)
        )
        K = covariance(z)
        fit_and_volume = y @ np.linalg.solve(K, y) + np.linalg.slogdet(K)[1]
        return 0.5 * (z[3:] @ z[3:] + fit_and_volume) - prior

    best = minimize(negative, np.append(fit.theta, np.zeros(basis.shape[1])), method="BFGS").x
    variance, b = np.exp(best[2] + basis @ best[3:]), best[3:]
    # the expected information of normal noise in the logs of its variances
    information = 0.5 * np.outer(variance, variance) * np.linalg.inv(covariance(best)) ** 2
    B = precision_of(information, basis)
    price = 0.5 + np.log(3)  # linear and smooth in x, levels in c
    expected = -0.5 * b @ b - 0.5 * np.linalg.slogdet(B)[1] - price
    # both stop where the posterior is within 1e-5 of its maximum: b is off by 1e-2 deviations
    np.testing.assert_allclose(term.coefficients, b, atol=0.01)
    np.testing.assert_allclose(term.covariance, np.linalg.inv(B), rtol=0.02, atol=1e-3)
    assert found.log_prior == pytest.approx(expected, abs=0.02)


def test_the_noise_around_a_kernel_is_searched_once():
    data, found = data_of("linear", np.ones(N)), {}
    fit = Evaluator(data, priors=PRIORS, seed=0)(LINE)
    settings = SETTINGS | {"found": found}
    first, score = update_noise(data, (0, 1), fit, fit.score, **settings)
    assert list(found) == [fit.expression.canonical]
    again, same_score = update_noise(data, (0, 1), fit, fit.score, **settings)
    assert again.terms is first.terms
    assert same_score == score
    # it is compared with what is known then
    known = data.with_varying({IDENTITY: first})
    fit = Evaluator(known, priors=PRIORS, seed=0)(LINE)
    assert update_noise(known, (0, 1), fit, fit.score, **settings) == (first, fit.score)


def test_it_is_constant_with_few_rows_with_other_weights_and_with_many_levels():
    ones = np.ones
    assert found_in(data_of("levels", ones(30)))[1].terms
    assert not found_in(data_of("levels", ones(29)))[1].terms
    assert not found_in(data_of("levels", np.full(N, 1.5)))[1].terms
    assert [t.form for t in found_in(data_of("levels", ones(90), n_levels=30))[1].terms] == [
        "levels"
    ]
    assert not found_in(data_of("levels", ones(93), n_levels=31))[1].terms


def test_it_is_constant_next_to_the_floor_of_the_noise_variance():
    """Floors are 1e-8 of the mean square of the target, and ten times that is too near."""
    assert not found_in(data_of("levels", np.ones(N), size=4e-4))[1].terms
    (term,), (other,) = (
        found_in(data_of("levels", np.ones(N), size=size))[1].terms for size in (2e-3, 2e-2)
    )
    # but for the prior of the common variance, and the offset of the line, which is explained
    np.testing.assert_allclose(term.coefficients, other.coefficients, atol=0.02)


def test_it_varies_as_before_unless_another_function_is_better():
    varies, constant = data_of("levels", np.ones(N)), data_of("constant", np.ones(N))
    known = found_in(varies)[1]
    assert found_in(varies, known)[1] is known
    for found in (found_in(constant)[1], found_in(constant, known)[1]):
        assert (found.terms, found.log_prior) == ((), 0.0)
