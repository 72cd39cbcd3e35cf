"""Rows that join a fitted model: what is predicted of them before, and which are outliers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autokernel.data import FitData, RowNoise
from autokernel.data.checks import text_of_rows
from autokernel.evidence import new_outliers
from autokernel.exceptions import kernel_errors, warn_user
from autokernel.fit.finish import deviations_of
from autokernel.fit.rows import training_data
from autokernel.inference import Moments, TrainingData
from autokernel.model import FittedModel, Outcomes, Outliers
from autokernel.typing import BoolArray, FloatArray, IntArray
from autokernel.validation import ends_of_interval

COVERAGE = 0.95  # of the bands of predictions before rows join
N_LATEST = 20  # rows of updates that show whether the fit still holds


def updated(model: FittedModel, given: FitData, *, excludes: bool) -> FittedModel:
    """Condition a model on given rows, but for outliers among them if it ``excludes`` these.

    Rows that earlier updates have excluded, as their outcomes say, are judged again.

    A ``ValueError`` is raised if the scale of the target does not have a row, and outliers are not
    excluded, or if a row has a gap in a column along which a kernel changes. An ``EvaluationError``
    is raised if the model cannot be conditioned on the rows.
    """
    n, given = len(given.y), _with_excluded(model, given)
    data, best = model.mixture.data, model.evaluation
    rows = training_data(given, like=data, columns=given.columns)
    joint, point = model.mixture.joint(model.scaled(given.X)), model.at_best(best)
    found = _predicted(model, given, rows)
    new = slice(len(given.y) - n, None)
    outcomes = {name: np.append(model.outcomes[name], one[new]) for name, one in found.items()}
    (predictor,), of_point = point.predictors, point.joint(rows.X)
    is_outlier = _is_beyond(model, rows)
    within = np.flatnonzero(~is_outlier)
    _say_beyond(model, given, is_outlier, excludes=excludes)
    has_counts = rows.on(best.expression.target).has_counts
    if len(within) and excludes and np.isfinite(best.score) and not has_counts:
        some = rows.take(within)
        errors = predictor.errors(some, *_of_rows(of_point, within))
        numbers = np.concatenate([model.given_rows, given.rows[within]])
        known = np.isin(given.rows[within], model.outliers.rows)
        is_outlier[within] = new_outliers(data, some, best, errors, numbers, known)
    out, joining = np.flatnonzero(is_outlier), np.flatnonzero(~is_outlier)
    deviations = np.empty(0)
    if len(out):
        deviations = deviations_of(rows.take(out), predictor, best.expression)
    outliers = _with_outliers(model.outliers, given, out, deviations)
    rows, given = rows.take(joining), given.without(out)
    joint, of_point = _of_rows(joint, joining), _of_rows(of_point, joining)
    with kernel_errors("the rows cannot join the model"):
        of_best = predictor.log_density(rows, *of_point)
    model = model.with_rows(rows, given, joint, of_best)
    _warn_of_misses(outcomes, n)
    return replace(model, outliers=outliers, outcomes=outcomes)


def is_inside(outcomes: Outcomes) -> BoolArray:
    """Whether each target is within the interval of its prediction."""
    return (outcomes["low"] <= outcomes["y"]) & (outcomes["y"] <= outcomes["high"])


def _warn_of_misses(outcomes: Outcomes, n_new: int) -> None:
    """Warn if intervals begin to hold too few of the latest rows, once until they hold enough."""
    sums = np.concatenate([[0], np.cumsum(is_inside(outcomes))])
    held = sums[N_LATEST:] - sums[:-N_LATEST]  # of the latest rows, after each row but the first
    events = np.flatnonzero((held < N_LATEST / 2) | (held >= COVERAGE * N_LATEST))
    misses = held[events] < N_LATEST / 2
    begins = events[misses & ~np.concatenate([[False], misses])[:-1]]
    if len(begins) and begins[-1] > len(sums) - 1 - n_new - N_LATEST:
        warn_user(
            f"the {100 * COVERAGE:.0f} % intervals of the {N_LATEST} rows up to row "
            f"{outcomes['row'][begins[-1] + N_LATEST - 1]} held only {held[begins[-1]]} of them: "
            "update keeps the mean and parameters of the fit. Call model.refit(X, y) with "
            "all rows, or model.fit(X, y) to search again"
        )


def _with_excluded(model: FittedModel, given: FitData) -> FitData:
    """Return the rows that earlier updates have excluded, and then the given ones."""
    out, is_excluded = model.outliers, np.isin(model.outcomes["row"], model.outliers.rows)
    names = ("row", "weight", "noise_std")
    numbers, weights, stds = (model.outcomes[name][is_excluded] for name in names)
    places = np.searchsorted(out.rows, numbers)
    noise = RowNoise.of_rows(out.X[places], out.y[places], weights, stds, given.resolution)
    return replace(
        given,
        X=np.concatenate([out.X[places], given.X]),
        y=np.concatenate([out.y[places], given.y]),
        noise=noise.joined(given.noise),
        rows=np.concatenate([numbers, given.rows]),
    )


def _of_rows(joint: Sequence[Moments], rows: IntArray) -> list[Moments]:
    return [(mean[rows], covariance[np.ix_(rows, rows)]) for mean, covariance in joint]


def _predicted(model: FittedModel, given: FitData, rows: TrainingData) -> Outcomes:
    target, predicted = model.target, np.empty((4, len(given.y)))
    for some, mixture in model.by_time(given.X):
        X = rows.X[some]
        marginal = [one.mean_and_variance(X) for one in mixture.predictors]
        ends = mixture.quantiles(X, ends_of_interval(COVERAGE), marginal).T
        log_density = mixture.log_density(X, rows.u[some], marginal)
        predicted[:, some] = mixture.moments(X, marginal)[0], *ends, log_density
    *inside, log_density = predicted
    mean, low, high = map(target.inverse, inside)
    return {
        "row": given.rows,
        "y": given.y,
        "mean": mean,
        "low": low,
        "high": high,
        "log_density": log_density - np.log(target.width),
        "weight": given.noise.weights,
        "noise_std": np.sqrt(given.noise.errors),
    }


def _is_beyond(model: FittedModel, rows: TrainingData) -> BoolArray:
    """Whether the scale of the best kernel, or all scales of the mixture, do not have a target."""
    best, scales = model.evaluation, {one.expression.target for one in model.mixture.components}
    has = [rows.on(one).noise.has_density for one in (best.expression.target, *sorted(scales))]
    return ~(has[0] & np.any(has[1:], axis=0))


def _say_beyond(
    model: FittedModel, given: FitData, is_beyond: BoolArray, *, excludes: bool
) -> None:
    if len(new := np.flatnonzero(is_beyond & ~np.isin(given.rows, model.outliers.rows))):
        text = (
            f"y has {given.y[new[0]]:g} in {text_of_rows(given.rows[new])}, where "
            f"{model.columns.text_of(model.evaluation.expression)} is not defined"
        )
        if not excludes:
            raise ValueError(f"{text}: leave out such rows, or call fit with all rows")
        warn_user(f"{text}: such rows are excluded; if there are many, call fit with all rows")


def _with_outliers(
    known: Outliers, given: FitData, found: IntArray, deviations: FloatArray
) -> Outliers:
    """Replace what is known of given rows by those that are found to be outliers, sorted."""
    kept = ~np.isin(known.rows, given.rows)
    new = given.rows[found], deviations, given.X[found], given.y[found]
    joined = [np.concatenate([one[kept], more]) for one, more in zip(known, new, strict=True)]
    return Outliers(*(one[np.argsort(joined[0])] for one in joined))
