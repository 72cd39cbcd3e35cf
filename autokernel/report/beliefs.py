"""What is believed after a fit: kernels, columns and parameters, with probabilities."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from autokernel.averaging import KernelPosterior
from autokernel.expression import Expression, Leaf, slots_of
from autokernel.kernels import NOISE_VARIANCE, KernelParameter, Role, Unit
from autokernel.model import FittedModel
from autokernel.operators import ADD
from autokernel.report.table import Table
from autokernel.typing import FloatArray

_LEVELS = (0.05, 0.5, 0.95)


class Posterior(Table):
    """The kernels that are believed, the most probable first.

    The keys are ``probability``, ``log_evidence`` (the criterion, if that is no evidence) and
    ``log_prior`` in nats, ``n_leaves``, ``pareto_k`` and ``kernel``.
    """

    formats: ClassVar[Mapping[str, str]] = {
        "probability": ".3f",
        "log_evidence": ".2f",
        "log_prior": ".2f",
        "pareto_k": ".2f",
    }

    @classmethod
    def of(cls, model: FittedModel) -> "Posterior":
        """Build the table of a fitted model."""
        kernels = model.kernels
        evaluations = [kernel.evaluation for kernel in kernels]
        texts = [one.expression.to_text(model.feature_names) for one in evaluations]
        log_priors = np.array([one.log_structure_prior for one in evaluations])
        return cls(
            probability=np.array([kernel.probability for kernel in kernels]),
            log_evidence=np.array([kernel.log_score for kernel in kernels]) - log_priors,
            log_prior=log_priors,
            n_leaves=np.array([one.expression.n_leaves for one in evaluations]),
            pareto_k=np.array([kernel.pareto_k for kernel in kernels]),
            kernel=np.array(texts, dtype=object),
        )


class Inclusion(Table):
    """Probabilities for each column, given the kernels that the search has evaluated.

    The keys are ``column``; ``depends``: the kernel uses the column, be it with a lengthscale so
    wide that it hardly matters; ``repeats``: the target repeats itself along the column, with a
    period that is shorter than the extent of the data; ``linear``: the target is the sum of a
    straight line in this column and a function of the others.
    """

    formats: ClassVar[Mapping[str, str]] = dict.fromkeys(("depends", "repeats", "linear"), ".3f")

    @classmethod
    def of(cls, model: FittedModel) -> "Inclusion":
        """Build the table of a fitted model."""
        columns = range(len(model.scaling.scale))
        names = model.column_names
        weights = np.array([kernel.probability for kernel in model.kernels])

        def mean(events: Sequence[Sequence[float]]) -> FloatArray:
            return weights @ np.array(events, dtype=float)

        expressions = [kernel.evaluation.expression for kernel in model.kernels]
        return cls(
            column=np.array(names, dtype=object),
            depends=mean([[_depends(e, c) for c in columns] for e in expressions]),
            repeats=mean([[_repeats(kernel, c) for c in columns] for kernel in model.kernels]),
            linear=mean([[_is_linear(e, c) for c in columns] for e in expressions]),
        )


class Intervals(Table):
    """The parameters of the best kernel with central 90 % intervals.

    Lengthscales and periods are in the units of ``X``, the noise variance in that of y squared, all
    others as the search has them. The keys are ``kernel`` (a leaf or an operation, empty for the
    noise), ``parameter``, ``low``, ``median`` and ``high``. Where parameters were not drawn, as
    after Ctrl-C, the ends are nan.
    """

    formats: ClassVar[Mapping[str, str]] = dict.fromkeys(("low", "median", "high"), ".6g")

    @classmethod
    def of(cls, model: FittedModel) -> "Intervals":
        """Build the table of a fitted model."""
        expression = model.evaluation.expression
        nodes = [
            (node, parameter) for node, _ in slots_of(expression) for parameter in node.parameters
        ]
        shifts, factors = np.transpose(
            [
                *(unit_of(parameter, node.column, model) for node, parameter in nodes),
                (0.0, model.target_scaling.scale**2),
            ]
        )
        low, median, high = quantiles_of(model) * factors + shifts
        names = [parameter.name for _, parameter in nodes] + [NOISE_VARIANCE.name]
        texts = [node.to_text(model.feature_names) for node, _ in nodes] + [""]
        return cls(
            kernel=np.array(texts, dtype=object),
            parameter=np.array(names, dtype=object),
            low=low,
            median=median,
            high=high,
        )


def quantiles_of(model: FittedModel) -> FloatArray:
    """Compute quantiles (3, n_params) of the parameters of the best kernel, in the search's units.

    They are those of 5, 50 and 95 %. The outer ones are nan where parameters were not drawn.
    """
    (draws,) = (k.draws for k in model.kernels if k.evaluation is model.evaluation)
    quantiles = np.quantile(np.exp(draws), _LEVELS, axis=0)
    if len(draws) == 1:  # nothing is known of how far the parameters may be off
        quantiles[[0, -1]] = np.nan
    return quantiles


def unit_of(
    parameter: KernelParameter, column: int | None, model: FittedModel
) -> tuple[float, float]:
    """Return shift and factor from the units of the search to those of the user.

    A variance is that of the standardised target: the variances of the factors of a product have no
    unit of their own.
    """
    if parameter.unit != Unit.INPUT or column is None:
        return 0.0, 1.0
    shift, scale = model.scaling.of_column(column)
    return (shift if parameter.role == Role.LOCATION else 0.0), scale


def _depends(expression: Expression, column: int) -> bool:
    """Whether a kernel uses a column."""
    return any(tree.column == column for tree in expression.subtrees())


def _is_linear(expression: Expression, column: int) -> bool:
    """Whether a column enters a kernel only as one straight line that is an addend."""
    with_it = [term for term in expression.terms(ADD) if _depends(term, column)]
    return bool(with_it) and all(
        isinstance(term, Leaf) and term.kernel.is_linear for term in with_it
    )


def _repeats(kernel: KernelPosterior, column: int) -> float:
    """Compute the share of draws with a period shorter than the extent of a column."""
    periods = [
        kernel.draws[:, entries.start + number]
        for node, entries in slots_of(kernel.evaluation.expression)
        for number, parameter in enumerate(node.parameters)
        if node.column == column and parameter.role == Role.PERIOD
    ]
    if not periods:
        return 0.0
    return float(np.mean(np.min(periods, axis=0) < 0.0))  # columns are scaled to unit extent
