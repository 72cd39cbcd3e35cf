"""What a fitted model is asked for: predictions, draws, the table of kernels, a display."""

import textwrap
from abc import ABC
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils._repr_html.estimator import _VisualBlock
from sklearn.utils.validation import check_is_fitted, validate_data

from autokernel.data import refuse_large, refuse_times
from autokernel.fit.problem import Fitted
from autokernel.fit.run import Past
from autokernel.report import Leaderboard, describe
from autokernel.typing import FloatArray

_CAPTION_WIDTH = 160  # characters


class PredictionMixin(ABC):
    """Methods of an estimator whose ``_fitted`` holds a kernel and the model with it."""

    _fitted: Fitted
    _past: Past
    search_history_: dict[str, npt.NDArray[Any]]
    best_expression_: str

    def predict(
        self,
        X: npt.ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
    ) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation too, noise included.
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
        regressor = self._fitted.model.regressor
        return regressor.predict(X, return_std=return_std, return_cov=return_cov)

    def sample_y(
        self,
        X: npt.ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> FloatArray:
        """Draw new observations from the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=0
            Source of the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples)
            Draws, noise included.
        """
        X = self._check_inputs(X)
        mean, covariance = self._fitted.model.regressor.predict(X, return_cov=True)
        rng = check_random_state(random_state)
        # rounding may leave eigenvalues just below zero, of which the user need not hear
        draws = rng.multivariate_normal(mean, covariance, n_samples, check_valid="ignore")
        return draws.T

    def leaderboard(self, k: int = 10) -> Leaderboard:
        """Return the best kernels of the search.

        Parameters
        ----------
        k : int, default=10
            Number of kernels.

        Returns
        -------
        Leaderboard
            A dict of arrays, the best kernel first, that prints as a table and goes straight into
            ``pandas.DataFrame``. The kernel that predicts is marked.
        """
        check_is_fitted(self, "search_history_")
        check_scalar(k, "k", Integral, min_val=1)
        chosen = self._fitted.evaluation.expression.canonical
        tried = self._past.history.evaluations
        is_chosen = [evaluation.expression.canonical == chosen for evaluation in tried]
        return Leaderboard.of(self.search_history_, k=k, is_chosen=np.array(is_chosen, dtype=bool))

    def _check_inputs(self, X: npt.ArrayLike) -> FloatArray:
        """Check inputs to predict at."""
        check_is_fitted(self, "best_kernel_")
        refuse_times(X)
        inputs: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        refuse_large("X", inputs)
        return inputs

    def _names(self) -> list[str] | None:
        """Names of the columns, where there are any."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _words(self) -> list[str]:
        """Say what each addend of the kernel stands for, the noise last."""
        fitted = self._fitted
        phrases = describe(
            fitted.evaluation.expression,
            fitted.evaluation.theta,
            scale=fitted.scaling.scale,
            feature_names=fitted.feature_names,
        )
        deviation = np.sqrt(fitted.model.noise_variance)
        return [*phrases, f"noise with standard deviation {deviation:.3g}"]

    def _sk_visual_block_(self) -> _VisualBlock:
        """Show the kernel in words below the name in a notebook."""
        caption = None
        if hasattr(self, "_fitted"):
            caption = textwrap.shorten(" + ".join(self._words()), _CAPTION_WIDTH, placeholder=" …")
        name = type(self).__name__
        return _VisualBlock(
            "single", self, names=name, name_details=str(self), name_caption=caption
        )
