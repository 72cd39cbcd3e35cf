"""A scorer of predictive distributions."""

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d

from autokernel.typing import FloatArray

STEP = 1e-6  # of the largest transformed target, for a slope


def log_predictive_density_score(
    estimator: BaseEstimator, X: npt.ArrayLike, y: npt.ArrayLike
) -> float:
    """Return the mean log predictive density of a row, in nats; larger is better.

    This is the negative loss that the literature calls NLPD. Use it as
    ``scoring=log_predictive_density_score`` in ``cross_val_score`` and ``GridSearchCV``.

    Parameters
    ----------
    estimator : estimator
        A fitted ``AutoKernelGPRegressor``, a search over one, a ``Pipeline`` that ends in one, or a
        ``TransformedTargetRegressor`` around one, whose density is that of ``y`` before the
        transform. Of another estimator, the density is normal, with the mean and the standard
        deviation of ``predict(X, return_std=True)``.
    X : array-like of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,)
        Observations.

    Raises
    ------
    TypeError
        If the estimator predicts no standard deviation.
    """
    log_slopes: FloatArray | float = 0.0
    while True:
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        elif isinstance(estimator, TransformedTargetRegressor):
            y, own = _with_log_slopes(estimator.transformer_, column_or_1d(y).astype(float))
            log_slopes, estimator = log_slopes + own, estimator.regressor_
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            break
    if hasattr(estimator, "log_predictive_density"):
        return float(np.mean(estimator.log_predictive_density(X, y) + log_slopes))
    try:
        mean, std = estimator.predict(X, return_std=True)
    except TypeError as error:
        what = "log_predictive_density_score needs an estimator whose predict takes return_std"
        raise TypeError(f"{what}, got {type(estimator).__name__}") from error
    return float(np.mean(norm.logpdf(np.asarray(y, dtype=float), mean, std) + log_slopes))


def _with_log_slopes(transformer: TransformerMixin, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return transformed targets (n,), and the logs of the slopes, ``-inf`` where there is none."""
    with np.errstate(all="ignore"):  # the log of a target that is not positive
        z = transformer.transform(y[:, None])[:, 0]
        z = np.where(np.isfinite(z), z, 0.0)
        step = STEP * (np.abs(z).max() or 1.0)
        moved = [z, z + step, z - step]  # the inverse takes any number, the transform may not
        back, above, below = (transformer.inverse_transform(one[:, None])[:, 0] for one in moved)
        log_slopes = np.log(2 * step / np.abs(above - below))
    is_possible = np.isclose(back, y, rtol=STEP, atol=STEP * np.abs(y).max())
    return z, np.where(is_possible, log_slopes, -np.inf)
