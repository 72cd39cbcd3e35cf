"""Rows that do not fit: each is described better by a noise variance that only this row has.

Such a row is excluded. Relevance pursuit (Ament et al. 2024, arXiv:2410.24222) gives more and more
rows a variance, those first that gain most of the log evidence, and each of them has a price.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, poch
from scipy.stats import mode, norm, poisson

from autokernel.data import RowNoise
from autokernel.data.noise import LOG_2PI
from autokernel.data.scales import MIN_DISTINCT, mean_and_variance
from autokernel.data.shared import shared_by
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence.evaluation import Evaluation
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.mode_search import ModeSearch
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.starts import Magnitudes, draw_starts, highest, random_stream
from autokernel.exceptions import fallback
from autokernel.expression import IDENTITY, Expression, arrange, theta_order
from autokernel.inference import (
    ExactLikelihood,
    ExactPredictor,
    Moments,
    TrainingData,
    one_blas_thread,
)
from autokernel.kernels import PRESETS, Priors
from autokernel.typing import BoolArray, FloatArray, IntArray

MAX_ROWS = 400  # of the pursuit; others are judged by the fit to these
MAX_SHARE = 0.15  # of the rows, which may be outliers
MIN_ADVANTAGE = 5.0  # nats of outliers among normal deviations over heavy tails of all
ADVANTAGE_OF_EACH = 1.25  # nats that each outlier must bring: 0.9 to 1.1 in Pareto and t tails
NEIGHBOUR_RANKS = (1, 2)  # differences of rank along a column
LOG_DEGREES_OF_FREEDOM = (1.1, 3.9)  # of heavy tails, of three and of fifty
LOG_WIDTHS, MODES = (-20.0, 230.0), (-10.0, 10.0)  # of heavy tails, in the size of most deviations


def find_outliers(
    data: TrainingData,
    expressions: Sequence[Expression],
    rivals: Sequence[Expression],
    *,
    priors: Priors,
    seed: int,
    n_rows: int = MAX_ROWS,
    deadline: Deadline = NEVER,
) -> IntArray:
    """Find the rows of the data that do not fit, before any search.

    The pursuit goes by a few simple kernels, on all scales of the target that are tried, and the
    one of the highest score decides. If there are outliers, kernels that may explain them, the
    ``rivals``, are fitted to all rows, on the same scale. Each fit is of at most ``n_rows`` rows.
    An ``OutOfTimeError`` is raised after the deadline.
    """
    pursue = partial(
        _Pursuit, data=data, priors=priors, seed=seed, n_rows=n_rows, deadline=deadline
    )
    ends: list[tuple[_Fit, _Pursuit]] = []
    for expression in expressions:
        with fallback(f"outliers are not judged by {expression}"), one_blas_thread():
            pursuit = pursue(expression)
            if not pursuit.is_possible(pursuit.rows & pursuit.has_target):
                continue
            fit = pursuit.first()
            sizes = np.abs(fit.deviations[pursuit.has_target])
            if sizes.max() * norm.ppf(0.75) > 4.0 * np.median(sizes):  # robust deviations
                fit = pursuit.settled(pursuit.highest(fit))
            ends.append((fit, pursuit))
    if not ends:
        return np.empty(0, dtype=int)
    best = max(ends, key=lambda end: end[0].score)
    for rival in rivals if len(best[1].outliers(best[0])) else ():
        with fallback(f"outliers are not judged by {rival}"), one_blas_thread():
            pursuit = pursue(rival.on(best[1].target))
            best = max(best, (pursuit.thorough(), pursuit), key=lambda end: end[0].score)
    return best[1].outliers(best[0])


def update_outliers(
    data: TrainingData,
    fit: Evaluation,
    known: IntArray,
    *,
    priors: Priors,
    seed: int,
    deadline: Deadline = NEVER,
) -> IntArray:
    """Judge all rows again by a kernel that was fitted without the ``known`` outliers.

    The target is standardised as in this fit. Rows that the kernel explains come back. These are
    all rows if the score of its fit to all rows is higher, as that may show what the others do not.
    """
    pursue = partial(_Pursuit, fit.expression, data, priors=priors, seed=seed, deadline=deadline)
    with fallback("outliers are not judged again"), one_blas_thread():
        pursuit = pursue(known)
        kept = pursuit.rows.copy()
        kept[known] = False
        found = pursuit.settled(pursuit.at(kept, fit.theta))
        if len(known):
            of_all = pursue()
            if (rival := of_all.thorough()).score > found.score:
                return of_all.outliers(of_all.settled(rival))
        return pursuit.outliers(found, known)
    return known


def new_outliers(
    data: TrainingData,
    rows: TrainingData,
    fit: Evaluation,
    errors: Moments,
    numbers: IntArray,
    known: BoolArray,
) -> BoolArray:
    """Judge new rows by a kernel whose parameters stay, and by its ``errors`` given the data.

    As before a search, more and more of the new rows are freed. Those of a new level of the target
    are no outliers, as soon as more rows have it than are excluded by chance; the others must be
    outliers together, except for ``known`` ones, which stay excluded as long as they do not fit.
    Rows of the data are not judged again. All rows have ``numbers`` in the order in which they have
    come. Returns a mask (n_rows,) of the new rows.

    Where no new row is far from its prediction by the data, or by all other rows, this takes
    O(n^2), and otherwise a few factorisations of at most ``MAX_ROWS`` rows.
    """
    n, every = len(data.y), np.arange(len(data.y) + len(rows.y))
    with fallback("all new rows join, as they are not judged"), one_blas_thread():
        error, covariance = errors
        precision = np.linalg.inv(covariance)
        of_data = error / np.sqrt(np.diag(covariance))
        of_others = precision @ error / np.sqrt(np.diag(precision))
        if max(map(np.max, map(_gains, (of_data, of_others)))) > np.log(len(every)):
            # the prior of parameters that stay is a constant, whichever it is
            settings: dict[str, Any] = {"priors": PRESETS["default"], "seed": 0, "numbers": numbers}
            pursuit = _Pursuit(fit.expression, data.joined(rows), every[n:], **settings)
            found = pursuit.settled(pursuit.highest(pursuit.at(pursuit.rows, fit.theta)))
            return np.isin(every[n:], pursuit.outliers(found, every[n:][known]))
    return np.zeros(len(rows.y), dtype=bool)


class _Fit(NamedTuple):
    """A kernel that is fitted without the rows that have a variance."""

    kept: BoolArray  # (n_samples,)
    given: TrainingData  # these rows, by their standardised target
    point: Point
    score: float  # nats, the log posterior less the price of the rows that are freed
    deviations: FloatArray  # (n_samples,), from predictions by other kept rows, NaN if not known
    precision: FloatArray  # (n_kept, n_kept), the inverse of the covariance
    alpha: FloatArray  # (n_kept,)


class _Pursuit:
    """Fits of one kernel to the rows that are kept.

    Of many rows, some are used, the ``known`` outliers among them. The target is standardised for
    each fit, unless outliers are known. With ``numbers`` of the rows, which count as a column along
    which a level may change, only the known ones are judged, and parameters stay.
    """

    def __init__(
        self,
        expression: Expression,
        data: TrainingData,
        known: IntArray | None = None,
        *,
        priors: Priors,
        seed: int,
        deadline: Deadline = NEVER,
        n_rows: int = MAX_ROWS,
        numbers: IntArray | None = None,
    ) -> None:
        self.target = expression.target
        self._expression, nodes = arrange(expression.tree)
        self._data = data = data.on(self.target)
        self._order = theta_order(expression, nodes)
        self._standardises, n = known is None, len(data.y)
        self._priors, self._seed, self._deadline = priors, seed, deadline
        self._price = float(np.log(n))
        self._starts: list[Point] = []
        self.has_target = np.isfinite(data.noise.log_slopes)
        self._has_gap = np.isnan(data.X[:, sorted(expression.columns)]).any(axis=1)
        self._numbers = numbers
        is_known = np.isin(np.arange(n), [] if known is None else known)
        self._is_judged = is_known | (numbers is None)
        self.rows = np.ones(n, dtype=bool)
        if n > n_rows:
            self.rows[np.random.default_rng(seed).permutation(n)[n_rows:]] = False
            self.rows |= is_known

    def is_possible(self, kept: BoolArray) -> bool:
        """Whether enough rows are kept, with targets that differ."""
        is_most = (self.rows & ~kept).sum() <= MAX_SHARE * self.rows.sum()
        values, counts = np.unique(self._data.y[kept], return_counts=True)
        return bool(is_most and len(values) >= MIN_DISTINCT and counts.max() <= kept.sum() / 2)

    def first(self) -> _Fit:
        """Fit the kernel to all rows that the scale of the target has."""
        kept = self.rows & self.has_target
        posterior = self._posterior(kept)
        modes = ModeSearch(posterior.data, priors=self._priors, seed=self._seed)
        rng = random_stream(self._seed, self._expression, "outliers")
        drawn = draw_starts(posterior, Magnitudes(posterior.data), 6, rng=rng)
        self._starts = [Point(theta) for theta in drawn]
        _, rough = modes.rough_mode(posterior.expression, self._deadline)
        return self._of_all_rows(self._fit(kept, posterior, [rough], n_steps=25))

    def thorough(self) -> _Fit:
        kept = self.rows & self.has_target
        posterior = self._posterior(kept)
        modes, _ = ModeSearch(posterior.data, priors=self._priors, seed=self._seed)(posterior)
        return self._fit(kept, posterior, modes[:1], n_steps=0)

    def at(self, kept: BoolArray, theta: FloatArray) -> _Fit:
        return self._fit(kept, self._posterior(kept), [Point(theta[self._order])], n_steps=0)

    def _again(self, fit: _Fit, kept: BoolArray) -> _Fit:
        """Fit to other rows by a few steps, from the last point and from the best other start."""
        posterior = self._posterior(kept)
        starts = [fit.point, *highest(posterior, self._starts, 1)]
        return self._fit(kept, posterior, starts, n_steps=6)

    def highest(self, fit: _Fit) -> _Fit:
        """Free more and more rows, and return the fit of the highest score on the way.

        Most of the gain may come with the last row, so that only a deep fall ends it.
        """
        best = fit
        while best.score - fit.score < 4 * self._price:
            n_freed = int((self.rows & ~fit.kept).sum())
            kept = fit.kept.copy()
            kept[_next_rows(fit, max(1, n_freed // 4), self._is_judged)] = False
            if np.array_equal(kept, fit.kept) or not self.is_possible(kept):
                break
            fit = self._again(fit, kept)
            best = max(best, fit, key=lambda one: one.score)
        return best

    def settled(self, fit: _Fit) -> _Fit:
        """Let each row come or go that is worth it by itself, while the score rises."""
        for _ in range(5):
            kept = self.rows & ~self._is_worth_it(fit)
            if np.array_equal(kept, fit.kept) or not self.is_possible(kept):
                break
            if not (other := self._again(fit, kept)).score > fit.score:
                break
            fit = other
        return fit

    def outliers(self, fit: _Fit, known: IntArray | None = None) -> IntArray:
        """Return the rows that are outliers, and not the tail of a wide distribution.

        If they do not pass as outliers together, those that are ``known`` and still do not fit are.
        Numbered rows of a new level join before the others are compared.
        """
        fit = self._of_all_rows(fit)
        does_not_fit, deviations = self._is_worth_it(fit), fit.deviations.copy()
        candidates = np.flatnonzero(np.where(self.rows, ~fit.kept, does_not_fit))
        if self._numbers is not None:
            candidates = np.union1d(candidates, np.flatnonzero(does_not_fit))
            while len(candidates) and len(level := self._recurring(candidates, deviations)):
                candidates, deviations[level] = np.setdiff1d(candidates, level), np.nan
            if len(candidates) > MAX_SHARE * len(self.rows):
                return candidates[:0]
        found, are_far = _far_apart(deviations, candidates)
        few = len(found) <= MAX_SHARE * len(self.rows)
        if few and are_far and not len(self._recurring(found, deviations)):
            return found
        return np.intersect1d(candidates, [] if known is None else known).astype(int)

    def _recurring(self, rows: IntArray, deviations: FloatArray) -> IntArray:
        """Return those of the rows that do not fit which are likely to recur.

        Where a function jumps, rows that are near to each other do not fit. If they are next to
        each other along a column more often than by chance, they are the longest run of neighbours,
        none twice as far off as the next one. Otherwise they are rows that share most, if that is
        more than by chance.
        """
        used = np.flatnonzero(self.rows)
        n, k = len(used), len(np.intersect1d(rows, used))
        expected = sum(n - lag for lag in NEIGHBOUR_RANKS) * k * (k - 1) / (n * (n - 1))
        numbers = used if self._numbers is None else self._numbers[used]
        along = [self._data.X[used, column] for column in self._expression.columns]
        for x in along if self._numbers is None else [*along, numbers]:
            order = used[np.lexsort((numbers, x))]
            places = np.flatnonzero(np.isin(order, rows))
            n_found = np.isin(places - places[:, None], NEIGHBOUR_RANKS).sum()
            if poisson.sf(n_found - 1, expected) < 1e-3:
                off, is_far = deviations[order[places]], np.diff(places) > max(NEIGHBOUR_RANKS)
                least = np.minimum(np.abs(off[1:]), np.abs(off[:-1]))
                ends = np.flatnonzero(is_far | (np.abs(np.diff(off)) > least)) + 1
                return max(np.split(order[places], ends), key=len)
        shared = shared_by(self._data.inputs, np.isin(np.arange(len(deviations)), rows), self._seed)
        if shared is None:
            return rows[:0]
        return rows[shared.groups[rows] == mode(shared.groups[rows], nan_policy="omit").mode]

    def _is_worth_it(self, fit: _Fit) -> BoolArray:
        """Whether a variance of each row gains more than its price.

        A row of which an input is missing must also be beyond all other targets, as some value of
        this input may explain it.
        """
        y = self._data.y
        of_known = y[fit.kept & ~self._has_gap]
        low, high = (of_known.min(), of_known.max()) if len(of_known) else (-np.inf, np.inf)
        may_fit = self._has_gap & (low <= y) & (y <= high)
        return (_gains(fit.deviations) > self._price) & ~may_fit & self._is_judged

    def _posterior(self, kept: BoolArray) -> LogPosterior:
        likelihood = ExactLikelihood(self._expression, self._standardised(kept, kept))
        return LogPosterior(likelihood, priors=self._priors, deadline=self._deadline)

    def _standardised(self, rows: BoolArray, kept: BoolArray) -> TrainingData:
        """Return rows with the target that is standardised over the kept ones."""
        data, mean, variance = self._data, 0.0, 1.0
        if self._standardises:
            mean, variance = mean_and_variance(data.y[kept], data.noise.influence[kept])
        noise = data.noise.take(np.flatnonzero(rows))
        errors, rounding = noise.errors / variance, noise.rounding / variance
        log_slopes = noise.log_slopes - 0.5 * np.log(variance)
        noise = noise.changed(errors=errors, rounding=rounding, log_slopes=log_slopes)
        return TrainingData(data.inputs[rows], (data.y[rows] - mean) / np.sqrt(variance), noise)

    def _fit(
        self, kept: BoolArray, posterior: LogPosterior, starts: Sequence[Point], *, n_steps: int
    ) -> _Fit:
        """Maximise from some starts, and compare each used row with its prediction by others."""
        if self._numbers is not None:  # theta may be beyond the bounds of another prior
            ends = [Point(start.theta, posterior.value(start.theta)) for start in starts]
        else:
            run = partial(maximise, posterior, max_iterations=n_steps, tolerance=1e-2)
            ends = list(map(run, starts))
        point = max(ends, key=lambda end: end.log_posterior)
        theta, given = point.theta, posterior.data
        likelihood = ExactLikelihood(self._expression, given)
        cholesky = likelihood.factorise(likelihood.matrix(theta))
        alpha, precision = cholesky.solve(given.y), cholesky.inverse()
        deviations = np.where(self.rows | ~self.has_target, np.inf, np.nan)
        deviations[kept] = alpha / np.sqrt(np.diag(precision))
        freed = self.rows & ~kept
        score = point.log_posterior - self._price * freed.sum()
        if (rest := freed & self.has_target).any():
            errors, variance, noise = self._errors(rest, kept, given, theta)
            deviations[rest] = errors / np.sqrt(variance)
            others = _log_normal_at_best(np.maximum(errors**2, variance))
            score += (others + noise.corrections(theta[-1])).sum()
        beyond, y = freed & ~self.has_target, self._data.on(IDENTITY).y
        centre, spread = mean_and_variance(y[kept])  # rows beyond the scale count as they are
        score += _log_normal_at_best(np.maximum((y[beyond] - centre) ** 2, spread)).sum()
        return _Fit(kept, given, point, float(score), deviations, precision, alpha)

    def _of_all_rows(self, fit: _Fit) -> _Fit:
        """Compare the rows that the pursuit does not use with their predictions too."""
        others, deviations = np.isnan(fit.deviations), fit.deviations.copy()
        if others.any():
            errors, variance, _ = self._errors(others, fit.kept, fit.given, fit.point.theta)
            deviations[others] = errors / np.sqrt(variance)
        return fit._replace(deviations=deviations)

    def _errors(
        self, rows: BoolArray, kept: BoolArray, given: TrainingData, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray, RowNoise]:
        """Return the errors of predictions from the kept rows, their variances and the noise."""
        held_out, blocks = self._standardised(rows, kept), []
        predictor = ExactPredictor(self._expression, theta, given)
        for begin in range(0, len(held_out.X), 4096):
            self._deadline.check()
            blocks.append(predictor.function(held_out.X[begin : begin + 4096]))
        mean, variance = map(np.concatenate, zip(*blocks, strict=True))
        variance += held_out.noise.variance(np.exp(theta[-1]))
        return held_out.y - mean, variance, held_out.noise


def _gains(deviations: FloatArray) -> FloatArray:
    """Compute what each row gains by its own noise variance, in nats."""
    r = np.clip(deviations**2, 1.0, 1e300)  # finite beyond the scale of the target too
    return 0.5 * (r - 1 - np.log(r))


def _log_normal_at_best(sum_of_squares: FloatArray, n: IntArray | int = 1) -> FloatArray:
    """Compute the log likelihood of n normal numbers whose variance is as likely as possible."""
    return -0.5 * n * (LOG_2PI + np.log(sum_of_squares / n) + 1)


def _next_rows(fit: _Fit, n: int, is_judged: BoolArray) -> IntArray:
    """Choose at least n judged rows to free, if there are any, by the gain for each row.

    They are single ones, or two or three near ones together, those of the largest partial
    correlation. Two neighbours that are both off predict each other, and only both together gain.
    """
    P, alpha = fit.precision, fit.alpha
    std = np.sqrt(np.diag(P))
    closeness = np.abs(P) / np.outer(std, std)
    np.fill_diagonal(closeness, np.inf)  # each row is its own first
    near = np.empty((len(P), min(3, len(P))), dtype=int)
    for nearest in near.T:
        nearest[:] = closeness.argmax(axis=1)
        closeness[np.arange(len(P)), nearest] = -np.inf
    gains: list[float] = []
    groups: list[IntArray] = []
    for size in range(1, near.shape[1] + 1):
        rows = near[:, :size]
        blocks = P[rows[:, :, None], rows[:, None, :]]
        covariances = np.linalg.inv(blocks)
        errors = np.einsum("nij,nj->ni", covariances, alpha[rows])  # of all of a group
        variances = np.diagonal(covariances, axis1=1, axis2=2)
        fits = np.einsum("ni,ni->n", errors, alpha[rows]) - np.linalg.slogdet(blocks)[1]
        own = _log_normal_at_best(np.maximum(errors**2, variances)).sum(axis=1)
        gains += ((0.5 * (fits + size * LOG_2PI) + own) / size).tolist()
        groups += list(rows)
    chosen: list[int] = []
    may_go = is_judged[fit.kept]
    for number in np.argsort(-np.array(gains), kind="stable"):
        if len(chosen) >= n:
            break
        if may_go[groups[number]].all() and not np.isin(groups[number], chosen).any():
            chosen += groups[number].tolist()
    return np.flatnonzero(fit.kept)[chosen]


def _far_apart(deviations: FloatArray, candidates: IntArray) -> tuple[IntArray, bool]:
    """Choose the farthest candidates, and compare them with heavy tails of all rows.

    The second result is whether outliers among normal deviations have enough of an advantage, for
    the best number of outliers. They are normal too, with a larger variance, and all choices of
    this number of rows are equally probable. A few far values of one heavy tail may lie apart from
    the others by chance: many outliers need a larger advantage. Rows without a deviation, beyond
    the scale of the target, are outliers in any case.
    """
    is_known = np.isfinite(deviations)
    beyond = candidates[~is_known[candidates]]
    candidates = candidates[is_known[candidates]]
    if not len(candidates):
        return beyond, len(beyond) > 0
    squares = deviations[is_known] ** 2
    candidates = candidates[np.argsort(-np.abs(deviations[candidates]), kind="stable")]
    n, k = len(squares), np.arange(1, len(candidates) + 1)
    of_far = np.cumsum(deviations[candidates] ** 2)
    of_near = np.maximum(squares.sum() - of_far, np.finfo(float).tiny)
    log_choices = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    as_outliers = _log_normal_at_best(of_near, n - k) + _log_normal_at_best(of_far, k) - log_choices
    as_tails = _log_of_heavy_tails(deviations[is_known])
    best = int(np.argmax(as_outliers))
    found = np.sort(np.concatenate([candidates[: best + 1], beyond]))
    least = max(MIN_ADVANTAGE, ADVANTAGE_OF_EACH * k[best])
    return found, bool(as_outliers[best] - as_tails > least)


def _log_student(x: FloatArray | float, nu: FloatArray) -> FloatArray:
    """Compute the log density of Student's t as ``scipy.stats`` does, without its checks."""
    constant = np.log(poch(0.5 * nu, 0.5)) - 0.5 * (np.log(nu) + np.log(np.pi))
    return constant - (nu + 1) / 2 * np.log1p(x * x / nu)


def _log_of_heavy_tails(deviations: FloatArray) -> float:
    """Compute the highest log likelihood of numbers (n,) with heavy tails, in nats.

    They are those of Student's t, with one width and one number of degrees of freedom, or with one
    of each on both sides of a mode. The three parameters more have the price of the Bayesian
    information criterion.
    """
    sizes = np.abs(deviations)
    # so that squares do not overflow
    z = deviations / (width := max(float(np.median(sizes)), sizes.max() / 1e100))

    def loss(mode: float, log_widths: FloatArray, log_nus: FloatArray) -> float:
        is_above, widths, nus = (z > mode).astype(int), np.exp(log_widths), np.exp(log_nus)
        at_mode = _log_student(0.0, nus)
        areas = widths / np.exp(at_mode)  # of the sides of a density that is one at the mode
        logs = _log_student((z - mode) / widths[is_above], nus[is_above]) - at_mode[is_above]
        return float(len(z) * np.log(areas.mean()) - logs.sum())

    run = partial(minimize, method="L-BFGS-B")
    bounds = [LOG_WIDTHS, LOG_DEGREES_OF_FREEDOM]
    equal = run(lambda p: loss(0.0, p[[0, 0]], p[[1, 1]]), np.array([0.0, 1.0]), bounds=bounds)
    bounds = [MODES, LOG_WIDTHS, LOG_WIDTHS, LOG_DEGREES_OF_FREEDOM, LOG_DEGREES_OF_FREEDOM]
    starts = [np.array([mode, *equal.x[[0, 0, 1, 1]]]) for mode in (-1.0, 0.0, 1.0)]
    ends = [run(lambda p: loss(p[0], p[1:3], p[3:]), start, bounds=bounds) for start in starts]
    found = min(equal.fun, min(end.fun for end in ends) + 1.5 * np.log(len(z)))
    return float(-found - len(z) * np.log(width))
