"""A data set with its scaling and the evaluator of its kernels."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.data.scaling import Scaling, TargetScaling, unit_scaling
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Evaluation, Evaluator
from autokernel.exceptions import EvaluationError, OutOfTimeError
from autokernel.expression import (
    NOISE,
    Expression,
    Grammar,
    StructurePrior,
    grammar_prior,
    uniform_prior,
    unit_prior,
)
from autokernel.fit.arguments import Arguments
from autokernel.fit.space import Space
from autokernel.inference import TrainingData, one_blas_thread
from autokernel.inference.base import MakePredictor
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import Seasonal
from autokernel.many_rows.approximation import Approximation
from autokernel.many_rows.bounds import BoundedEvaluator
from autokernel.many_rows.climb import Choice, Climb
from autokernel.many_rows.plan import Plan, make_plan
from autokernel.many_rows.race import Extended, extend, racers
from autokernel.model import (
    FittedModel,
    KernelPosterior,
    MixtureComponent,
    MixturePredictor,
    posterior_over_kernels,
    to_sklearn,
)
from autokernel.search import History, Phase, Task
from autokernel.typing import FloatArray


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
    data: TrainingData  # all rows, in the units of the search
    evaluator: Evaluator  # on the rows of the search
    plan: Plan
    seed: int
    feature_names: list[str] | None
    space: Space
    structure_prior: StructurePrior
    arguments: Arguments

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
        space = Space.of(X, arguments, scaling=scaling, feature_names=feature_names)
        structure_prior = _structure_prior(space.grammar, arguments)
        plan = make_plan(
            len(y),
            approximation=arguments.approximation,
            n_inducing=arguments.n_inducing,
            by_bounds=arguments.strategy.scores_by_bounds,
        )
        data = TrainingData(scaling.apply(X), target_scaling.apply(y))
        searched = data if plan.searches_all else data.take(plan.rows(seed))
        make = _bounded_evaluator if plan.by_bounds else _evaluator
        evaluator = make(searched, arguments, structure_prior, seed=seed)
        return cls(
            X=X,
            y=y,
            scaling=scaling,
            target_scaling=target_scaling,
            data=evaluator.data if plan.is_plain else data,
            evaluator=evaluator,
            plan=plan,
            seed=seed,
            feature_names=feature_names,
            space=space,
            structure_prior=structure_prior,
            arguments=arguments,
        )

    @property
    def fingerprint(self) -> str:
        """Digest of all that a search depends on, besides the space of kernels."""
        arguments = self.arguments
        known = f" {sorted(map(str, arguments.periods.items()))}" if arguments.periods else ""
        return f"{self.evaluator.fingerprint()} {arguments.structure_prior!r}{known}"

    def task(self, arguments: Arguments) -> Task:
        """Build the task of a search."""
        return Task(
            self.space.grammar,
            self.space.base_kernels,
            self.evaluator.data.X,
            priors=arguments.priors,
            structure_prior=self.structure_prior,
            start=self.space.start,
        )

    def kernel(self, kernel: str | Expression, arguments: Arguments) -> Expression:
        """Parse and check a kernel that the user names."""
        return self.space.kernel(
            kernel, arguments, argument="kernel", feature_names=self.feature_names, X=self.X
        )

    def history_to_continue(self, past: Past | None, task: Task) -> History:
        """Return what an earlier search has found, if it holds for this one.

        It does not if the data, the priors, the criterion or the seed were others, or if it has
        a kernel that this search cannot reach.
        """
        history = History(self.plan.n_searched)
        if past is None or past.fingerprint != self.fingerprint:
            return history
        known = {*task.base_kernels, *task.grammar.base_kernels, *task.grammar.operators}
        for trial in past.history:
            expression = trial.evaluation.expression
            trees = [tree for tree in expression.subtrees() if tree.n_leaves]  # not NOISE
            if not {tree.column for tree in trees} - {None} <= set(task.grammar.columns):
                return history
            declared = {one.declared for one in trees if not isinstance(one.declared, Seasonal)}
            if not declared <= known:
                return history
            if trial.phase is Phase.SEARCH and expression.n_leaves > task.grammar.max_leaves:
                return history
        priced = self.evaluator.priced  # the default prior depends on the base kernels
        history.trials.extend(
            replace(trial, evaluation=priced(trial.evaluation)) for trial in past.history.trials
        )
        return history

    def refitted(self, before: Evaluation) -> FittedModel:
        """Fit a kernel with and without a warm start from an earlier fit; keep the better one."""
        expression = self.space.bound(before.expression)
        fits = [self.evaluator(expression, known) for known in ([], [before])]
        best = max(fits, key=lambda fit: fit.log_posterior)
        return self.averaged([best], searches=False)

    def averaged(
        self,
        best_first: Sequence[Evaluation],
        *,
        searches: bool = True,
        deadline: Deadline = NEVER,
    ) -> FittedModel:
        """Build the model that averages over kernels and parameters.

        With ``searches``, the best kernel may be one that is not among these.

        Raises
        ------
        EvaluationError
            If the first kernel could not be fitted.
        """
        if self.plan.approximation is not None:
            grammar = self.space.grammar if searches else None
            return self._extended(self.plan.approximation, best_first, grammar, deadline)
        if not self.plan.is_plain:
            return self._raced(best_first, deadline)
        point = self.fitted(best_first[0])
        kernels = posterior_over_kernels(self.evaluator, best_first, deadline=deadline)
        model = replace(point, kernels=kernels)
        if self.arguments.averaging is None:
            return model
        if point.evaluation.expression == NOISE:  # where nothing is found, nothing is predicted
            kernels = [one for one in kernels if one.evaluation is point.evaluation]
        # where this fails, the kernel at its best parameters remains
        with one_blas_thread(), suppress(LinAlgError, OutOfTimeError, MemoryError):
            components = self.arguments.averaging.components(
                self.evaluator, kernels, deadline=deadline
            )
            mixture = MixturePredictor(components, self.evaluator.data, ExactPredictor)
            return replace(model, mixture=mixture)
        return model

    def _raced(self, best_first: Sequence[Evaluation], deadline: Deadline) -> FittedModel:
        """Build the model that averages over the best kernels, fitted exactly to all rows."""
        evaluator = _evaluator(self.data, self.arguments, self.structure_prior, seed=self.seed)
        whole = replace(self, evaluator=evaluator, plan=Plan(len(self.y), len(self.y), None))
        fits: list[Evaluation] = []
        with suppress(OutOfTimeError):
            for one in racers(best_first):
                job = evaluator.prepare(one.expression, [one, *fits])
                # scores of fewer rows are no measure
                job = replace(job, best=max((fit.score for fit in fits), default=-np.inf))
                fits.append(evaluator.run(job, deadline=deadline))
        fits = [fit for fit in fits if np.isfinite(fit.score)]
        if not fits:  # no time, or none can be fitted to all rows
            return whole.fitted(best_first[0])
        return whole.averaged(sorted(fits, key=lambda fit: -fit.score), deadline=deadline)

    def _extended(
        self,
        approximation: Approximation,
        best_first: Sequence[Evaluation],
        grammar: Grammar | None,
        deadline: Deadline,
    ) -> FittedModel:
        """Build the model that predicts with the kernel that is best on all rows."""
        found = self._extend(approximation, best_first, grammar, deadline)
        second = approximation.for_weak_signals
        if second is not None and found.evaluation.expression == NOISE:
            again = self._extend(second, best_first, grammar, deadline)
            found = found if deadline.has_passed else again
        try:
            model = self._conditioned(found.evaluation, self.data, found.way)
        except EvaluationError:  # the search's own fit can predict from its own rows
            return self.fitted(best_first[0])
        (only,) = model.kernels
        return replace(model, kernels=(replace(only, draws=found.draws),))

    def _extend(
        self,
        approximation: Approximation,
        best_first: Sequence[Evaluation],
        grammar: Grammar | None,
        deadline: Deadline,
    ) -> Extended:
        """Fit the best kernels of the search to all rows."""
        criterion = self.arguments.criterion.for_approximations()
        climb = Climb(
            approximation,
            self.data,
            priors=self.arguments.priors,
            structure_prior=self.structure_prior,
            criterion=criterion,
            seed=self.seed,
            deadline=deadline,
        )
        with one_blas_thread():
            return extend(
                best_first,
                climb,
                Choice(approximation, self.data, self.plan.order(self.seed), deadline),
                n_searched=self.plan.n_searched,
                races=criterion is not None,
                grammar=grammar,
                seed=self.seed,
            )

    def fitted(self, evaluation: Evaluation) -> FittedModel:
        """Build the model that predicts with one kernel, from the rows of the search.

        Raises
        ------
        EvaluationError
            If the kernel could not be fitted, or if its covariance matrix has no Cholesky factor.
        """
        return self._conditioned(evaluation, self.evaluator.data, ExactPredictor)

    def _conditioned(
        self, evaluation: Evaluation, data: TrainingData, make_predictor: MakePredictor
    ) -> FittedModel:
        """Build the model that predicts with one kernel at its best parameters."""
        expression, theta = evaluation.expression, evaluation.theta
        if not np.isfinite(evaluation.log_posterior):
            raise EvaluationError(f"{expression} could not be fitted because: {evaluation.status}")
        point = [MixtureComponent(expression, theta, 1.0)]
        try:
            with one_blas_thread():  # as in the search, for bit-identical results
                mixture = MixturePredictor(point, data, make_predictor)
        except LinAlgError as error:
            raise EvaluationError(f"{expression} cannot be conditioned on the data") from error
        (predictor,), n = mixture.predictors, len(data.y)
        kernel = to_sklearn(
            expression,
            theta,
            scaling=self.scaling,
            noise_variance=predictor.noise_variance,
            feature_names=self.feature_names,
        )
        only = KernelPosterior(evaluation, 1.0, evaluation.score, theta[None])
        return FittedModel(
            evaluation,
            predictor.noise_variance,
            mixture,
            kernel,
            self.scaling,
            self.target_scaling,
            self.feature_names,
            (only,),
            predictor.text if n == len(self.y) else f"{predictor.text}, given {n} rows",
        )


def _evaluator(
    data: TrainingData, arguments: Arguments, structure_prior: StructurePrior, *, seed: int
) -> Evaluator:
    """Build an evaluator."""
    return Evaluator(
        data.X,
        data.y,
        priors=arguments.priors,
        seed=seed,
        criterion=arguments.criterion,
        structure_prior=structure_prior,
    )


def _bounded_evaluator(
    data: TrainingData, arguments: Arguments, structure_prior: StructurePrior, *, seed: int
) -> Evaluator:
    """Build the evaluator of a search by bounds.

    Raises
    ------
    ValueError
        If the criterion has no bounds.
    """
    criterion = arguments.criterion.for_approximations()
    if criterion is None:
        raise ValueError(
            f"strategy={arguments.strategy!r} bounds the log likelihood, and needs "
            f"criterion='laplace', 'importance', 'bic' or 'aic', got {arguments.criterion!r}"
        )
    return BoundedEvaluator(
        data.X,
        data.y,
        n_inducing=arguments.n_inducing,
        criterion=criterion,
        priors=arguments.priors,
        seed=seed,
        structure_prior=structure_prior,
    )


def _structure_prior(grammar: Grammar, arguments: Arguments) -> StructurePrior:
    """Build the prior over the structures of a grammar."""
    n_columns, chosen = len(grammar.columns), arguments.structure_prior
    if chosen is None:
        return uniform_prior
    if isinstance(chosen, str):
        n_kernels = len(grammar.leaves) / n_columns if n_columns else len(grammar.base_kernels)
        return partial(
            grammar_prior,
            n_kernels=n_kernels,
            n_operators=len(grammar.operators),
            n_columns=n_columns,
        )
    return partial(unit_prior, nats=float(chosen), n_columns=n_columns)
