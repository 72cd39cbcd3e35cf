"""A data set with its scaling, and what a search of its kernel needs."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.criteria import Criterion
from autokernel.data import Scaling, standardise, unit_scaling, varying_columns
from autokernel.evaluation import Evaluation, Evaluator
from autokernel.exceptions import EvaluationError
from autokernel.expression import Grammar
from autokernel.kernels import BASE_KERNELS
from autokernel.kernels.priors import Priors
from autokernel.likelihood import one_blas_thread
from autokernel.model import Conditioned, condition
from autokernel.search import Task
from autokernel.surrogate import Acquisition
from autokernel.typing import BoolArray, FloatArray

_FEW_COLUMNS = 2  # up to here "auto" takes all base kernels (the first of SOT's two spaces)
_MANY_COLUMNS_BASES = ("SE", "RQ")
_DEFAULT_MAX_LEAVES = 10


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Fitted:
    """A kernel with its parameters, and the model that predicts with it."""

    evaluation: Evaluation
    model: Conditioned
    scaling: Scaling
    feature_names: list[str] | None


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Problem:
    """Data in the units of the user, and an evaluator in those of the search."""

    X: FloatArray  # (n_samples, n_features)
    y: FloatArray  # (n_samples,)
    scaling: Scaling
    evaluator: Evaluator
    priors: Priors
    seed: int
    feature_names: list[str] | None

    @classmethod
    def of(
        cls,
        X: FloatArray,
        y: FloatArray,
        *,
        priors: Priors,
        criterion: Criterion,
        seed: int,
        feature_names: list[str] | None,
    ) -> "Problem":
        """Scale the columns to the unit interval and standardise the target."""
        scaling = unit_scaling(X)
        target = standardise(y)
        evaluator = Evaluator(
            scaling.apply(X), target, priors=priors, seed=seed, criterion=criterion
        )
        return cls(X, y, scaling, evaluator, priors, seed, feature_names)

    def task(
        self,
        base_kernels: tuple[str, ...] | None,
        operators: tuple[str, ...],
        max_leaves: int | None,
        *,
        acquisition: Acquisition,
    ) -> Task:
        """Set the task, on the columns that vary; None stands for what suits their number."""
        varies: BoolArray = varying_columns(self.X)
        columns = tuple(np.flatnonzero(varies).tolist()) or (0,)
        allowed = tuple(BASE_KERNELS) if base_kernels is None else base_kernels
        if base_kernels is None:
            base_kernels = allowed if len(columns) <= _FEW_COLUMNS else _MANY_COLUMNS_BASES
        if max_leaves is None:
            max_leaves = max(_DEFAULT_MAX_LEAVES, 2 * len(columns) + 4)
        grammar = Grammar(base_kernels, operators, columns, max_leaves)
        inputs = self.scaling.apply(self.X)
        return Task(grammar, allowed, inputs, priors=self.priors, acquisition=acquisition)

    def fitted(self, evaluation: Evaluation) -> Fitted:
        """Build the model that predicts with an evaluated kernel.

        Raises
        ------
        EvaluationError
            If the kernel could not be fitted, or its covariance has no factor.
        """
        expression, theta = evaluation.expression, evaluation.theta
        if not np.isfinite(evaluation.log_posterior):
            raise EvaluationError(f"{expression} could not be fitted because: {evaluation.status}")
        try:
            with one_blas_thread():  # as in the search: the bits do not depend on who asks
                model = condition(expression, theta, self.X, self.y, scaling=self.scaling)
        except LinAlgError as error:
            raise EvaluationError(f"{expression} cannot be conditioned on the data") from error
        return Fitted(evaluation, model, self.scaling, self.feature_names)
