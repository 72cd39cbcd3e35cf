"""The parameters of a fitted kernel, component by component."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from autokernel.expression import Expression, addends, slots_of
from autokernel.kernels import NOISE_VARIANCE, KernelParameter, Unit
from autokernel.model import FittedModel
from autokernel.report.beliefs import quantiles_of, unit_of
from autokernel.report.table import Table

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
