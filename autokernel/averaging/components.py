"""The components of a mixture that predicts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autokernel.averaging.posterior import KernelPosterior, systematic
from autokernel.averaging.support_points import support_points
from autokernel.expression import Expression
from autokernel.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: theta is an array
class Component:
    """A kernel with parameters, and its weight in a mixture."""

    expression: Expression
    theta: FloatArray  # (n_params,)
    weight: float


def choose_components(
    kernels: Sequence[KernelPosterior], weights: FloatArray, n: int
) -> list[Component]:
    """Choose ``n`` draws, so many of each kernel as its weight (n_kernels,) asks for.

    Equal draws become one component. The components of one kernel stand together.
    """
    components: list[Component] = []
    for number, count in sorted(Counter(systematic(weights, n).tolist()).items()):
        kernel = kernels[number]
        chosen = kernel.draws[support_points(kernel.draws, count)]
        components += [
            Component(kernel.evaluation.expression, theta, times / n)
            for theta, times in zip(*np.unique(chosen, axis=0, return_counts=True), strict=True)
        ]
    return components
