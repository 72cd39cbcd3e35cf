"""What every criterion is: a score of a kernel from the modes of its posterior."""

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
    """The value of a criterion, larger is better, and what is known of its error."""

    value: float  # nats
    standard_error: float = np.nan  # nats; nan where the criterion draws no random numbers
    pareto_k: float = np.nan  # above 0.7 the standard error is not to be trusted


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class KernelFit:
    """A fitted kernel: what a criterion may look at."""

    posterior: LogPosterior
    maximum: Maximum  # the best mode, with the shape of the log posterior around it
    others: Sequence[Mode]  # other modes that the search met, the best first
    rng: np.random.Generator  # of this kernel alone


class Criterion(ABC, BaseEstimator):
    """Scores a kernel from the modes of its posterior; holds parameters and no state."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def __call__(self, fit: KernelFit) -> Score:
        """Score a fitted kernel.

        Raises
        ------
        NotAMaximumError
            If that is not possible; its message becomes the status of the kernel.
        """

    def check_data(self, X: FloatArray, y: FloatArray) -> None:
        """Raise a ``ValueError`` where no kernel could be scored on such data."""
