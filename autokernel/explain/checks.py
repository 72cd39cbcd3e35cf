"""What a fitted model does not fit: rows far off, a spread that changes, skewness, what is left.

The residual of each row is that of a prediction from all other rows, and is scaled so that all are
standard normal if the model is right. Along the only column, or one of dates, each row is predicted
from the rows before it too: these residuals are independent if the best kernel is right. Silence
means that every check has passed.
"""

import calendar
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.stats import kruskal, norm, skewtest, spearmanr

from autokernel.data import NoiseTerm
from autokernel.data.dates import parts_of_year
from autokernel.data.noise import GAP, LEVELS
from autokernel.data.shared import shared_by, shared_days
from autokernel.explain.axes import MAX_VALUES, Axis
from autokernel.explain.facts import N_GRID, Fact
from autokernel.explain.sentences import SCALE_WORDS
from autokernel.explain.words import INTERVAL_ENDS, SECONDS, capital, duration, listing, number
from autokernel.expression import IDENTITY
from autokernel.inference import ExactPredictor, one_blas_thread
from autokernel.inference.covariance import cross_covariance
from autokernel.model import FittedModel
from autokernel.typing import BoolArray, FloatArray, IntArray

MAX_ROWS = 1000  # with more, or without exact predictions, nothing is checked
MIN_ROWS = 20  # for all but rows that are far off
FALSE_ALARM = 1e-3  # probability of a claim of each kind if the model is right
MOST_DEVIATIONS = 8.0  # that are distinguished
FACTOR_FOR_LOG = 3.0  # between the largest and the smallest target, from which a log changes much
SKEWED = 0.05  # probability of the skewness of the other rows, up to which they are skewed too
LEAST_DEVIATION = 1e-3  # of residuals, most of which are zero
N_LAGS = 24  # of residuals before; half-hours, hours and months have seasons of 12 or 24
MIN_OF_LEVEL = 5  # rows of a level whose noise is compared
MAX_NAMED, MIN_SHARED = 6, 3  # rows, and those that share a day
MASKING = "They mask the other rows; remove them if they are errors and refit."
NOISE, BEFORE = "noise", "residuals from the rows before"


def checked(model: FittedModel, axes: Sequence[Axis], advice: str) -> Iterator[Fact]:
    """Yield what is wrong with the residuals, with a sentence for each.

    The ``advice`` is what to try if large residuals are above the predictions.
    """
    data, width = model.mixture.data, model.target.width
    are_exact = all(isinstance(one, ExactPredictor) for one in model.mixture.predictors)
    if len(data.y) > MAX_ROWS or not are_exact:
        why = f"{len(data.y)} rows are too many" if are_exact else "predictions are approximate"
        fact = Fact(NOISE, "is not checked", evidence=model.approximation)
        yield fact.said(f"Residuals were only compared with the columns, as {why}.")
        medians = model.mixture.quantiles(data.X, np.array([0.5]))[:, 0]
        residuals = model.transformed.y - model.scale.forward(medians)
        yield from _with_columns(residuals, width * (data.u - medians), model, axes)
        return
    probabilities, errors = model.mixture.leave_one_out()
    residuals = _apart(np.clip(norm.ppf(probabilities), -MOST_DEVIATIONS, MOST_DEVIATIONS), model)
    deviation = max(float(np.median(np.abs(residuals)) / norm.ppf(0.75)), LEAST_DEVIATION)
    judged = residuals / deviation if deviation < 0.5 else residuals  # outliers widen the noise
    near, is_far, size = ~_is_far(residuals), _is_far(judged), np.abs(judged)
    yield from _shared_by_far_rows(judged, model, axes)
    # rows are far off, by twice as much as any of the others
    if 0 < is_far.sum() < len(size) and size[is_far].min() > 2 * size[~is_far].max():
        yield from _far_rows(judged, model.given_rows)
        # a fit that leaves half of the variance is poor
        if np.mean(errors**2) > 0.5 * np.var(data.y) and near[is_far].any():
            yield Fact("fit", "is hidden", deviation, evidence="residuals", text=MASKING)
    elif near.sum() < MIN_ROWS or np.ptp(np.abs(residuals[near])) < LEAST_DEVIATION:
        yield from _far_rows(residuals, model.given_rows)
    else:
        shape = _changing_spread(residuals, near, model, axes)
        shape += _skewness(residuals, near, advice)
        yield from shape  # such noise has rows far off, but none of the farthest
        yield from _far_rows(residuals, model.given_rows, least=MOST_DEVIATIONS * bool(shape))
        if near.all():  # rows far off distort the residuals of their neighbours
            yield from _with_columns(residuals, width * errors, model, axes)
            yield from _left_over(model, axes)


def _apart(residuals: FloatArray, model: FittedModel) -> FloatArray:
    """Replace residuals that are far off only because of a neighbour by those without it.

    Such rows are judged by the best kernel: the farthest first, each without those before it.
    """
    far, best, out = np.flatnonzero(_is_far(residuals)), model.evaluation, list[int]()
    if len(far) < 2 or not best.expression.leaves:
        return residuals
    with one_blas_thread():
        predictor = ExactPredictor(best.expression, best.theta, model.mixture.data)
        P, found = predictor.precision(), residuals.copy()
    alone = np.abs(predictor.weights[far]) / np.sqrt(np.diag(P)[far])  # residuals of single rows
    for row in far[np.argsort(-alone, kind="stable")].tolist():
        rows = [row, *out]
        covariance = np.linalg.inv(P[np.ix_(rows, rows)])  # of these rows given all others
        error = covariance[0] @ predictor.weights[rows]
        size = min(abs(error / np.sqrt(covariance[0, 0])), abs(residuals[row]))
        found[row] = np.copysign(size, error)
        if _is_far(found)[row]:
            out.append(row)
    return found


def of_outliers(model: FittedModel) -> Iterator[Fact]:
    """Say which rows are excluded, and how far off they are.

    Those without a density on the scale of the target are infinitely far off.
    """
    rows, sizes = model.outliers[0], np.abs(model.outliers[1])
    for chosen in (np.isfinite(sizes), np.isinf(sizes)):
        if chosen.any():
            yield _excluded(rows[chosen], sizes[chosen])


def _excluded(rows: IntArray, sizes: FloatArray) -> Fact:
    n, named = len(rows), listing([str(row) for row in rows[:MAX_NAMED].tolist()])
    subject = f"rows {named}" if n <= MAX_NAMED else f"{n} rows, of which the first are {named},"
    are, outliers, have = ("are", "outliers: they are", "have values")
    if n == 1:
        subject, are, outliers, have = f"row {named}", "is", "an outlier: it is", "has a value"
    text = f"{subject} {have} where the target's scale ends, and {are} excluded"
    if np.isfinite(sizes[0]):
        by = [f"{float(f'{one:.2g}'):g}" for one in (sizes if n == 2 else np.sort(sizes))]
        far = by[0] if by[0] == by[-1] else f"{by[0]} {'and' if n == 2 else 'to'} {by[-1]}"
        text = f"{subject} {are} excluded as {outliers} {far} standard deviations off"
    fact = Fact(subject, "excluded", float(sizes.max()), evidence="predictions by other rows")
    return fact.said(f"{capital(text)} (rows are counted from 0).")


def _is_far(residuals: FloatArray) -> BoolArray:
    return np.abs(residuals) > norm.isf(FALSE_ALARM / (2 * len(residuals)))


def _far_rows(residuals: FloatArray, numbers: IntArray, least: float = 0.0) -> Iterator[Fact]:
    size, is_far = np.abs(residuals), _is_far(residuals)
    far = np.argsort(-size, kind="stable")[: np.sum(is_far & (size >= least - 1e-6))]
    if not len(far):
        return
    rows = listing([str(row) for row in numbers[far[:MAX_NAMED]].tolist()])
    if len(far) > MAX_NAMED:
        rows = f"{rows}, and {len(far) - MAX_NAMED} more,"
    most = min(float(size[far[0]]), MOST_DEVIATIONS)
    subject, are, by = f"row {rows}", "is an outlier:", f"{number(most)} standard deviations off"
    if len(far) > 1:
        subject, are, by = f"rows {rows}", "are outliers:", f"up to {by}"
    if most == MOST_DEVIATIONS:
        by = f"more than {MOST_DEVIATIONS:g} standard deviations off"
    text = f"{capital(subject)} {are} {by} (rows are counted from 0)."
    yield Fact(subject, "does not fit", most, evidence="leave-one-out residuals", text=text)


def _shared_by_far_rows(
    residuals: FloatArray, model: FittedModel, axes: Sequence[Axis]
) -> Iterator[Fact]:
    """Say what rows far off have in common, if that is no accident: they are likely to recur.

    The farthest may share days of the year.
    """
    is_far, inputs = _is_far(residuals), model.mixture.data.inputs
    n, how = int(is_far.sum()), "leave-one-out residuals"
    farthest = np.argsort(-np.abs(residuals), kind="stable")[: min(2 * MAX_NAMED, n)]
    for column in inputs.columns.dates if n > 1 else ():
        x = inputs.raw(column)[farthest]
        (days, n_shared), (weekdays, _) = shared_days(x), parts_of_year(x)
        if n_shared >= max(MIN_SHARED, len(farthest) / 2, 1 + np.bincount(weekdays).max()):
            subject = f"{n_shared} of the {len(farthest)} rows that are farthest off"
            fact = Fact(subject, "share a day", n_shared / len(farthest), evidence=how)
            yield fact.said(f"{capital(subject)} are on {listing(days)}.")
            return
    shared = shared_by(inputs, is_far, seed=0) if n else None
    if shared is None or shared.kind == "day":
        return
    found, counts = np.unique(shared.groups[is_far & ~np.isnan(shared.groups)], return_counts=True)
    most, axis = found[[np.argmax(counts)]], axes[shared.column]
    text = f"are of {axis.name} {axis.names_of(most)[0]}"
    if shared.kind == "weekday":
        text = f"are on a {calendar.day_name[int(most[0] + 3) % 7]}"  # 1970 began on a Thursday
    subject = f"{counts.max()} of the {n} rows that are far off"
    fact = Fact(subject, f"share a {shared.kind}", float(counts.max() / n), evidence=how)
    yield fact.said(f"{capital(subject)} {text}.")


def _alarm(pvalue: float, fact: Fact, text: str) -> list[Fact]:
    """Return a fact with its sentence and probability if a test is clear, and else nothing."""
    return [replace(fact, probability=1 - float(pvalue), text=text)] * bool(pvalue < FALSE_ALARM)


def _changing_spread(
    residuals: FloatArray, near: BoolArray, model: FittedModel, axes: Sequence[Axis]
) -> list[Fact]:
    """Say with what the size of the residuals changes most: the prediction, or a column."""
    data, residuals = model.mixture.data, residuals[near]
    along = {"the prediction": model.mixture.mean(data.X)}
    along |= {
        axis.name: x for axis, x in zip(axes, data.inputs.filled.T, strict=True) if not axis.levels
    }
    along = {name: values[near] for name, values in along.items() if np.ptp(values[near]) > 0}
    tests = {name: spearmanr(np.abs(residuals), values) for name, values in along.items()}
    if not tests:
        return []
    name = min(tests, key=lambda one: float(tests[one].pvalue))
    x, most, least = along[name], "in the highest third", "in the lowest third"
    axis = next((one for one in axes if one.name == name), None)
    low, *_, high = np.array_split(residuals[np.argsort(x, kind="stable")], 3)
    if axis is not None and len(np.unique(x)) == 2:
        low, high = residuals[x == x.min()], residuals[x == x.max()]
        most, least = (f"where it is {axis.end(float(one))}" for one in (x.max(), x.min()))
    stds, word = (high.std(), low.std()), "grows"
    if tests[name].statistic < 0:
        stds, word, most, least = stds[::-1], "shrinks", least, most
    ratio = float(max(stds[0], LEAST_DEVIATION) / max(stds[1], LEAST_DEVIATION))
    at_least = "at least " if stds[1] < LEAST_DEVIATION else ""
    text = f"it is {at_least}{number(ratio)} times as large {most} as {least}"
    if max(stds) > 1.1:  # the model expects one
        text += f", so that intervals are too narrow {most}"
    how = f"rank correlation of the size of leave-one-out residuals with {name}"
    subject, said = NOISE, _about_noise(model)
    if model.transformed.noise_function.terms or model.transformed.has_counts:
        subject = "scaled residuals"
        said = "The size of residuals relative to the predicted deviation still"
    fact = Fact(subject, f"{word} with {name}", ratio, evidence=how)
    return _alarm(tests[name].pvalue * len(tests), fact, f"{said} {word} with {name}: {text}.")


def _skewness(residuals: FloatArray, near: BoolArray, advice: str) -> list[Fact]:
    """Say to which side residuals are skewed, also without the few that are farthest off.

    The largest one of all must be on this side too.
    """
    largest, residuals = residuals[np.argmax(np.abs(residuals))], residuals[near]
    n_few = max(MIN_SHARED, len(residuals) // 50)
    others = np.argsort(np.abs(residuals), kind="stable")[:-n_few]
    tests = [skewtest(one) for one in (residuals, residuals[others])]
    found, of_others = tests
    if min(one.statistic * largest for one in tests) < 0 or of_others.pvalue > SKEWED:
        return []
    way, advice = ("above", advice) if found.statistic > 0 else ("below", "")
    how = "test of the skewness of leave-one-out residuals"
    fact = Fact(NOISE, f"skewed to {way}", float(found.statistic), evidence=how)
    text = f"Large residuals are more often {way} the prediction than not{advice}."
    return _alarm(found.pvalue, fact, text)


def _left_over(model: FittedModel, axes: Sequence[Axis]) -> Iterator[Fact]:
    """Say whether residuals still repeat, or follow each other.

    The best kernel predicts each row from the rows before it along a column.
    """
    evaluation, every = model.evaluation, model.transformed
    for column, axis in enumerate(axes):
        is_time, x = len(axes) == 1 or axis.origin is not None, every.inputs.filled[:, column]
        if not is_time or axis.levels or np.ptp(x) == 0:
            continue
        order = np.argsort(x, kind="stable")
        inputs, noise = every.inputs[order], every.noise.take(order)
        covariance = cross_covariance(evaluation.expression, inputs, inputs)
        K = covariance.forward(np.exp(evaluation.theta[:-1])).copy()
        K[np.diag_indices(len(K))] += noise.variance(model.scaled_noise_variance)
        try:
            innovations = solve_triangular(cholesky(K, lower=True), every.y[order], lower=True)
        except LinAlgError:
            continue  # there are no residuals
        scaled = innovations / np.sqrt(np.sum(innovations**2))
        yield from _repeating(x[order], scaled, axis) or _autocorrelated(scaled, axis)


def _with_columns(
    residuals: FloatArray, errors: FloatArray, model: FittedModel, axes: Sequence[Axis]
) -> Iterator[Fact]:
    """Say whether residuals still rise or fall along a column, or differ between levels.

    The size is that of the average errors (n,) in the highest level or third from the lowest.
    """
    every = enumerate(zip(axes, model.mixture.data.inputs.filled.T, strict=True))
    varying = {column: one for column, one in every if np.ptp(one[1]) > 0}
    used = model.evaluation.expression.columns
    for column, (axis, x) in varying.items():
        n_alike = sum((one in used) == (column in used) for one in varying)
        if axis.levels:
            groups = [x == level for level in np.unique(x)]
            found = kruskal(*(residuals[one] for one in groups))
            word, how = "differ between levels of", "Kruskal-Wallis test of residuals"
            groups = [one for one in groups if one.sum() >= MIN_OF_LEVEL] or groups
        else:
            found = spearmanr(residuals, x)
            word = f"{'rise' if found.statistic > 0 else 'fall'} with"
            how = "rank correlation of residuals with the column"
            low, high = np.quantile(x, [1 / 3, 2 / 3])
            low = min(low, np.unique(x)[-2])  # most values may be equal
            groups = [x <= low, (x >= high) & (x > low)]
        size = float(np.ptp([errors[one].mean() for one in groups]))
        fact = Fact("residuals", f"{word} {axis.name}", size, evidence=how)
        text = f"The residuals still {word} {axis.name}, by {number(size, 2)}."
        if column not in model.used_columns:
            its = "differ between its levels" if axis.levels else f"{word} it"
            text = f"{axis.name} is not used, but residuals still {its}, by {number(size, 2)}."
            fact = replace(fact, subject=axis.name, predicate="is not used but missed")
        yield from _alarm(found.pvalue * n_alike, fact, text)


def _repeating(x: FloatArray, residuals: FloatArray, axis: Axis) -> list[Fact]:
    """Say whether residuals, at x in order, repeat; their squares sum to one."""
    distinct = np.unique(x)
    frequencies = np.arange(3, len(distinct) // 2) / (x[-1] - x[0])  # in cycles
    steps = np.diff(distinct)
    if np.ptp(steps) > steps.mean():  # shorter periods than two steps have no aliases
        known = ("days", "weeks", "years") if axis.unit in SECONDS else ()
        calendar = axis.extent / np.array([SECONDS[one] / SECONDS[axis.unit] for one in known])
        frequencies = np.append(frequencies, calendar[calendar > frequencies.max(initial=0.0)])
    waves = np.exp(2j * np.pi * np.outer(frequencies, x))
    is_wave = np.abs(waves.mean(axis=1)) < 0.5  # whole days do not show a wave of a day
    power = np.abs(waves[is_wave] @ residuals) ** 2
    if not power.max(initial=0.0) > 0:
        return []
    pvalue = float(-np.expm1(len(power) * np.log1p(-np.exp(-power.max()))))
    period = axis.extent / float(frequencies[is_wave][np.argmax(power)])
    every = duration(period, unit=axis.unit)
    fact = Fact("residuals", "repeat", period, unit=axis.unit, evidence=f"periodogram of {BEFORE}")
    text = f"The residuals still repeat along {axis.name}, about every {every}."
    return _alarm(pvalue, fact, text)


def _autocorrelated(residuals: FloatArray, axis: Axis) -> list[Fact]:
    n = len(residuals)
    lags = np.arange(1, min(N_LAGS, n // 5) + 1)
    r = np.array([residuals[lag:] @ residuals[:-lag] for lag in lags])
    z = np.abs(r) * np.sqrt(n * (n + 2) / (n - lags))  # Ljung & Box 1978
    lag, largest = int(lags[np.argmax(z)]), float(r[np.argmax(z)])
    before = "of the row before" if lag == 1 else f"{lag} rows before"
    text = f"The residuals still depend on those before them along {axis.name}: their correlation"
    fact = Fact("residuals", "follow each other", largest, evidence=f"autocorrelation of {BEFORE}")
    pvalue = len(lags) * 2 * float(norm.sf(z.max()))
    return _alarm(pvalue, fact, f"{text} with those {before} is {largest:.2f}.")


def _about_noise(model: FittedModel) -> str:
    """Begin a sentence about the noise, which is on the scale of the target of the best kernel."""
    scale = model.scale.name
    return "The noise" if scale == IDENTITY else f"The noise on the {SCALE_WORDS[scale]} scale"


def of_varying_noise(model: FittedModel, axes: Sequence[Axis]) -> Iterator[Fact]:
    """Say how the noise of the best kernel varies, with a sentence for each sure term."""
    for term in model.transformed.noise_function.terms:
        x = model.transformed.inputs.raw(term.column)
        fact = _of_term(term, axes[term.column], _about_noise(model), x[~np.isnan(x)])
        yield from [fact] if fact.low > 1 else []


def _of_term(term: NoiseTerm, axis: Axis, noise: str, x: FloatArray) -> Fact:
    """Compare the noise where it is largest with that where it is smallest, with several rows."""
    values, name = _values_of_term(term, axis, x), axis.name
    log_noise = term.basis(values) @ term.coefficients
    most, least = values[[np.argmax(log_noise), np.argmin(log_noise)]].tolist()
    ratio = term.ratio(most, least)
    times, low, high = (number(one, 2) for one in ratio)
    it_is, does = f"it is {times} times as large", "varies"
    if term.form == GAP:
        has, others = ("no", "have one") if np.isnan(most) else ("a", "have none")
        text = f"{noise} is {times} times as large in rows that have {has} value of {name} as in"
        text = f"{text} those that {others}"
    elif term.form == "linear":
        does, at, other = ("grows", "highest", "lowest")
        if most < least:
            does, at, other = "shrinks", other, at
        text = f"{noise} {does} with {name}: {it_is} where {name} is {at} as where it is {other}"
    else:
        at, other = (axis.end((one - axis.low) / axis.extent) for one in (most, least))
        text = f"{noise} changes along {name}: {it_is} at {at} as at {other}"
        if term.form == LEVELS:
            text = f"{noise} differs between levels of {name}: {it_is} for {at} as for {other}"
    how = "terms of the log of the noise variance"
    fact = Fact("noise", f"{does} with {name}", *ratio, evidence=how)
    return fact.said(f"{text} ({low} to {high}).")


def _values_of_term(term: NoiseTerm, axis: Axis, x: FloatArray) -> FloatArray:
    """Return values of a column with rows at or near them, or levels of several rows."""
    if term.form == GAP:
        return np.array([np.nan, axis.low])
    if term.form == "smooth":
        low, high = np.quantile(x, INTERVAL_ENDS)
        few = np.unique(x[(x >= low) & (x <= high)])
        return few if 2 <= len(few) <= MAX_VALUES else np.linspace(low, high, N_GRID)
    if term.form == LEVELS:
        n_rows = np.sum(x[:, None] == term.knots, axis=0)
        return term.knots[n_rows >= min(MIN_OF_LEVEL, np.sort(n_rows)[-2])]
    return term.knots
