"""How predictions average over kernels and their parameters."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from autokernel.averaging.components import Component, choose_components
from autokernel.averaging.posterior import KernelPosterior
from autokernel.averaging.stacking import loo_log_densities, stacking_weights
from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation import Evaluator
from autokernel.typing import FloatArray


class Averaging(ABC, BaseEstimator):
    """How a mixture is made of the posterior over kernels; it has parameters and no state.

    Parameters
    ----------
    n_components : int, default=8
        Number of draws of a kernel with its parameters. The time of ``predict`` grows with it.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, *, n_components: int = 8) -> None:
        self.n_components = n_components

    @abstractmethod
    def weights(
        self,
        evaluator: Evaluator,
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,
    ) -> FloatArray:
        """Compute the weights (n_kernels,) of the kernels, which sum to one.

        Raises
        ------
        OutOfTimeError
            Once the deadline has passed.
        """

    def components(
        self,
        evaluator: Evaluator,
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,
    ) -> list[Component]:
        """Choose the components of the mixture."""
        weights = self.weights(evaluator, kernels, deadline=deadline)
        return choose_components(kernels, weights, self.n_components)


class PosteriorAveraging(Averaging):
    """Bayesian model averaging: every kernel has its posterior probability as weight.

    Parameters
    ----------
    n_components : int, default=8
        Number of draws of a kernel with its parameters. The time of ``predict`` grows with it.
    """

    def weights(
        self,
        evaluator: Evaluator,  # noqa: ARG002 - stacking uses it
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,  # noqa: ARG002 - stacking uses it
    ) -> FloatArray:
        """Return the posterior probabilities."""
        return np.array([kernel.probability for kernel in kernels])


class Stacking(Averaging):
    """Weights that maximise the leave-one-out log predictive density of the mixture.

    Parameters
    ----------
    n_components : int, default=8
        Number of draws of a kernel with its parameters. The time of ``predict`` grows with it.

    Notes
    -----
    Yao, Vehtari, Simpson and Gelman (2018), *Using stacking to average Bayesian predictive
    distributions*. The densities integrate over the parameters by Pareto-smoothed importance
    sampling. Rows left out are predicted from rows on both sides: for forecasts, prefer
    :class:`PosteriorAveraging`.
    """

    def weights(
        self,
        evaluator: Evaluator,
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,
    ) -> FloatArray:
        """Compute the weights from the densities of rows left out."""
        log_densities = [
            loo_log_densities(
                evaluator, kernel.evaluation.expression, kernel.draws, deadline=deadline
            )
            for kernel in kernels
        ]
        return stacking_weights(np.array(log_densities))


AVERAGES: Mapping[str, type[Averaging]] = MappingProxyType(
    {"posterior": PosteriorAveraging, "stacking": Stacking}
)
