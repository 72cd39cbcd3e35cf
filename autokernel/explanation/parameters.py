"""The parameters of a fitted kernel, component by component."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from autokernel.expression import Leaf, addends, slots_of
from autokernel.kernels import NOISE_VARIANCE, KernelParameter, Unit
from autokernel.model import FittedModel
from autokernel.report.beliefs import central_interval, unit_of
from autokernel.report.table import Table

_NO_UNIT, _SQUARED = "", "variance of y"


class Parameters(Table):
    """The parameters of the best kernel, a row for each parameter of each component.

    The keys are ``component``, from one on in the order of the kernel, zero for the noise; ``leaf``
    with ``column``, the base kernel and the column that it uses; ``parameter`` with ``value`` and
    the central 90 % interval from ``low`` to ``high``, nan where parameters were not drawn; and
    ``unit``: the name of a column, ``"variance of y"``, or empty. A parameter of two components,
    as in a product over a sum, has a row in both.
    """

    formats: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def of(cls, model: FittedModel) -> "Parameters":
        """Build the table of a fitted model."""
        theta = model.evaluation.theta
        low, high = central_interval(model)
        rows: list[tuple[int, str, str, str, float, float, float, str]] = []

        def add(
            component: int, leaf: str, column: int | None, parameter: KernelParameter, entry: int
        ) -> None:
            factor = unit_of(parameter, column, model)
            name = "" if column is None else model.column_names[column]
            values = (float(np.exp(theta[entry])), low[entry], high[entry])
            unit = {Unit.INPUT: name, Unit.SQUARED_TARGET: _SQUARED}.get(parameter.unit, _NO_UNIT)
            rows.append(
                (component, leaf, name, parameter.name, *(factor * v for v in values), unit)
            )

        for number, addend in enumerate(addends(model.evaluation.expression), start=1):
            for node, slots in slots_of(addend.expression):
                leaf = node.declared.label
                column = node.column if isinstance(node, Leaf) else None
                for parameter, entry in zip(node.parameters, addend.entries[slots], strict=True):
                    add(number, leaf, column, parameter, int(entry))
        add(0, "noise", None, NOISE_VARIANCE, len(theta) - 1)
        names = ("component", "leaf", "column", "parameter", "value", "low", "high", "unit")
        texts = {"leaf", "column", "parameter", "unit"}
        columns = zip(*rows, strict=True)
        return cls(
            {
                name: np.array(column, dtype=object if name in texts else None)
                for name, column in zip(names, columns, strict=True)
            }
        )
