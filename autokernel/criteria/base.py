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


class Criterion(ABC, BaseEstimator):
    """Scores a kernel from the modes of its posterior; holds parameters and no state."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def __call__(
        self,
        posterior: LogPosterior,
        summit: Maximum,
        *,
        others: Sequence[Mode],
        rng: np.random.Generator,
    ) -> Score:
        """Score by the best mode, with its shape, and other modes.

        A ``NotAMaximumError`` says why that is not possible.
        """

    def check_data(self, X: FloatArray, y: FloatArray) -> None:
        """Raise a ``ValueError`` where no kernel could be scored on such data."""
