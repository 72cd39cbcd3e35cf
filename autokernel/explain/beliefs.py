"""What is believed after a fit: kernels, columns and parameters, with probabilities."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from autokernel.explain.tables import Table
from autokernel.expression import Expression, Leaf, addends, slots_of
from autokernel.kernels import ADD, NOISE_VARIANCE, KernelParameter, Role, Unit
from autokernel.model import FittedModel, KernelPosterior
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


_TEXTS = frozenset({"leaf", "column", "parameter", "unit"})


class _Row(NamedTuple):
    """One parameter of one component."""

    component: int
    leaf: str
    column: str
    parameter: str
    value: float
    low: float
    high: float
    unit: str


class Parameters(Table):
    """The parameters of the best kernel, a row for each parameter of each component.

    The keys are ``component``, from one on in the order of the kernel, zero for the noise; ``leaf``
    with ``column``, the base kernel and the column that it uses; ``parameter`` with ``value`` and
    the central 90 % interval from ``low`` to ``high``, nan where parameters were not drawn; and
    ``unit``: the name of a column, ``"variance of y"``, or empty. A parameter of two components,
    as in a product over a sum, has a row in both.
    """

    formats: ClassVar[Mapping[str, str]] = dict.fromkeys(("value", "low", "high"), ".6g")

    @classmethod
    def of(cls, model: FittedModel) -> "Parameters":
        """Build the table of a fitted model."""
        columns = zip(*_rows(model), strict=True)
        return cls(
            {
                name: np.array(column, dtype=object if name in _TEXTS else None)
                for name, column in zip(_Row._fields, columns, strict=True)
            }
        )


def _rows(model: FittedModel) -> Iterator[_Row]:
    """Yield the rows, those of the noise last."""
    values = np.exp(model.evaluation.theta)
    low, _, high = quantiles_of(model)

    def row(
        component: int, node: Expression | None, parameter: KernelParameter, entry: int
    ) -> _Row:
        column = None if node is None else node.column
        name = "" if column is None else model.column_names[column]
        unit = {Unit.INPUT: name, Unit.SQUARED_TARGET: "variance of y"}.get(parameter.unit, "")
        shift, factor = unit_of(parameter, column, model)
        leaf = "noise" if node is None else node.declared.label
        value, lowest, highest = (float(shift + factor * one[entry]) for one in (values, low, high))
        return _Row(component, leaf, name, parameter.name, value, lowest, highest, unit)

    for number, addend in enumerate(addends(model.evaluation.expression), start=1):
        for node, slots in slots_of(addend.expression):
            entries = addend.entries[slots].tolist()
            for parameter, entry in zip(node.parameters, entries, strict=True):
                yield row(number, node, parameter, entry)
    yield row(0, None, NOISE_VARIANCE, len(values) - 1)
