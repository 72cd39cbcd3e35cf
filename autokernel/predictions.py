"""The predictive distribution of a fitted estimator, in all the forms that users ask for."""

from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_scalar, column_or_1d
from sklearn.utils.validation import check_is_fitted

from autokernel.data.checks import refuse_gaps, refuse_large, refuse_times
from autokernel.data.dates import dates_counted
from autokernel.data.named import validated
from autokernel.model import FittedModel
from autokernel.typing import FloatArray

OF_FUNCTION = "function"


class PredictionMixin(BaseEstimator):
    """Predictions with the model of ``fit``: a mixture over kernels and parameters.

    All predictions are of new observations, noise included, unless they say otherwise.
    """

    _fitted: FittedModel
    date_columns_: list[int]

    def predict(
        self, X: npt.ArrayLike, return_std: bool | str = False, return_cov: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool or "function", default=False
            Whether to return the standard deviation of a new observation too, noise included; with
            ``"function"`` that of the function itself, without the noise.
        return_cov : bool, default=False
            Whether to return the covariance matrix of new observations too.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive mean.
        std : ndarray of shape (n_samples,)
            Only with ``return_std``.
        cov : ndarray of shape (n_samples, n_samples)
            Only with ``return_cov``.
        """
        X = self._check_inputs(X)
        if isinstance(return_std, str) and return_std != OF_FUNCTION:
            raise ValueError(f"return_std must be True, False or 'function', got {return_std!r}")
        if return_std and return_cov:
            raise RuntimeError("predict takes at most one of return_std and return_cov, got both")
        if return_std:
            return self._fitted.mean_and_std(X, noise=return_std != OF_FUNCTION)
        return self._fitted.mean_and_covariance(X) if return_cov else self._fitted.mean(X)

    def predict_quantiles(self, X: npt.ArrayLike, quantiles: Sequence[float]) -> FloatArray:
        """Predict quantiles of new observations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        quantiles : array-like of shape (n_quantiles,)
            Levels between 0 and 1, both excluded.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles)
            Quantiles of the mixture, which need not be symmetric about its mean.
        """
        levels = np.atleast_1d(np.asarray(quantiles, dtype=float))
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(
                f"quantiles must be probabilities between 0 and 1, such as [0.05, 0.95], got "
                f"{quantiles!r}"
            )
        return self._fitted_quantiles(X, levels)

    def predict_interval(self, X: npt.ArrayLike, coverage: float = 0.95) -> FloatArray:
        """Predict the central interval that holds a new observation with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        coverage : float, default=0.95
            Probability of the interval, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
            kind = ValueError if isinstance(coverage, Real) else TypeError
            raise kind(
                f"coverage must be a probability between 0 and 1, such as 0.95, got {coverage!r}"
            )
        tail = (1 - float(coverage)) / 2
        return self._fitted_quantiles(X, np.array([tail, 1 - tail]))

    def log_predictive_density(self, X: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Compute the log predictive density of observations, each by itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Observations.

        Returns
        -------
        ndarray of shape (n_samples,)
            Nats, for densities in the unit of y. Larger is better.
        """
        inputs = self._check_inputs(X)
        target = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(inputs, target)
        return self._fitted.log_density(inputs, target)

    def sample_y(
        self,
        X: npt.ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> FloatArray:
        """Draw new observations (n_samples_X, n_samples), noise included.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of draws. Each is a draw of a kernel and its parameters first.
        random_state : int, RandomState instance or None, default=0
            Source of the draws.
        """
        inputs = self._check_inputs(X)
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        return self._fitted.samples(inputs, n_samples, random_state)

    def _fitted_quantiles(self, X: npt.ArrayLike, levels: FloatArray) -> FloatArray:
        """Compute quantiles at checked levels."""
        inputs = self._check_inputs(X)
        return self._fitted.quantiles(inputs, levels)

    def _check_inputs(self, X: npt.ArrayLike) -> FloatArray:
        """Check inputs to predict at."""
        check_is_fitted(self, "best_kernel_")
        X = dates_counted(self, X, reset=False)
        refuse_times(X)
        inputs: FloatArray = validated(
            self, X, dtype=np.float64, reset=False, ensure_all_finite=False
        )
        refuse_gaps(inputs, getattr(self, "feature_names_in_", None))
        refuse_large("X", inputs)
        return inputs
