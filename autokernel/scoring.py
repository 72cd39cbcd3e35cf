"""A scorer of predictive distributions."""

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline


def log_predictive_density_score(
    estimator: BaseEstimator, X: npt.ArrayLike, y: npt.ArrayLike
) -> float:
    """Return the mean log predictive density of a row, in nats; larger is better.

    This is the negative loss that the literature calls NLPD. Use it as
    ``scoring=log_predictive_density_score`` in ``cross_val_score`` and ``GridSearchCV``.

    Parameters
    ----------
    estimator : estimator
        A fitted ``AutoKernelGPRegressor``, a search over one, or a ``Pipeline`` that ends in one.
        Of another estimator, the density is normal, with the mean and the standard deviation of
        ``predict(X, return_std=True)``.
    X : array-like of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,)
        Observations.

    Raises
    ------
    TypeError
        If the estimator predicts no standard deviation.
    """
    while isinstance(estimator, Pipeline) or hasattr(estimator, "best_estimator_"):
        if not isinstance(estimator, Pipeline):
            estimator = estimator.best_estimator_
            continue
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    if hasattr(estimator, "log_predictive_density"):
        return float(np.mean(estimator.log_predictive_density(X, y)))
    try:
        mean, std = estimator.predict(X, return_std=True)
    except TypeError as error:
        raise TypeError(
            "log_predictive_density_score needs an estimator whose predict takes return_std, got "
            f"{type(estimator).__name__}"
        ) from error
    return float(norm.logpdf(np.asarray(y, dtype=float), mean, std).mean())
