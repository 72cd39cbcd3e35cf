"""Noise whose variance changes with the columns, found by the evidence.

The variance of a row is ``s exp(g)``, and g is a sum of at most two terms of one column each. Each
has a price, so that noise is constant unless the rows show that it is not. Terms are first compared
by their score test (Breusch and Pagan 1979, Econometrica 47), and the best of them are then fitted
with all parameters of a kernel. Heavy tails alone are no reason for a term, nor are residuals of
one sign next to each other, such as those of a step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from autokernel.data import NoiseFunction, NoiseTerm
from autokernel.data.noise import FORMS, GAP, LEVELS, MAX_TERMS, N_KNOTS
from autokernel.deadline import Deadline
from autokernel.evidence.evaluation import Evaluation
from autokernel.evidence.maximise import Point, maximise, standard_deviations
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import fallback
from autokernel.inference import ExactLikelihood, TrainingData, one_blas_thread
from autokernel.kernels import Priors
from autokernel.typing import FloatArray

PRICE = 0.5  # nats of a term, besides the choice among all terms of values, or of gaps
MIN_GAIN = 0.5  # nats by which another function must be better than the known one
MIN_ROWS = 30  # with fewer, noise is constant
MAX_LEVELS = 30  # of a category
_MAX_STEPS = 60  # of a fit


def update_noise(
    data: TrainingData,
    columns: Sequence[int],
    fit: Evaluation,
    least: float,
    *,
    priors: Priors,
    deadline: Deadline,
    found: dict[str, "FittedNoise"],
) -> tuple[NoiseFunction, float]:
    """Find how the noise varies around one kernel, on its scale of the target.

    Another function is taken if it gains :data:`MIN_GAIN` nats over the known one, and over the
    ``least`` score. Returns also the score, or the ``least``. With weights that are no numbers of
    readings, the noise stays as before. Each of a few fits takes some dozen likelihood calls,
    O(n_samples^3) each. Noise that varies with one of the ``columns`` is kept in ``found``, by the
    text of its kernel, for the next call with the same rows.
    """
    data = data.on(fit.expression.target)
    known, counts = data.noise_function, data.noise.counts
    is_possible = len(data.y) >= MIN_ROWS and np.isfinite(fit.log_posterior)
    if not is_possible or np.any(counts != np.round(counts)):
        return known, least
    with fallback("how the noise varies is not judged"), one_blas_thread():
        if (best := found.get(fit.expression.canonical)) is None:
            terms = [*_candidates(data, columns)]
            best = _Search(fit, data, terms, priors, deadline).best(least - fit.score)
            if best.terms:  # constant noise may only mean that the search has ended early
                found[fit.expression.canonical] = best
        gain = best.value - fit.log_posterior - known.log_prior
        if min(gain, fit.score + gain - least) > MIN_GAIN:
            return NoiseFunction(best.terms, best.log_prior), fit.score + gain
    return known, least


def _candidates(data: TrainingData, columns: Sequence[int]) -> Iterator[NoiseTerm]:
    """Yield the possible terms, whose coefficients are zero."""
    for number in columns:
        x = data.inputs.raw(number)
        known = x[~np.isnan(x)]
        knots: dict[str, FloatArray] = {}
        if min(len(known), len(x) - len(known)) >= 5:
            knots[GAP] = np.empty(0)
        if data.inputs.columns[number].levels is not None:
            knots[LEVELS] = np.unique(known)
        else:
            quantiles = np.quantile(known, np.linspace(0, 1, N_KNOTS))
            knots["linear"] = knots["smooth"] = np.unique(quantiles)
        for form, values in knots.items():
            if len(values) <= MAX_LEVELS:
                centre = np.nanmean(FORMS[form](x, values), axis=0)
                k = len(centre)
                yield NoiseTerm(number, form, values, centre, np.zeros(k), np.eye(k))


class FittedNoise(NamedTuple):
    """Parameters of a kernel and terms of its noise, at the maximum of their log posterior.

    The ``value`` is that maximum plus ``log_prior``: the log of the prior density of the terms
    times the volume of their posterior, less their prices.
    """

    theta: FloatArray  # (n_params,)
    terms: tuple[NoiseTerm, ...]
    log_prior: float
    value: float


class _Search:
    """A search of the terms of the noise around the fit of one kernel, from constant noise."""

    def __init__(
        self,
        fit: Evaluation,
        data: TrainingData,
        candidates: Sequence[NoiseTerm],
        priors: Priors,
        deadline: Deadline,
    ) -> None:
        self._likelihood = ExactLikelihood(fit.expression, data.with_varying({}))
        self._posterior = LogPosterior(self._likelihood, priors=priors)
        self._deadline, self._inputs, self._candidates = deadline, data.inputs, candidates
        self._units = standard_deviations(np.nan_to_num(fit.hessian))
        n_steps = _MAX_STEPS if data.noise_function.terms else 0
        start = Point(fit.theta, curvature=np.diag(self._units**-2))
        start = maximise(self._posterior, start, max_iterations=n_steps)
        self._start = FittedNoise(start.theta, (), 0.0, start.log_posterior)

    def best(self, needed: float) -> FittedNoise:
        """Add the best term as long as one is worth its price, if it may gain what is needed."""
        fit = self._start
        if fit.theta[-1] < self._posterior.lower[-1] + np.log(10.0):  # next to no noise
            return fit
        for _ in range(MAX_TERMS):
            own = [(term.column, term.form) for term in fit.terms]
            others = [one for one in self._candidates if (one.column, one.form) not in own]
            gains = self._expected_gains(fit, others)
            # a gain is at most three times as large as expected, and two nats
            if not fit.terms and 3 * (gains.max(initial=-np.inf) + 2) < needed:
                break
            likely = [n for n in np.argsort(-gains, kind="stable") if gains[n] > -0.5]
            fits = [self._fitted(fit, others[n]) for n in likely[:3]]
            fits.sort(key=lambda one: -one.value)
            best = next((one for one in fits if not self._is_misfit(one)), fit)
            if best is fit:
                break
            price = self._price(best.terms[-1])
            if not (best.value - fit.value + price) * self._share_of_normal(best) > price:
                break
            fit = best
        return fit

    def _price(self, term: NoiseTerm) -> float:
        n_alike = sum((one.form == GAP) == (term.form == GAP) for one in self._candidates)
        return PRICE + float(np.log(n_alike))

    def _share_of_normal(self, fit: FittedNoise) -> float:
        """Return the share of a gain that normal noise would have, if tails are heavy.

        The score of each row has the variance of its squared residual, which is 2 for normal noise
        (Koenker 1981, J. Econometrics 17).
        """
        errors, variances = self._likelihood_of(fit).leave_one_out_errors(fit.theta)
        return min(1.0, 2 / float(np.mean((errors**2 / variances - 1) ** 2)))

    def _is_misfit(self, fit: FittedNoise) -> bool:
        """Whether residuals of one sign follow each other where the last term raises the noise."""
        term = fit.terms[-1]
        if term.form in (GAP, LEVELS):
            return False
        x = self._inputs.raw(term.column)
        errors, variances = self._likelihood_of(fit).leave_one_out_errors(fit.theta)
        order = np.argsort(x, kind="stable")
        is_raised = (term.basis(x) @ term.coefficients > 0)[order]
        residuals = np.where(is_raised, (errors / np.sqrt(variances))[order], 0.0)
        products = np.sqrt(is_raised.sum()) * (residuals[1:] @ residuals[:-1])
        return bool(products > 2.33 * (residuals @ residuals))  # white noise: 1 % exceed it

    def _expected_gains(self, fit: FittedNoise, terms: Sequence[NoiseTerm]) -> FloatArray:
        """Expect how much evidence each term gains, by a parabola of its coefficients.

        A few large residuals alone, of 2 % of the rows, are no reason for a term, and are clipped.
        """
        own, likelihood = self._basis(fit.terms), self._likelihood_of(fit)
        _, _, slopes = likelihood.value_and_gradients(fit.theta)
        errors, variances = likelihood.leave_one_out_errors(fit.theta)
        squares = errors**2 / variances
        beyond = np.maximum(squares - np.quantile(squares, 0.98), 0.0)
        slopes -= 0.5 * np.exp(fit.theta[-1]) * likelihood.noise.slope / variances * beyond
        of_rows, k = _information(likelihood, fit.theta), own.shape[1]
        gains = np.empty(len(terms))
        for n, term in enumerate(terms):
            self._deadline.check()
            basis = self._basis([term])
            B = _of_basis(of_rows, np.hstack([own, basis]))
            B = B[k:, k:] - B[k:, :k] @ np.linalg.solve(B[:k, :k], B[:k, k:])
            slope = basis.T @ slopes
            gains[n] = 0.5 * (slope @ np.linalg.solve(B, slope) - np.linalg.slogdet(B)[1])
        return gains

    def _fitted(self, fit: FittedNoise, another: NoiseTerm) -> FittedNoise:
        """Maximise over the parameters of the kernel and all coefficients."""
        terms, posterior = (*fit.terms, another), self._posterior
        basis, b, p = self._basis(terms), _coefficients(terms), len(fit.theta)
        first = np.concatenate([fit.theta, b])
        B = _of_basis(_information(self._likelihood_of(fit), fit.theta), basis)
        units = np.concatenate([self._units, np.diag(B) ** -0.5])
        free = np.full(len(b), np.inf)
        lower = (np.concatenate([posterior.lower, -free]) - first) / units
        upper = (np.concatenate([posterior.upper, free]) - first) / units
        worst = 1e3 - fit.value  # where the covariance has no Cholesky factor

        def negative(z: FloatArray) -> tuple[float, FloatArray]:
            self._deadline.check()
            theta, b = np.split(first + units * z, [p])
            if (theta[-1] + basis @ b).min() < posterior.lower[-1]:  # no digits would be left
                return worst, np.zeros(len(z))
            try:
                value, of_kernel, of_rows = self._with(basis @ b).value_and_gradients(theta)
            except LinAlgError:
                return worst, np.zeros(len(z))
            value += float(posterior.prior.log_density(theta)) - 0.5 * float(b @ b)
            of_theta = np.append(of_kernel, of_rows.sum()) + posterior.prior.gradient(theta)
            return -value, -units * np.concatenate([of_theta, basis.T @ of_rows - b])

        options = {"maxiter": _MAX_STEPS, "ftol": 1e-6}
        bounds = np.column_stack([lower, upper])
        found = minimize(negative, np.zeros(len(first)), jac=True, bounds=bounds, options=options)
        theta, b = np.split(first + units * found.x, [p])
        B = _of_basis(_information(self._with(basis @ b), theta), basis)
        log_prior = -0.5 * float(np.linalg.slogdet(B)[1]) - sum(map(self._price, terms))
        value = log_prior - float(found.fun)
        covariance = np.linalg.inv(B).astype(float)
        ends = np.cumsum([0, *(len(term.coefficients) for term in terms)])
        fitted = tuple(
            replace(term, coefficients=b[begin:end], covariance=covariance[begin:end, begin:end])
            for term, begin, end in zip(terms, ends, ends[1:], strict=False)
        )
        return FittedNoise(theta, fitted, log_prior - 0.5 * float(b @ b), value)

    def _basis(self, terms: Sequence[NoiseTerm]) -> FloatArray:
        nothing = np.empty((len(self._inputs), 0))
        return np.hstack([nothing, *(one.basis(self._inputs.raw(one.column)) for one in terms)])

    def _likelihood_of(self, fit: FittedNoise) -> ExactLikelihood:
        return self._with(self._basis(fit.terms) @ _coefficients(fit.terms))

    def _with(self, log_factors: FloatArray) -> ExactLikelihood:
        noise = self._likelihood.data.noise.changed(log_factors=log_factors)
        return self._likelihood.with_noise(noise)


def _information(likelihood: ExactLikelihood, theta: FloatArray) -> FloatArray:
    """Compute the expected information (n, n) of the logs of the noise variances of the rows.

    Readings of one row add that of their scatter.
    """
    inverse = likelihood.factorise(likelihood.matrix(theta)).inverse()
    noise, variances = likelihood.noise, np.exp(theta[-1]) * likelihood.noise.slope
    found = 0.5 * np.outer(variances, variances) * inverse**2
    share = variances / (variances + noise.rounding / noise.weights)  # that is not of rounding
    found[np.diag_indices(len(found))] += 0.5 * np.maximum(noise.counts - 1, 0.0) * share**2
    return found


def _of_basis(of_rows: FloatArray, basis: FloatArray) -> FloatArray:
    """Compute the precision of coefficients, without what the common variance explains."""
    with_common = np.column_stack([np.ones(len(basis)), basis])
    F = with_common.T @ of_rows @ with_common
    return F[1:, 1:] - np.outer(F[1:, 0], F[1:, 0]) / F[0, 0] + np.eye(basis.shape[1])


def _coefficients(terms: Sequence[NoiseTerm]) -> FloatArray:
    return np.concatenate([np.empty(0), *(term.coefficients for term in terms)])
