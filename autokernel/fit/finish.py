"""The model that results from a search: the best kernels on all rows, averaged, with its tails."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from autokernel.data import NO_SERIES
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluation
from autokernel.exceptions import EvaluationError, OutOfTimeError, fallback, warn_user
from autokernel.expression import Expression
from autokernel.fit.ahead import mixture_ahead
from autokernel.fit.rows import training_data
from autokernel.fit.run import MAX_REVISIONS, Point, Run
from autokernel.fit.stage import Stage
from autokernel.inference import ExactPredictor, Predictor, TrainingData, one_blas_thread
from autokernel.kernels import ADD
from autokernel.many_rows import ManyRows, approximation_of_kernels, fit_all_rows
from autokernel.many_rows.all_rows import warn_of_failures
from autokernel.model import (
    N_FOLDS,
    NO_OUTCOMES,
    PRIOR_LAW,
    SERIES_LAW,
    ErrorLaw,
    FittedModel,
    KernelPosterior,
    LeftOut,
    MixturePredictor,
    Outliers,
    certain,
    condition,
    folds_of,
    how_computed,
    leave_out,
    posterior_over_kernels,
    refit_by,
)
from autokernel.search import EARLY, StopReason, Task
from autokernel.search.loop import MAX_LOSS_AT_END
from autokernel.typing import FloatArray


def finished(run: Run, reason: StopReason) -> FittedModel:
    """Build the final model, a rough fit if no kernel has a score, or raise ``EvaluationError``."""
    if (best := run.best()) is None:
        return model_of(run, _rough(run, reason))
    scored = run.stage.history.best_first()
    if best[0] is not scored[0]:
        warn_user(
            f"the kernel of the highest score is left out, as {run.failure}: this model has "
            f"{best[0].expression}",
            ConvergenceWarning,
        )
    if reason is StopReason.INTERRUPTED:
        return model_of(run, best)
    others = [one for one in scored if one is not best[0]]
    keeps_kernels = run.arguments.strategy.is_of_series and not run.stage.is_long_series
    task = None if keeps_kernels else run.loop.task
    return _fitted_to_all(run, best, others, run.deadline.earlier(run.reserved_seconds), task)


def refitted(run: Run, kernel: str | Expression | Evaluation) -> FittedModel:
    """Fit one kernel without a search, also from the parameters of an earlier fit.

    Outliers of this kernel are excluded, others come back, and it is fitted again, a few times at
    most. A ``ValueError`` is raised if the kernel does not fit the data, and an ``EvaluationError``
    if it cannot be fitted.
    """
    if not run.stage.is_last:
        run.stages = [run.new_stage(outliers=run.stage.outliers, number=1)]
    best = _fit(run.stage, kernel)
    for _ in range(MAX_REVISIONS):
        following, _ = run.following([best], run.deadline, ends=True, is_cut=False)
        if following is None:
            break
        run.stages = [following]
        best = _fit(following, best)
    return _fitted_to_all(run, (best, condition(best, run.stage.last)), [], run.deadline, None)


def _fit(stage: Stage, kernel: str | Expression | Evaluation) -> Evaluation:
    if not isinstance(kernel, Evaluation):
        return stage.evaluator(stage.space.kernel(kernel, argument="kernel"))
    stage.space.check_scales(kernel.expression)
    fits = [stage.evaluator(kernel.expression, known) for known in ([], [kernel])]
    return max(fits, key=lambda fit: fit.log_posterior)


def _rough(run: Run, reason: StopReason) -> Point:
    """Return a rough fit of a search cut before any score, given all its rows if in time."""
    stage = run.stage
    rough, n_failed = run.rough() if reason in EARLY else None, len(run.stage.history)
    if rough is None:
        failed = run.stage.history.evaluations[:1]
        first = f"the first, {failed[0].expression}: {failed[0].status}" if failed else "no time"
        why = run.failure or first
        raise EvaluationError(f"none of the {n_failed} kernels could be fitted; {why}")
    if reason is not StopReason.INTERRUPTED:
        also = f", and {n_failed} could not be fitted" if n_failed else ""
        warn_user(
            f"{reason} ended the search before any kernel had a score{also}: this model is a "
            f"rough fit of {rough[0].expression}, allow more time",
            ConvergenceWarning,
        )
    n = len(stage.last.y)
    if len(rough[1].data.y) < n and run.conditioning_seconds(n) < run.deadline.seconds_left:
        with suppress(EvaluationError):
            return rough[0], condition(rough[0], stage.last)
    return rough


def _fitted_to_all(
    run: Run, best: Point, others: Sequence[Evaluation], deadline: Deadline, task: Task | None
) -> FittedModel:
    """Fit the best kernels to all rows, average over kernels and parameters, and leave rows out.

    With the ``task`` of the search, the best kernel may be one that is not among these.
    """
    stage, of_search, kernels, mixture = run.stage, best[1], [certain(best[0])], best[1]
    text = f"predictions are given the {len(of_search.data.y)} rows of the search only"
    if stage.approximation is not None:
        name, best_first = run.arguments.approximation, [best[0], *others]
        how = approximation_of_kernels(name, best_first, stage.data) or stage.approximation
        rows = ManyRows(how, stage.data, stage.evaluator, deadline=deadline)
        with fallback(text, OutOfTimeError):
            evaluation, draws, mixture = _approximated(best_first, rows, task)
            best, kernels = (evaluation, mixture), [replace(certain(evaluation), draws=draws)]
    elif stage.is_exact_on_all:
        kernels, mixture = _averaged(run, best, others, deadline)
    else:
        failed = run.stages[-1].history.evaluations
        warn_of_failures(failed, "exactly", n_rows=len(stage.rows), has_fit=False)
        if len(of_search.data.y) < len(stage.rows):
            warn_user(f"{text}, as {run.failure}", ConvergenceWarning)
    left_out, ahead = _left_out(run, [best[0], *others], mixture, deadline), None
    text = "rows beyond the time of the fit are predicted as those between its rows"
    with fallback(text, OutOfTimeError, MemoryError), one_blas_thread():
        ahead = mixture_ahead(run, best[0], mixture, deadline)
    return model_of(run, best, kernels, mixture, left_out, ahead)


def _approximated(
    best_first: Sequence[Evaluation], rows: ManyRows, task: Task | None
) -> tuple[Evaluation, FloatArray, MixturePredictor]:
    evaluation, draws, make_predictor = fit_all_rows(best_first, rows, task)
    rows.deadline.check(rows.deadline.expected_seconds(str(make_predictor), len(rows.data.y)))
    with fallback("predictions are approximated"):
        return evaluation, draws, condition(evaluation, rows.data, make_predictor)
    return evaluation, draws, condition(evaluation, rows.data, rows.approximation.predictors[0])


def _averaged(
    run: Run, best: Point, others: Sequence[Evaluation], deadline: Deadline
) -> tuple[list[KernelPosterior], MixturePredictor]:
    """Average over kernels and parameters, both fitted to the rows of the search."""
    evaluator, evaluation, averaging = run.stage.evaluator, best[0], run.arguments.averaging
    seconds = run.conditioning_seconds(len(evaluator.data.y))  # of each component
    of_all = seconds * (averaging.n_components if averaging else 0)
    until = max(deadline.earlier(of_all), deadline.share(0.5), key=lambda one: one.seconds_left)
    # otherwise kernels differ in effects, or in a season that changes in the best one
    is_alike = len(run.stage.space.grammar.columns) == 1 and run.arguments.strategy.is_of_series
    is_alike = is_alike and all(one.n_leaves < 2 for one in evaluation.expression.terms(ADD))
    kernels = posterior_over_kernels(
        evaluator,
        [evaluation, *others],
        equal_share=0.5 * is_alike,  # for kinds of walks and scales; the rest is by evidence
        deadline=until,
    )
    if averaging is None:
        return kernels, best[1]
    averaged, mixture = kernels, best[1]
    if not evaluation.expression.leaves:  # if nothing is found, nothing is predicted
        averaged = [one for one in kernels if one.evaluation is evaluation]
    text = f"this model predicts by {evaluation.expression} at its best parameters, not by averages"
    with fallback(text, MemoryError, OutOfTimeError), one_blas_thread():
        components = averaging.components(averaged)
        deadline.check(len(components) * seconds - run.reserved_seconds)
        mixture = MixturePredictor(components, evaluator.data, ExactPredictor)
    return kernels, mixture


def _left_out(
    run: Run, best_first: Sequence[Evaluation], mixture: MixturePredictor, deadline: Deadline
) -> LeftOut | None:
    """Predict rows by models without them, fitted again unless approximate; None on failure."""
    stage, is_of_series = run.stage, run.arguments.strategy.is_of_series
    is_refitted = stage.approximation is None and stage.is_exact_on_all
    series = run.given.series if is_of_series else NO_SERIES
    n_folds = N_FOLDS if is_refitted else 1  # without a fit, all are alike
    ranked = best_first if run.arguments.averaging else best_first[:1]
    folds = folds_of(mixture.data, series, n_folds)
    refit = refit_by(ranked, stage.evaluator) if is_refitted else None
    text = "how well new rows are predicted is not known, as none could be left out"
    with fallback(text, MemoryError), one_blas_thread():
        return leave_out(mixture, folds, refit, deadline)
    return None


def model_of(
    run: Run,
    best: Point,
    kernels: Sequence[KernelPosterior] = (),
    mixture: MixturePredictor | None = None,
    left_out: LeftOut | None = None,
    ahead: MixturePredictor | None = None,
) -> FittedModel:
    """Build the model of the rows of the last stage, by default that of only the best kernel.

    The law of its errors is that of the rows that were left out. Those of a series do not show it,
    as the errors of one block are alike.
    """
    (evaluation, point), kernels = best, kernels or [certain(best[0])]
    stage, given, deviations = run.stage, run.given, np.full(len(run.given.y), np.nan)
    mixture = point if mixture is None else mixture
    if len(stage.outliers):
        excluded = training_data(given, like=stage.data).take(stage.outliers)
        (predictor,) = point.predictors
        deviations[stage.outliers] = deviations_of(excluded, predictor, evaluation.expression)
    is_of_series = run.arguments.strategy.is_of_series
    law = SERIES_LAW if is_of_series else PRIOR_LAW
    if left_out is not None and not is_of_series:
        share = left_out.weights.sum() / stage.data.noise.counts.sum()  # of all rows
        law = ErrorLaw.learned(
            np.append(ndtri(left_out.probability), deviations[stage.outliers]),
            np.append(left_out.weights, share * given.noise.counts[stage.outliers]),
            has_width=run.arguments.averaging is not None,
        )
    if run.arguments.averaging is None:  # moments are those of the best kernel
        law = replace(law, deviation=1.0)
    # all equal rows, in the order in which they are given
    is_out = np.isin(given.first_equal, given.rows[stage.outliers])
    of_out = np.searchsorted(given.rows, given.first_equal[is_out])
    kept = np.searchsorted(given.rows, given.first_equal[~is_out & (given.first_equal >= 0)])
    out = np.flatnonzero(is_out), deviations[of_out], given.X[of_out], given.y[of_out]
    return FittedModel(
        best=[one.evaluation is evaluation for one in kernels].index(True),
        scaled_noise_variance=point.predictors[0].typical_noise,
        mixture=mixture.with_law(law),
        ahead=ahead,
        kernels=kernels,
        approximation=how_computed(point, len(stage.rows)),
        unjudged=_unjudged(run, evaluation),
        series=given.series,
        resolution=given.resolution,
        n_given=len(given.first_equal),
        outliers=Outliers(*out),
        weightless=given.weightless,
        rows=stage.rows,
        given_rows=stage.rows[mixture.data.inputs.rows],
        X=given.X[kept],
        y=given.y[kept],
        outcomes=NO_OUTCOMES,
        left_out=left_out,
    )


def _unjudged(run: Run, best: Evaluation) -> tuple[int, ...]:
    """Return the columns that a search that was cut has neither left out nor added.

    A column is judged if a kernel that differs from the best only in it was fitted, or is estimated
    to be worse.
    """
    if not run.was_cut:
        return ()
    known = [one.expression.columns for one in run.stage.history.best_first()]
    changes = run.loop.task.known_neighbours(best)
    known += [one.expression.columns for one in changes if one.score < best.score]
    least = best.score - MAX_LOSS_AT_END
    with suppress(OutOfTimeError):  # if not known yet
        forms = run.loop.task.simplifications(best)
        known += [one.expression.columns for one in forms if one.score < least]
    used = best.expression.columns
    added = {c for own in known if own >= used for c in own - used}
    left = {c for c in used if any(c not in own and own >= used - {c} for own in known)}
    return tuple(sorted({*run.stage.space.grammar.columns} - added - left))


def deviations_of(rows: TrainingData, predictor: Predictor, expression: Expression) -> FloatArray:
    """Compute the deviations (n,) of rows from predictions, on the scale of the target of a kernel.

    They are infinite where this scale ends.
    """
    errors, covariance = predictor.errors(rows, predictor.mean_and_covariance(rows.X))
    has_density = rows.on(expression.target).noise.has_density
    return np.where(has_density, errors / np.sqrt(np.diag(covariance)), np.inf)
