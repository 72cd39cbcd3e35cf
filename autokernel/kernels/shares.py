"""Kernels ``f(x) f(x')`` of a function between zero and one: parts of a column that are kept.

They are factors of the operands of change-points, and no base kernels of the search.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from autokernel.kernels.base import BaseKernel, Sources
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import KernelParameter, Role, Unit
from autokernel.typing import FloatArray

LOCATION = KernelParameter(
    "location",
    (2.0, 3.0),
    Unit.INPUT,
    Role.LOCATION,
    start=(0.05, 0.95),
    grid=tuple((np.arange(1, 20) / 20).tolist()),
)
CENTRE = replace(LOCATION, name="centre", grid=tuple((np.arange(1, 10) / 10).tolist()))
LENGTH = KernelParameter("length", (2.0, 6.0), Unit.INPUT, start=(0.05, 0.7), grid=(0.1, 0.2, 0.4))
WIDTH = KernelParameter("width", (1.0, 50.0), Unit.INPUT, start=(0.001, 0.1), grid=(0.002, 0.02))


def _sources(function: str) -> Sources:
    """Write a kernel ``f(x) f(x')`` in the programs of other libraries."""
    part = "Part({column}, lambda x: " + function + ")"
    return Sources(part.replace("sigmoid", "torch.sigmoid"), part.replace("sigmoid", "tf.sigmoid"))


class Sigmoids(NamedTuple):
    """Arguments of the logistic functions whose product is the function, and their derivatives."""

    logits: list[FloatArray]
    slopes: list[list[FloatArray]]  # of each argument, in the log of each parameter


class Share(BaseKernel):
    """``f(x) f(x')``, where ``f`` is about one in a part of a column and zero elsewhere."""

    broadcasts = True
    is_rest: ClassVar[bool] = False  # whether the part is all that a product of sigmoids leaves

    @abstractmethod
    def edges(self, params: FloatArray) -> tuple[FloatArray | None, FloatArray | None]:
        """Return where the part begins and ends, None for an edge that it does not have.

        If ``is_rest``, the part is what is not between the edges.
        """

    @abstractmethod
    def sigmoids(self, params: FloatArray, x: FloatArray) -> Sigmoids:
        """Compute the sigmoids for parameters (n_params, ...) that broadcast with inputs."""

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the kernel values, elementwise over the pairs."""
        return pairs.outer(lambda x: self._function_and_slopes(params, x)[0])

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters.

        With a slope g of f it is ``f g' + g f' = ((f + g) (f + g)' - (f - g) (f - g)') / 2``.
        """

        def moved(number: int, sign: int) -> FloatArray:
            def function(x: FloatArray) -> FloatArray:
                value, slopes = self._function_and_slopes(params, x)
                return value + sign * slopes[number]

            return pairs.outer(function)

        return np.array(
            [
                0.5 * (adjoint * (moved(number, 1) - moved(number, -1))).sum()
                for number in range(len(params))
            ]
        )

    def _function_and_slopes(
        self, params: FloatArray, x: FloatArray
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Compute ``f`` and its derivatives in the logs of the parameters."""
        logits, slopes_of_logits = self.sigmoids(params, x)
        values, others = [expit(z) for z in logits], [expit(-z) for z in logits]
        whole = np.prod(values, axis=0)
        slopes = [
            whole * sum(other * slope for other, slope in zip(others, of_parameter, strict=True))
            for of_parameter in zip(*slopes_of_logits, strict=True)
        ]
        if not self.is_rest:
            return whole, slopes
        first, *later = others
        rest, before = first, values[0]
        for value, other in zip(values[1:], later, strict=True):  # 1 - ab = (1 - a) + a (1 - b)
            rest, before = rest + before * other, before * value
        return rest, [-slope for slope in slopes]


class Before(Share):
    """A part up to a location, where a sigmoid falls from one to zero."""

    name = "BEFORE"
    sources = _sources("sigmoid(({location} - x) / {width})")
    formula = (
        r"\varsigma\left(\frac{<location> - <x>}{<width>}\right)"
        r"\varsigma\left(\frac{<location> - <x>'}{<width>}\right)"
    )
    parameters = (LOCATION, WIDTH)

    def edges(self, params: FloatArray) -> tuple[None, FloatArray]:
        """Return the location as the end."""
        return None, params[0]

    def sigmoids(self, params: FloatArray, x: FloatArray) -> Sigmoids:
        """Compute ``(location - x) / width``."""
        location, width = params
        logit = (location - x) / width
        return Sigmoids([logit], [[location / width, -logit]])


class After(Before):
    """A part from a location on; the functions of this part and of that before it add up to one."""

    name = "AFTER"
    sources = _sources("sigmoid((x - {location}) / {width})")
    formula = (
        r"\varsigma\left(\frac{<x> - <location>}{<width>}\right)"
        r"\varsigma\left(\frac{<x>' - <location>}{<width>}\right)"
    )
    is_rest = True


_WINDOW = (
    r"\varsigma\left(\frac{<x> - <centre> + <length> / 2}{<width>}\right)"
    r"\varsigma\left(\frac{<centre> + <length> / 2 - <x>}{<width>}\right)"
)
_OTHER_WINDOW = _WINDOW.replace("<x>", "<x>'")


class Inside(Share):
    """A part around a centre, where a product of two sigmoids is about one."""

    name = "INSIDE"
    sources = _sources("window(x, {centre}, {length}, {width})")
    formula = _WINDOW + _OTHER_WINDOW
    parameters = (CENTRE, LENGTH, WIDTH)

    def edges(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the centre less and plus half of the length."""
        centre, length, _ = params
        return centre - length / 2, centre + length / 2

    def sigmoids(self, params: FloatArray, x: FloatArray) -> Sigmoids:
        """Compute ``(x - begin) / width`` and ``(end - x) / width``."""
        begin, end = self.edges(params)
        centre, length, width = params
        rising, falling = (x - begin) / width, (end - x) / width
        by_length = length / 2 / width
        return Sigmoids(
            [rising, falling],
            [[-centre / width, by_length, -rising], [centre / width, by_length, -falling]],
        )


class Outside(Inside):
    """All but a part around a centre."""

    name = "OUTSIDE"
    sources = _sources("1 - window(x, {centre}, {length}, {width})")
    formula = rf"\left(1 - {_WINDOW}\right)\left(1 - {_OTHER_WINDOW}\right)"
    is_rest = True


BEFORE, AFTER, INSIDE, OUTSIDE = Before(), After(), Inside(), Outside()
