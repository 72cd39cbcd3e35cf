"""A data set with its scaling and the evaluator of its kernels."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.data import Scaling, TargetScaling, unit_scaling, varying_columns
from autokernel.evaluation import Evaluation, Evaluator, check_expression
from autokernel.exceptions import EvaluationError
from autokernel.expression import Expression, Grammar
from autokernel.fit.arguments import Arguments
from autokernel.kernels import FEW_COLUMNS, MANY_COLUMNS
from autokernel.likelihood import one_blas_thread
from autokernel.model import FittedModel, MakePredictor, to_sklearn
from autokernel.search import History, Task
from autokernel.typing import FloatArray

_FEW = 2  # with at most so many columns, "auto" is FEW_COLUMNS, the first of SOT's two spaces
_DEFAULT_MAX_LEAVES = 10


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the history holds arrays
class Past:
    """State of a search that another search on the same data can continue."""

    history: History
    seed: int
    fingerprint: str  # digest of all that the scores depend on


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Problem:
    """Data in the units of the user, and an evaluator in the units of the search."""

    X: FloatArray  # (n_samples, n_features)
    y: FloatArray  # (n_samples,)
    scaling: Scaling
    target_scaling: TargetScaling
    evaluator: Evaluator
    seed: int
    feature_names: list[str] | None
    make_predictor: MakePredictor

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
            make_likelihood=arguments.inference.make_likelihood,
        )
        make_predictor = arguments.inference.make_predictor
        return cls(X, y, scaling, target_scaling, evaluator, seed, feature_names, make_predictor)

    def task(self, arguments: Arguments) -> Task:
        """Build the task on the columns that vary, whose number determines ``"auto"`` values."""
        columns = tuple(np.flatnonzero(varying_columns(self.X)).tolist()) or (0,)
        base_kernels, allowed = arguments.base_kernels, arguments.base_kernels or FEW_COLUMNS
        if base_kernels is None:
            base_kernels = FEW_COLUMNS if len(columns) <= _FEW else MANY_COLUMNS
        max_leaves = arguments.max_leaves or max(_DEFAULT_MAX_LEAVES, 2 * len(columns) + 4)
        return Task(
            Grammar(base_kernels, arguments.operators, columns, max_leaves),
            allowed,
            self.evaluator.data.X,
            priors=arguments.priors,
            acquisition=arguments.acquisition,
        )

    def kernel(self, kernel: str | Expression, arguments: Arguments) -> Expression:
        """Parse and check a kernel that the user names."""
        return check_expression(
            kernel,
            self.feature_names,
            n_features=self.X.shape[1],
            argument="kernel",
            base_kernels=arguments.base_kernels or (),
            operators=arguments.operators,
        )

    def history_to_continue(self, past: Past | None, task: Task) -> History:
        """Return what an earlier search has found, if it holds for this one.

        It does not if the data, the priors, the criterion or the seed were others, or if a base
        kernel or an operator of the same name was another.
        """
        history = History(len(self.y))
        if past is None or past.fingerprint != self.evaluator.fingerprint():
            return history
        present = {one.label: one for one in (*task.base_kernels, *task.grammar.operators)}
        for evaluation in past.history.evaluations:
            declared = [tree.declared for tree in evaluation.expression.subtrees()]
            if any(present.get(one.label, one) != one for one in declared):
                return history
        history.trials.extend(past.history.trials)
        return history

    def refitted(self, before: Evaluation) -> FittedModel:
        """Fit a kernel with and without a warm start from an earlier fit; keep the better one."""
        fits = [self.evaluator(before.expression, known) for known in ([], [before])]
        return self.fitted(max(fits, key=lambda fit: fit.log_posterior))

    def fitted(self, evaluation: Evaluation) -> FittedModel:
        """Build the model that predicts with an evaluated kernel.

        Raises
        ------
        EvaluationError
            If the kernel could not be fitted, or if its covariance matrix has no Cholesky factor.
        """
        expression, theta = evaluation.expression, evaluation.theta
        if not np.isfinite(evaluation.log_posterior):
            raise EvaluationError(f"{expression} could not be fitted because: {evaluation.status}")
        try:
            with one_blas_thread():  # as in the search, for bit-identical results
                predictor = self.make_predictor(expression, theta, self.evaluator.data)
        except LinAlgError as error:
            raise EvaluationError(f"{expression} cannot be conditioned on the data") from error
        kernel = to_sklearn(expression, theta, scaling=self.scaling, jitter=predictor.jitter)
        return FittedModel(
            evaluation, predictor, kernel, self.scaling, self.target_scaling, self.feature_names
        )
