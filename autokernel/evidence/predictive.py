"""Criteria that measure how well a kernel predicts held-out rows."""

import warnings
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold, TimeSeriesSplit
from sklearn.utils._param_validation import HasMethods, Interval

from autokernel.evidence.criteria import Criterion, KernelFit, Score
from autokernel.evidence.maximise import maximise
from autokernel.exceptions import NotAMaximumError
from autokernel.typing import FloatArray, IntArray

_SEED = 0  # seed of the folds, which are the same for all kernels
_LONG = 300  # most iterations of a fit to the training rows


class LeaveOneOut(Criterion):
    """Leave-one-out log predictive density, summed over the rows, in nats; larger is better.

    Each row is predicted from all others, with its noise and the MAP parameters of all rows.

    Notes
    -----
    R&W eq. 5.10-5.12. One factorisation and its inverse, O(n_samples^3), serve all rows.
    """

    def __call__(self, fit: KernelFit) -> Score:
        """Score by the predictions at the best mode."""
        return Score(float(fit.posterior.leave_one_out(fit.maximum.mode.theta).sum()))


class _Fold(NamedTuple):
    """Row indices of the training rows and of the held-out rows."""

    train: IntArray
    test: IntArray


class CrossValidation(Criterion):
    """Log predictive density of held-out rows, summed over them, in nats; larger is better.

    Each held-out row is predicted by itself, with its noise.

    Parameters
    ----------
    cv : int or splitter, default=5
        Number of folds, at least 2, into which the rows are divided at random and in the same way
        for every kernel. Or a scikit-learn splitter that makes the same folds in every call, such
        as ``TimeSeriesSplit()``; the sum is then over the rows that it holds out.
    refit : bool, default=True
        Whether the parameters are fitted anew to the training rows of each fold, by a run that
        starts from the mode of all rows. Otherwise the parameters of all rows are used, as in
        :class:`LeaveOneOut`.

    Notes
    -----
    Each fold takes some five to fifteen likelihood calls with their gradients, or one
    factorisation without ``refit``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split", "get_n_splits"])],
        "refit": ["boolean"],
    }

    def __init__(self, *, cv: int | BaseCrossValidator = 5, refit: bool = True) -> None:
        self.cv = cv
        self.refit = refit

    def __call__(self, fit: KernelFit) -> Score:
        """Score by the predictions of the held-out rows of each fold."""
        folds = self._folds(fit.posterior.data.X, fit.posterior.data.y)
        return Score(sum(_predict(fit, fold, refit=self.refit) for fold in folds))

    def check_data(self, X: FloatArray, y: FloatArray) -> None:
        """Raise a ``ValueError`` if the rows cannot be divided in the same way every time."""
        if isinstance(self.cv, Integral) and int(self.cv) > len(y):
            raise ValueError(
                f"cv must not be larger than the number of rows, got cv={self.cv} and {len(y)} "
                "rows: take fewer folds, or criterion='loo'"
            )
        is_random = getattr(self.cv, "shuffle", True)  # splitters without it are always random
        if is_random and not isinstance(getattr(self.cv, "random_state", _SEED), Integral):
            raise ValueError(
                "cv must divide the rows in the same way for every kernel, got "
                f"{self.cv!r}: give it an int as random_state"
            )
        try:
            folds = self._folds(X, y)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"cv={self.cv!r} cannot divide {len(y)} rows: {error}") from error
        if not folds or not all(len(rows) for fold in folds for rows in fold):
            raise ValueError(
                f"cv must leave rows to train on and rows to hold out in each fold, got {self.cv!r}"
            )

        in_order = (np.diff(X, axis=0) >= 0).all(axis=0).any() if X.shape[1] else True
        if isinstance(self.cv, TimeSeriesSplit) and not in_order:
            warnings.warn(
                "TimeSeriesSplit takes rows in the order of time, but no column of X rises from "
                "row to row: sort the rows by time",
                UserWarning,
                stacklevel=2,
            )

    def _folds(self, X: FloatArray, y: FloatArray) -> list[_Fold]:
        """Divide the rows into folds."""
        splitter: Any = self.cv
        if isinstance(splitter, Integral):
            splitter = KFold(int(splitter), shuffle=True, random_state=_SEED)
        return [_Fold(train, test) for train, test in splitter.split(X, y)]


def _predict(fit: KernelFit, fold: _Fold, *, refit: bool) -> float:
    """Return the log predictive density of the held-out rows of a fold, in nats.

    If there is none, a ``NotAMaximumError`` gives the reason.
    """
    theta = _refit(fit, fold.train) if refit else fit.maximum.mode.theta
    both = fit.posterior.on_rows(np.concatenate(fold))
    value = float(both.held_out(theta, len(fold.train)).sum())
    fit.posterior.n_evaluations += both.n_evaluations
    if not np.isfinite(value):
        raise NotAMaximumError("the covariance of a fold of cv has no Cholesky factor")
    return value


def _refit(fit: KernelFit, rows: IntArray) -> FloatArray:
    """Fit the parameters to some of the rows, starting from the mode of all rows."""
    training = fit.posterior.on_rows(rows)
    start = np.clip(fit.maximum.mode.theta, training.lower, training.upper)
    curvature = fit.maximum.hessian
    mode = maximise(training, start, max_iterations=_LONG, curvature=curvature)
    fit.posterior.n_evaluations += training.n_evaluations
    return mode.theta
