"""A data set with its scaling, and what a search of its kernel needs."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.data import Scaling, TargetScaling, unit_scaling, varying_columns
from autokernel.evaluation import Evaluation, Evaluator, check_expression
from autokernel.exceptions import EvaluationError
from autokernel.expression import Expression, Grammar
from autokernel.fit.arguments import Arguments
from autokernel.kernels import FEW_COLUMNS, MANY_COLUMNS
from autokernel.likelihood import TrainingData, one_blas_thread
from autokernel.model import ExactPredictor, FittedModel, MakePredictor, to_sklearn
from autokernel.search import History, Task
from autokernel.typing import FloatArray

_FEW = 2  # columns up to which "auto" takes the base kernels of the first of SOT's two spaces
_DEFAULT_MAX_LEAVES = 10


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the history holds arrays
class Past:
    """What a search leaves for another one on the same data."""

    history: History
    seed: int
    fingerprint: str  # of all that the scores depend on


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Problem:
    """Data in the units of the user, and an evaluator in those of the search."""

    X: FloatArray  # (n_samples, n_features)
    y: FloatArray  # (n_samples,)
    scaling: Scaling
    target_scaling: TargetScaling
    evaluator: Evaluator
    seed: int
    feature_names: list[str] | None
    make_predictor: MakePredictor = ExactPredictor

    @classmethod
    def of(
        cls,
        X: FloatArray,
        y: FloatArray,
        arguments: Arguments,
        *,
        seed: int,
        feature_names: list[str] | None,
    ) -> "Problem":
        """Scale the columns to the unit interval and standardise the target."""
        scaling, target_scaling = unit_scaling(X), TargetScaling.of(y)
        evaluator = Evaluator(
            scaling.apply(X),
            target_scaling.apply(y),
            priors=arguments.priors,
            seed=seed,
            criterion=arguments.criterion,
        )
        return cls(X, y, scaling, target_scaling, evaluator, seed, feature_names)

    def task(self, arguments: Arguments) -> Task:
        """Set the task, on the columns that vary; ``"auto"`` is what suits their number."""
        columns = tuple(np.flatnonzero(varying_columns(self.X)).tolist()) or (0,)
        base_kernels, allowed = arguments.base_kernels, arguments.base_kernels or FEW_COLUMNS
        if base_kernels is None:
            base_kernels = FEW_COLUMNS if len(columns) <= _FEW else MANY_COLUMNS
        max_leaves = arguments.max_leaves or max(_DEFAULT_MAX_LEAVES, 2 * len(columns) + 4)
        return Task(
            Grammar(base_kernels, arguments.operators, columns, max_leaves),
            allowed,
            self.scaling.apply(self.X),
            priors=arguments.priors,
            acquisition=arguments.acquisition,
        )

    def kernel(self, kernel: str | Expression, arguments: Arguments) -> Expression:
        """Read a kernel that the user names."""
        return check_expression(
            kernel,
            self.feature_names,
            n_features=self.X.shape[1],
            argument="kernel",
            base_kernels=arguments.base_kernels or (),
            operators=arguments.operators,
        )

    def history_to_continue(self, past: Past | None) -> History:
        """Return what an earlier search on the same data has found, nothing if it was on others."""
        history = History(len(self.y))
        if past is not None and past.fingerprint == self.evaluator.fingerprint():
            history.trials.extend(past.history.trials)
        return history

    def refitted(self, before: Evaluation) -> FittedModel:
        """Fit a kernel anew: from nothing, and from the parameters that suited other data."""
        fits = [self.evaluator(before.expression, known) for known in ([], [before])]
        return self.fitted(max(fits, key=lambda fit: fit.log_posterior))

    def fitted(self, evaluation: Evaluation) -> FittedModel:
        """Build the model that predicts with an evaluated kernel.

        Raises
        ------
        EvaluationError
            If the kernel could not be fitted, or its covariance has no factor.
        """
        expression, theta = evaluation.expression, evaluation.theta
        if not np.isfinite(evaluation.log_posterior):
            raise EvaluationError(f"{expression} could not be fitted because: {evaluation.status}")
        data = TrainingData(self.scaling.apply(self.X), self.target_scaling.apply(self.y))
        try:
            with one_blas_thread():  # as in the search: the bits do not depend on who asks
                predictor = self.make_predictor(expression, theta, data)
        except LinAlgError as error:
            raise EvaluationError(f"{expression} cannot be conditioned on the data") from error
        kernel = to_sklearn(expression, theta, scaling=self.scaling, jitter=predictor.jitter)
        return FittedModel(
            evaluation, predictor, kernel, self.scaling, self.target_scaling, self.feature_names
        )
