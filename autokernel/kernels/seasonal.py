"""The periodic kernel with a prior around a period that the user knows."""

import re
from collections.abc import Mapping
from dataclasses import replace

from autokernel.kernels.parameters import CYCLE_LENGTHSCALE, PERIOD, VARIANCE
from autokernel.kernels.per import Periodic

_SHAPE = 400.0  # of the Gamma prior: its standard deviation is a twentieth of its mean
_WITHIN = 0.15  # of the period: how far from it the search begins


class Seasonal(Periodic):
    """The periodic kernel whose period is known up to about 5 percent.

    Parameters
    ----------
    period : float
        The period in the unit of the column.
    scale : float
        The extent of the column: the period is searched in multiples of it.
    """

    def __init__(self, period: float, *, scale: float) -> None:
        super().__init__(name_of_period(period))
        share = period / scale
        around = replace(
            PERIOD,
            prior=(_SHAPE, _SHAPE / share),
            start=((1 - _WITHIN) * share, (1 + _WITHIN) * share),
            keeps_prior=True,
        )
        self.period, self.scale = float(period), float(scale)
        self.parameters = (CYCLE_LENGTHSCALE, VARIANCE, around)

    @property
    def record(self) -> dict[str, float]:
        """What :meth:`from_record` makes the same kernel of."""
        return {"period": self.period, "scale": self.scale}

    @classmethod
    def from_record(cls, record: Mapping[str, float | str]) -> "Seasonal":
        """Make the kernel of a record."""
        return cls(float(record["period"]), scale=float(record["scale"]))

    def __repr__(self) -> str:
        return self.name


def name_of_period(period: float) -> str:
    """Name the kernel of a period, such as ``PER12`` or ``PER365_25``."""
    return f"{Periodic.name}{re.sub(r'[^0-9a-z]', '_', f'{period:.6g}')}"
