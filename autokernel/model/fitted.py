"""A fitted kernel with its predictor, in the units of the user."""

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from autokernel.data import Scaling, TargetScaling
from autokernel.evaluation import Evaluation
from autokernel.model.predictor import Predictor
from autokernel.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class FittedModel:
    """A kernel with its parameters, its predictor and the scaling of the data."""

    evaluation: Evaluation
    predictor: Predictor
    kernel: Kernel  # scikit-learn kernel on inputs before scaling, noise included
    scaling: Scaling
    target_scaling: TargetScaling
    feature_names: list[str] | None

    @property
    def noise_variance(self) -> float:
        """Variance of the noise, in the squared unit of the target."""
        return self.predictor.noise_variance * self.target_scaling.scale**2

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features)."""
        return self.target_scaling.undo(self.predictor.mean(self.scaling.apply(X)))

    def mean_and_std(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and standard deviation (n,), noise included."""
        mean, variance = self.predictor.mean_and_variance(self.scaling.apply(X))
        return self.target_scaling.undo(mean), self.target_scaling.scale * np.sqrt(variance)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""
        mean, covariance = self.predictor.mean_and_covariance(self.scaling.apply(X))
        return self.target_scaling.undo(mean), self.target_scaling.scale**2 * covariance

    def samples(
        self, X: FloatArray, n_samples: int, random_state: int | np.random.RandomState | None
    ) -> FloatArray:
        """Draw new observations (n, n_samples), noise included."""
        rng = check_random_state(random_state)
        draws = self.predictor.samples(self.scaling.apply(X), n_samples, rng)
        return self.target_scaling.undo(draws)
