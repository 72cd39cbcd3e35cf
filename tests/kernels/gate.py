"""An operator from outside: asymmetric, with one parameter, on one column.

It stands for change-points, which are operators of the same kind.
"""

import numpy as np

from autokernel.kernels import KernelParameter, Operator, Unit

STEEPNESS = 8.0


class Gate(Operator):
    """``s(x) k1 s(x') + (1 - s(x)) k2 (1 - s(x'))``, where ``s`` falls from 1 to 0 at a location.

    Its derivatives are those by differences.
    """

    symbol = "GATE"
    acts_on_column = True
    parameters = (KernelParameter("location", (2.0, 3.0), Unit.INPUT, start=(0.1, 0.9)),)

    def value(self, at):
        before, after = _shares(at)
        return at.values[0] * before + at.values[1] * after

    def adjoints(self, at, adjoint):
        for share in _shares(at):
            yield adjoint * share


class ExactGate(Gate):
    """The same with its own derivatives."""

    symbol = "EXACTGATE"

    def gradient(self, at, adjoint):
        before, after = _shares(at)
        # (1 + s) (1 + s') = 1 + (s + s') + s s'
        total = at.pairs.outer(lambda x: 1 + fall(x, at.params[0])) - before - 1
        # the derivative of s in the log of the location is STEEPNESS * location * s * (1 - s)
        slope = at.values[0] * before * (2 - total) - at.values[1] * after * total
        return np.array([STEEPNESS * at.params[0] * (adjoint @ slope)])


def fall(x, location):
    """A sigmoid that falls at a location."""
    return 1 / (1 + np.exp(STEEPNESS * (x - location)))


def _shares(at):
    """``s(x) s(x')`` and ``(1 - s(x)) (1 - s(x'))``."""
    (location,) = at.params
    return at.pairs.outer(lambda x: fall(x, location)), at.pairs.outer(
        lambda x: 1 - fall(x, location)
    )


GATE, EXACT_GATE = Gate(), ExactGate()
