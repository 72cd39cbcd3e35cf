"""What a fitted model does not fit: rows far off, a spread that changes, skewness.

The residual of each row is that of a prediction from all other rows, and is scaled so that all are
standard normal if the model is right. Silence means that every check has passed; with rows that are
far off the others are not made.
"""

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm, skewtest, spearmanr

from autokernel.explain.claims import Claim
from autokernel.explain.numbers import listing, number
from autokernel.inference.exact import ExactPredictor
from autokernel.model import FittedModel
from autokernel.typing import BoolArray, FloatArray

MAX_ROWS = 1000  # with more, or without exact predictions, nothing is checked
MIN_ROWS = 20  # for the spread and the skewness
FALSE_ALARM = 1e-3  # probability of a claim if the model is right
MOST_DEVIATIONS = 8.0  # that are distinguished
MAX_NAMED = 6  # rows
NOISE = "noise"


def checked(model: FittedModel, target: str) -> Iterator[tuple[Claim, str]]:
    """Yield what is wrong with the residuals, with a sentence for each."""
    mixture = model.mixture
    is_exact = all(isinstance(one, ExactPredictor) for one in mixture.predictors)
    n = len(mixture.data.y)
    if n > MAX_ROWS or not is_exact:
        return
    tail = norm.cdf(-MOST_DEVIATIONS)
    residuals = norm.ppf(np.clip(mixture.leave_one_out(), tail, 1 - tail))
    is_far = np.abs(residuals) > norm.isf(FALSE_ALARM / (2 * n))
    if is_far.any():
        yield _far_rows(residuals, is_far)  # which distort those of their neighbours
    elif n >= MIN_ROWS:
        mean = mixture.mean(mixture.data.X)
        if np.ptp(mean) > 0:
            yield from _changing_spread(residuals, mean)
        is_positive = bool(model.target_scaling.undo(mixture.data.y).min() > 0)
        yield from _skewness(residuals, target, is_positive=is_positive)


def _far_rows(residuals: FloatArray, is_far: BoolArray) -> tuple[Claim, str]:
    """Name the rows that are far from what the others predict, the farthest first."""
    far = np.flatnonzero(is_far)
    far = far[np.argsort(-np.abs(residuals[far]), kind="stable")]
    rows = listing([str(row) for row in far[:MAX_NAMED].tolist()])
    if len(far) > MAX_NAMED:
        rows = f"{rows}, and {len(far) - MAX_NAMED} more,"
    most = float(np.abs(residuals[far[0]]))
    subject = f"row {rows}" if len(far) == 1 else f"rows {rows}"
    verb = "does" if len(far) == 1 else "do"
    claim = Claim(subject, "does not fit", most, evidence="leave-one-out residuals")
    text = (
        f"{subject.capitalize()} {verb} not fit the others, by up to {number(most)} standard "
        "deviations (rows are counted from 0)."
    )
    return claim, text


def _changing_spread(residuals: FloatArray, mean: FloatArray) -> Iterator[tuple[Claim, str]]:
    """Say whether the noise grows or shrinks with the prediction."""
    found = spearmanr(np.abs(residuals), mean)
    if not found.pvalue < FALSE_ALARM:
        return
    low, *_, high = np.array_split(residuals[np.argsort(mean)], 3)
    grows = found.statistic > 0
    ratio = float(high.std() / low.std() if grows else low.std() / high.std())
    word, most, least = (
        ("grows", "highest", "lowest") if grows else ("shrinks", "lowest", "highest")
    )
    how = "rank correlation of leave-one-out residuals with predictions"
    sure = 1 - float(found.pvalue)
    text = (
        f"The noise {word} with the prediction: it is {number(ratio)} times as large in the {most} "
        f"third as in the {least}, so that intervals are too narrow there and too wide elsewhere."
    )
    yield Claim(NOISE, f"{word} with the prediction", ratio, probability=sure, evidence=how), text


def _skewness(
    residuals: FloatArray, target: str, *, is_positive: bool
) -> Iterator[tuple[Claim, str]]:
    """Say whether large residuals are more often above than below, or the other way round."""
    found = skewtest(residuals)
    if not found.pvalue < FALSE_ALARM:
        return
    up = found.statistic > 0
    way = "above" if up else "below"
    advice = f": try the log of {target}" if up and is_positive else ""
    how, sure = "test of the skewness of leave-one-out residuals", 1 - float(found.pvalue)
    claim = Claim(NOISE, f"skewed to {way}", float(found.statistic), probability=sure, evidence=how)
    yield claim, f"Large residuals are more often {way} the prediction than not{advice}."
