"""What a fitted estimator exposes."""

from typing import Any

from autokernel.fit.problem import Fitted, Problem
from autokernel.fit.run import Run

Attributes = dict[str, Any]


def attributes(fitted: Fitted, problem: Problem) -> Attributes:
    """Build what is exposed of a kernel and the model with it."""
    return {
        "_fitted": fitted,
        "best_kernel_": fitted.model.kernel,
        "best_expression_": fitted.evaluation.expression.to_text(fitted.feature_names),
        "best_score_": fitted.evaluation.score,
        "noise_variance_": fitted.model.noise_variance,
        "X_train_": problem.X,
        "y_train_": problem.y,
    }


def progress(fitting: Run) -> Attributes:
    """Build what is exposed of a search."""
    return {
        "_past": fitting.past(),
        "search_history_": fitting.history.to_columns(fitting.problem.feature_names),
        "n_iter_": fitting.history.n_searched,
    }


def so_far(fitting: Run) -> Attributes | None:
    """Build what would be exposed if the search ended now, None if no kernel is fitted yet."""
    best = fitting.best()
    return None if best is None else {**attributes(best, fitting.problem), **progress(fitting)}
