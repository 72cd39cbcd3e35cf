"""The interface of a criterion: a score of a kernel from the modes of its posterior."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from autokernel.map.maximise import Mode
from autokernel.map.maximum import Maximum
from autokernel.map.posterior import LogPosterior
from autokernel.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a criterion, where larger is better, and the estimate of its error."""

    value: float  #: nats
    standard_error: float = np.nan  #: nats; nan where the criterion draws no random numbers
    pareto_k: float = np.nan  #: above 0.7 the standard error cannot be trusted


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class KernelFit:
    """A fitted kernel, as a criterion receives it."""

    posterior: LogPosterior  #: the log posterior of the parameters
    maximum: Maximum  #: the best mode, with the gradient and the Hessian there
    others: Sequence[Mode]  #: other modes that the search found, the best first
    rng: np.random.Generator  #: random numbers for this kernel alone


class Criterion(ABC, BaseEstimator):
    """A score of a kernel from the modes of its posterior; it has parameters and no state."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def __call__(self, fit: KernelFit) -> Score:
        """Score a fitted kernel.

        Raises
        ------
        NotAMaximumError
            If the kernel cannot be scored. The message becomes the status of the kernel.
        """

    def for_approximations(self) -> "Criterion | None":
        """Return the criterion of kernels fitted by an approximate likelihood, None for none.

        It may ask the likelihood for its value and gradient alone.
        """
        return None

    def check_data(self, X: FloatArray, y: FloatArray) -> None:
        """Raise a ``ValueError`` if no kernel can be scored on these data."""
