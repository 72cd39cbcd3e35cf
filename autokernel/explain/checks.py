"""What a fitted model does not fit: rows far off, a spread that changes, skewness, what is left.

The residual of each row is that of a prediction from all other rows, and is scaled so that all are
standard normal if the model is right. Along the only column, or one of dates, each row is predicted
from the rows before it too: these residuals are independent if the best kernel is right. Silence
means that every check has passed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.stats import binomtest, chi2, norm, skewtest, spearmanr

from autokernel.explain.claims import Claim
from autokernel.explain.numbers import between, calendar_lengths, listing, number, percent, readable
from autokernel.explain.regions import Axis
from autokernel.expression import IDENTITY
from autokernel.inference.covariance import cross_covariance
from autokernel.inference.exact import ExactPredictor
from autokernel.model import FittedModel
from autokernel.typing import BoolArray, FloatArray, IntArray

MAX_ROWS = 1000  # with more, or without exact predictions, nothing is checked
MIN_ROWS = 20  # for all but rows that are far off
FALSE_ALARM = 1e-3  # probability of a claim of each kind if the model is right
MOST_DEVIATIONS = 8.0  # that are distinguished
FACTOR_FOR_LOG = 3.0  # between the largest and the smallest target, from which a log changes much
NARROW = 1.1  # standard deviation of residuals, from which intervals are called too narrow
LEAST_DEVIATION = 1e-3  # of residuals, most of which are zero
MASKED = 0.5  # size of the median residual, in that of a normal one, below which outliers hide
MIN_EXPLAINED = 0.5  # share of the variance, from which outliers do not hide the function
MAX_MEAN = 0.5  # of a wave at the rows, above which they do not show it
COVERAGE = 0.9  # of the intervals whose rows are counted
N_LAGS = 10  # over which residuals are compared with those before
MIN_CYCLES = 3  # of a wave in the residuals
MAX_NAMED = 6  # rows
NOISE = "noise"

Said = tuple[Claim, str]


def can_leave_out(model: FittedModel) -> bool:
    """Whether rows can be left out one by one: with exact predictions, and not too many rows."""
    is_exact = all(isinstance(one, ExactPredictor) for one in model.mixture.predictors)
    return is_exact and len(model.mixture.data.y) <= MAX_ROWS


def checked(
    model: FittedModel,
    left_out: tuple[FloatArray, FloatArray] | None,
    target: str,
    axes: Sequence[Axis],
    *,
    has_tried_log: bool = False,
) -> Iterator[Said]:
    """Yield what is wrong with the residuals, with a sentence for each.

    For rows that are left out there are predicted probabilities (n,) of a smaller target and errors
    (n,), or None. The log of the target is advised only if the search has not tried it.
    """
    mixture, n = model.mixture, len(model.mixture.data.y)
    if left_out is None:
        how = f"predictions: {model.approximation}, {n} rows"
        text = "Residuals were not checked: rows are too many, or predictions are approximate."
        yield Claim(NOISE, "is not checked", evidence=how), text
        return
    probabilities, errors = left_out
    tail = norm.cdf(-MOST_DEVIATIONS)
    residuals = norm.ppf(np.clip(probabilities, tail, 1 - tail))
    deviation = max(float(np.median(np.abs(residuals)) / norm.ppf(0.75)), LEAST_DEVIATION)
    judged = residuals / deviation if deviation < MASKED else residuals
    if _stand_apart(judged):
        yield from _far_rows(judged, model.rows)
        is_little = np.mean(errors**2) > (1 - MIN_EXPLAINED) * np.var(mixture.data.y)
        if is_little and not _is_far(residuals)[_is_far(judged)].all():
            hidden = Claim("fit", "is hidden", deviation, evidence="median of the residuals")
            text = (
                "They hide what the others show: leave them out if they are wrong, and fit again."
            )
            yield hidden, text
        return
    y, X = model.target.inverse(mixture.data.y), mixture.data.inputs.filled
    mean, near = mixture.mean(mixture.data.X), ~_is_far(residuals)
    if near.sum() < MIN_ROWS or np.ptp(np.abs(residuals[near])) < LEAST_DEVIATION:
        yield from _far_rows(residuals, model.rows)
        return
    has_tried_log |= any(one.evaluation.expression.target != IDENTITY for one in model.kernels)
    may_have_log = not has_tried_log and y.min() > 0 and y.max() >= FACTOR_FOR_LOG * y.min()
    shape = [
        *_changing_spread(residuals[near], mean[near], X[near], axes),
        *_skewness(residuals[near], target, may_have_log=bool(may_have_log)),
    ]
    yield from shape or _far_rows(residuals, model.rows)  # wide or skewed noise has rows far off
    if near.all():  # rows far off distort the residuals of their neighbours
        yield from _left_over(residuals, model, axes)
        if not shape:
            yield from _coverage(residuals)


def of_outliers(model: FittedModel) -> Iterator[Said]:
    """Say which rows are excluded, and how far off they are.

    Those without a density on the scale of the target are infinitely far off.
    """
    rows, deviations = model.outliers
    sizes = np.abs(deviations)
    for chosen in (np.isfinite(sizes), np.isinf(sizes)):
        of_rows, n = sizes[chosen], int(chosen.sum())
        if not n:
            continue
        named = listing([str(row) for row in rows[chosen][:MAX_NAMED].tolist()])
        subject, is_off, are = f"row {named}", "does not fit: it is", "is"
        if n > 1:
            subject, is_off, are = f"rows {named}", "do not fit: they are", "are"
        if n > MAX_NAMED:
            subject = f"{n} rows, of which the first are {named},"
        if np.isinf(of_rows[0]):
            what = f"{'has a value' if n == 1 else 'have values'} where the target's scale ends"
        else:
            by = [f"{float(f'{one:.2g}'):g}" for one in (of_rows if n == 2 else np.sort(of_rows))]
            far = by[0] if by[0] == by[-1] else f"{by[0]} {'and' if n == 2 else 'to'} {by[-1]}"
            what = f"{is_off} {far} standard deviations off"
        largest = float(of_rows.max())
        claim = Claim(subject, "excluded", largest, evidence="predictions by other rows")
        text = f"{subject} {what}, and {are} excluded"
        yield claim, f"{text[0].upper()}{text[1:]} (rows are counted from 0)."


def _stand_apart(residuals: FloatArray) -> bool:
    """Whether rows are far off, by twice as much as any of the others."""
    size, is_far = np.abs(residuals), _is_far(residuals)
    most = size[~is_far].max(initial=0.0)
    return bool(is_far.any() and not is_far.all() and size[is_far].min() > 2 * most)


def _is_far(residuals: FloatArray) -> BoolArray:
    return np.abs(residuals) > norm.isf(FALSE_ALARM / (2 * len(residuals)))


def _far_rows(residuals: FloatArray, numbers: IntArray) -> Iterator[Said]:
    """Name the rows that are far from what the others predict, the farthest first."""
    far = np.flatnonzero(_is_far(residuals))
    if not len(far):
        return
    far = far[np.argsort(-np.abs(residuals[far]), kind="stable")]
    rows = listing([str(row) for row in numbers[far[:MAX_NAMED]].tolist()])
    if len(far) > MAX_NAMED:
        rows = f"{rows}, and {len(far) - MAX_NAMED} more,"
    most = min(float(np.abs(residuals[far[0]])), MOST_DEVIATIONS)
    by = f"{number(most)} or more" if most == MOST_DEVIATIONS else number(most)
    subject, verb = (f"row {rows}", "does") if len(far) == 1 else (f"rows {rows}", "do")
    claim = Claim(subject, "does not fit", most, evidence="leave-one-out residuals")
    text = (
        f"{subject.capitalize()} {verb} not fit the others, by up to {by} standard "
        "deviations (rows are counted from 0)."
    )
    yield claim, text


def _changing_spread(
    residuals: FloatArray, mean: FloatArray, X: FloatArray, axes: Sequence[Axis]
) -> Iterator[Said]:
    """Say with what the size of the residuals changes most: the prediction, or a column."""
    columns = [(a.name, X[:, c]) for c, a in enumerate(axes) if not a.levels]
    along = [("the prediction", mean), *columns]
    along = [(name, values) for name, values in along if np.ptp(values) > 0]
    found = [(spearmanr(np.abs(residuals), values), name, values) for name, values in along]
    if not found:
        return
    test, name, values = min(found, key=lambda one: one[0].pvalue)
    if not test.pvalue < FALSE_ALARM / len(found):
        return
    low, *_, high = np.array_split(residuals[np.argsort(values, kind="stable")], 3)
    grows = test.statistic > 0
    ratio = float(high.std() / low.std() if grows else low.std() / high.std())
    word, most, least = (
        ("grows", "highest", "lowest") if grows else ("shrinks", "lowest", "highest")
    )
    how = f"rank correlation of the size of leave-one-out residuals with {name}"
    sure = 1 - float(test.pvalue) * len(found)
    text = f"it is {number(ratio)} times as large in the {most} third as in the {least}"
    if max(high.std(), low.std()) > NARROW:
        text += f", so that intervals are too narrow where {name} is {most}"
    claim = Claim(NOISE, f"{word} with {name}", ratio, probability=sure, evidence=how)
    yield claim, f"The noise {word} with {name}: {text}."


def _skewness(residuals: FloatArray, target: str, *, may_have_log: bool) -> Iterator[Said]:
    """Say whether large residuals are more often above than below, or the other way round."""
    found = skewtest(residuals)
    if not found.pvalue < FALSE_ALARM:
        return
    up = found.statistic > 0
    way = "above" if up else "below"
    advice = f": try the log of {target}" if up and may_have_log else ""
    how, sure = "test of the skewness of leave-one-out residuals", 1 - float(found.pvalue)
    claim = Claim(NOISE, f"skewed to {way}", float(found.statistic), probability=sure, evidence=how)
    yield claim, f"Large residuals are more often {way} the prediction than not{advice}."


def _coverage(residuals: FloatArray) -> Iterator[Said]:
    """Say whether intervals hold fewer or more of the rows that are left out than they should."""
    is_inside = np.abs(residuals) <= norm.isf((1 - COVERAGE) / 2)
    found = binomtest(int(is_inside.sum()), len(residuals), COVERAGE)
    if not found.pvalue < FALSE_ALARM:
        return
    share, sure = float(is_inside.mean()), 1 - float(found.pvalue)
    word = "narrow" if share < COVERAGE else "wide"
    claim = Claim(
        "intervals", f"are too {word}", share, probability=sure, evidence="leave-one-out residuals"
    )
    text = (
        f"Intervals are too {word}: those of {percent(COVERAGE)} hold {percent(share)} of the rows "
        "when each is predicted from the others."
    )
    yield claim, text


def _left_over(residuals: FloatArray, model: FittedModel, axes: Sequence[Axis]) -> Iterator[Said]:
    """Say whether residuals still rise or fall along a column, repeat, or follow each other."""
    X = model.mixture.data.inputs.filled
    varying = [
        (column, axis)
        for column, axis in enumerate(axes)
        if not axis.levels and np.ptp(X[:, column]) > 0
    ]
    for column, axis in varying:
        trend = spearmanr(residuals, X[:, column])
        pvalue = float(trend.pvalue) * len(varying)
        if pvalue < FALSE_ALARM:
            word = f"{'rise' if trend.statistic > 0 else 'fall'} with {axis.name}"
            how = "rank correlation of leave-one-out residuals with the column"
            r = float(trend.statistic)
            claim = Claim("residuals", word, r, probability=1 - pvalue, evidence=how)
            yield claim, f"The residuals still {word}."
    for column, axis in varying:
        if len(axes) == 1 or axis.origin is not None:
            yield from _along_time(*_innovations(model, column), axis)


def _along_time(x: FloatArray, residuals: FloatArray, axis: Axis) -> Iterator[Said]:
    """Say whether residuals from the rows before, at x in order, repeat or follow each other."""
    n, how = len(residuals), "residuals from the rows before"
    if not n:
        return
    scaled = residuals / np.sqrt(np.sum(residuals**2))
    distinct = np.unique(x)
    frequencies = np.arange(MIN_CYCLES, len(distinct) // 2) / (x[-1] - x[0])
    gaps = np.diff(distinct)
    if np.ptp(gaps) > gaps.mean():  # shorter periods than two gaps have no aliases
        calendar = axis.scale / np.array(calendar_lengths(axis.unit))
        frequencies = np.append(frequencies, calendar[calendar > frequencies.max(initial=0.0)])
    waves = np.exp(2j * np.pi * np.outer(frequencies, x))
    is_wave = np.abs(waves.mean(axis=1)) < MAX_MEAN  # whole days have no wave of a day
    frequencies, waves = frequencies[is_wave], waves[is_wave]
    power = np.abs(waves @ scaled) ** 2
    highest = float(power.max(initial=0.0))
    pvalue = float(-np.expm1(len(power) * np.log1p(-np.exp(-highest)))) if highest > 0 else 1.0
    if pvalue < FALSE_ALARM:
        period = axis.scale / float(frequencies[np.argmax(power)])
        claim = Claim("residuals", "repeat", period, unit=axis.unit, probability=1 - pvalue)
        every = between(*readable(period, np.nan, np.nan, axis.unit))
        text = f"The residuals still repeat along {axis.name}, about every {every}."
        yield replace(claim, evidence=f"periodogram of {how}"), text
        return
    lags = np.arange(1, min(N_LAGS, n // 5) + 1)
    r = np.array([scaled[lag:] @ scaled[:-lag] for lag in lags])
    statistic = n * (n + 2) * np.sum(r**2 / (n - lags))  # Ljung & Box 1978
    pvalue, first = float(chi2.sf(statistic, len(lags))), float(r[0])
    if pvalue < FALSE_ALARM:
        claim = Claim("residuals", "follow each other", first, probability=1 - pvalue)
        text = (
            f"The residuals still depend on those before them along {axis.name}: their first "
            f"autocorrelation is {first:.2f}."
        )
        yield replace(claim, evidence=f"Ljung-Box test of {how}"), text


def _innovations(model: FittedModel, column: int) -> tuple[FloatArray, FloatArray]:
    """Predict each row by the best kernel from the rows before it along a column.

    Returns the values (n,) of the column in order, and the residuals (n,) in their standard
    deviations, none where the covariance matrix has no Cholesky factor.
    """
    evaluation = model.evaluation
    data = model.mixture.data.on(evaluation.expression.target)
    data = data.take(np.argsort(data.inputs.filled[:, column], kind="stable"))
    params = np.exp(evaluation.theta)
    inputs = data.inputs
    K = cross_covariance(evaluation.expression, inputs, inputs).forward(params[:-1]).copy()
    K[np.diag_indices(len(K))] += data.noise.variance(model.scaled_noise_variance)
    try:
        residuals = solve_triangular(cholesky(K, lower=True), data.y, lower=True)
    except LinAlgError:
        residuals = np.empty(0)
    return inputs.filled[:, column], residuals
