"""The components of a mixture that predicts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autokernel.averaging.posterior import KernelPosterior, systematic
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
    weight_of_draw = [
        np.full(len(kernel.draws), weight / len(kernel.draws))
        for kernel, weight in zip(kernels, weights, strict=True)
    ]
    owner = np.repeat(np.arange(len(kernels)), [len(kernel.draws) for kernel in kernels])
    theta = [draw for kernel in kernels for draw in kernel.draws]
    chosen = systematic(np.concatenate(weight_of_draw), n)
    counts = Counter((int(owner[index]), theta[index].tobytes()) for index in chosen)
    return [
        Component(kernels[number].evaluation.expression, np.frombuffer(values), count / n)
        for (number, values), count in counts.items()
    ]
