"""What a fitted estimator tells of its search and its kernel."""

from collections.abc import Mapping
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils._repr_html.estimator import _VisualBlock

from autokernel.explain import Table, inclusion_table, leaderboard, posterior_table
from autokernel.model import FittedModel
from autokernel.typing import FloatArray
from autokernel.validation import check_has_searched

REFIT = "refit"
"""The ``stop_reason_`` of an estimator that has never searched."""


class DescriptionMixin(BaseEstimator):
    """Tables and words for the result of ``fit``."""

    _fitted: FittedModel
    _tried: list[str]  # canonical texts of the kernels of the search
    search_history_: Mapping[str, np.ndarray]
    n_iter_: int
    stop_reason_: str

    def _expose_model(self, fitted: FittedModel, X: FloatArray, y: FloatArray) -> None:
        """Set the attributes that tell of the kernel and the model with it."""
        self._fitted = fitted
        self.best_kernel_ = fitted.kernel
        self.best_expression_ = fitted.evaluation.expression.to_text(fitted.feature_names)
        self.best_score_ = fitted.evaluation.score
        self.noise_variance_ = fitted.noise_variance
        self.approximation_ = fitted.way
        self.posterior_ = posterior_table(fitted)
        self.inclusion_probabilities_ = inclusion_table(fitted)
        self.X_train_, self.y_train_ = X, y

    def _expose_refit(self, fitted: FittedModel, X: FloatArray, y: FloatArray) -> None:
        """Set the attributes of a model that was fitted without a search."""
        self._expose_model(fitted, X, y)
        if not hasattr(self, "search_history_"):
            self.n_iter_, self.stop_reason_ = 0, REFIT

    def leaderboard(self, k: int = 10) -> Table:
        """Return the ``k`` best kernels of the search.

        The dict of arrays prints as a table, and ``pandas.DataFrame`` accepts it. The kernel that
        predicts is marked. Scores are those of the search; a line below the table says what
        :meth:`refit` has fitted after it.

        Parameters
        ----------
        k : int, default=10
            Largest number of rows.

        Returns
        -------
        Table
            Columns ``rank``, ``chosen``, ``score`` and ``score_per_sample`` in nats, ``n_leaves``,
            ``n_params``, ``phase``, ``status`` and ``kernel``.

        Raises
        ------
        NotFittedError
            If there was no search.
        """
        check_has_searched(self)
        check_scalar(k, "k", Integral, min_val=1)
        chosen = self._fitted.evaluation.expression.canonical
        is_chosen = np.array([text == chosen for text in self._tried], dtype=bool)
        note = self._fitted_since(self.search_history_["score"][is_chosen])
        return leaderboard(self.search_history_, k=k, is_chosen=is_chosen, note=note)

    def _fitted_since(self, scores: FloatArray) -> str:
        """Say what was fitted after the search, which gave the present kernel these scores."""
        score = self.best_score_
        if not np.isfinite(score) or np.isclose(scores, score, rtol=1e-9, atol=1e-9).any():
            return ""
        how = f"to {len(self.y_train_)} rows, with score {score:.2f}"
        if len(scores):
            return f"* this kernel was fitted again after the search, {how}"
        return f"another kernel was fitted after the search, {how}: {self.best_expression_}"

    def _sk_visual_block_(self) -> _VisualBlock:
        """Show the kernel below the name in a notebook."""
        words = getattr(self, "best_expression_", None)
        details = {"name_details": str(self), "name_caption": words}
        return _VisualBlock("single", self, names=type(self).__name__, **details)
