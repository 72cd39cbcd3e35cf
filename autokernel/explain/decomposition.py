"""A fitted function as a sum of components, in the units of the target."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from autokernel.expression import Addend, Expression, addends
from autokernel.inference import one_blas_thread
from autokernel.inference.base import Predictor
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import Role
from autokernel.model import FittedModel
from autokernel.typing import FloatArray, IntArray

SAME_PARAMETERS = 1e-6  # relative difference up to which addends are one component
TEXT_OF_AVERAGING = "What the average over other kernels and parameters adds."


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Component:
    """One summand of a fitted function.

    Attributes
    ----------
    expression : str
        Its kernel, a product of base kernels; empty for the contribution of averaging.
    text : str
        The component in words.
    mean, std : ndarray of shape (n_samples,)
        Posterior mean and standard deviation, in the units of the target. Components are
        correlated: their variances do not add up to that of the function.
    share : float
        Share of the variance of the fitted function over the training rows, by the covariance of
        the component with the function. The shares add up to one. That of a component which
        another one counteracts is negative.
    """

    expression: str
    text: str
    mean: FloatArray
    std: FloatArray
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """A fitted function: a constant, components and noise.

    Attributes
    ----------
    constant : float
        Mean of the training targets.
    noise_std : float
        Standard deviation of the noise, in the units of the target.
    components : list of Component
        Those of the best kernel, the one of the largest share first. If predictions average over
        kernels or parameters, the last one is the difference between the average and the best
        kernel at its best parameters. ``constant`` and the means add up to ``predict``.
    """

    constant: float
    noise_std: float
    components: list[Component]

    def __repr__(self) -> str:
        lines = [f"constant {self.constant:.4g}"]
        lines += [
            f"{one.share:7.1%}  {one.expression}{': ' if one.expression else ''}{one.text}"
            for one in self.components
        ]
        return "\n".join([*lines, f"noise with standard deviation {self.noise_std:.3g}"])


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A component of the best kernel, before it is put into words.

    Addends that are equal but for their variances, which no data distinguish, are one part.
    """

    group: Sequence[Addend]
    theta_of_all: FloatArray  # logs of all parameters of the kernel that is explained
    share: float = np.nan
    span: float = np.nan  # of its mean over the training rows, in the units of the target

    @property
    def expression(self) -> Expression:
        """The kernel, once."""
        return self.group[0].expression

    @property
    def entries(self) -> IntArray:
        """Entries of the parameters of the kernel in those of the whole."""
        return self.group[0].entries

    @property
    def theta(self) -> FloatArray:
        """Logs of the parameters (n_params,) of the kernel, without the noise variance."""
        return self.theta_of_all[self.entries]

    @property
    def kernel(self) -> tuple[Expression, FloatArray]:
        """The sum of the addends, and its parameters (n_params,), not their logs."""
        first, *others = self.group
        kernel = sum((one.expression for one in others), start=first.expression)
        entries = np.concatenate([one.entries for one in self.group])
        return kernel, np.exp(self.theta_of_all[entries])


class ExplainedFunction:
    """The fitted function: the parts of the best kernel, and the contribution of averaging.

    Attributes
    ----------
    parts : list of Part
        The parts of the best kernel at its best parameters, the largest share first.
    is_averaged : bool
        Whether predictions average over kernels or parameters.
    share_of_averaging : float
        Share of the variance over the training rows that averaging adds; zero without it.
    std_of_averaging : float
        Standard deviation over the training rows of what averaging adds.
    """

    def __init__(self, model: FittedModel) -> None:
        self._model, X, evaluation = model, model.mixture.data.X, model.evaluation
        is_of_best = model.mixture.is_of(evaluation.expression, evaluation.theta)
        has_signal = any(one.expression.n_leaves for one in model.mixture.components)
        self.is_averaged = has_signal and not is_of_best
        if is_of_best:
            (predictor,) = model.mixture.predictors
        else:
            with one_blas_thread():
                data = model.mixture.data
                predictor = ExactPredictor(evaluation.expression, evaluation.theta, data)
        self._predictor: Predictor = predictor
        parts = _parts(evaluation.expression, evaluation.theta)
        means = [self.mean(part, X) for part in parts]
        added = self.added_by_averaging(X)[0]
        *shares, self.share_of_averaging = _variance_shares([*means, added])
        self.std_of_averaging = float(added.std())
        measured = [
            replace(part, share=share, span=float(np.ptp(mean)))
            for part, share, mean in zip(parts, shares, means, strict=True)
        ]
        self.parts = sorted(measured, key=lambda part: -part.share)

    def mean(self, part: Part, X: FloatArray) -> FloatArray:
        """Compute the mean (n,) of a part at scaled inputs (n, n_features)."""
        with one_blas_thread():
            mean = self._predictor.part_mean(*part.kernel, X)
        return self._model.target_scaling.scale * mean

    def mean_and_std(
        self, part: Part, X: FloatArray, *, about: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean and standard deviation (n,) of a part at scaled inputs (n, n_features).

        With rows ``about`` the deviation is that of the difference from the average over them.
        """
        with one_blas_thread():
            mean, variance = self._predictor.part(*part.kernel, X, about=about)
        scale = self._model.target_scaling.scale
        return scale * mean, scale * np.sqrt(variance)

    def added_by_averaging(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute what averaging adds to the best kernel at scaled inputs (n, n_features).

        Returns
        -------
        mean, std : ndarray of shape (n,)
            Mean and standard deviation, over the mixture, of the difference between the mean of
            one of its components and that of the best kernel.
        """
        if not self.is_averaged:
            return np.zeros(len(X)), np.zeros(len(X))
        mixture = self._model.mixture
        with one_blas_thread():
            best = self._predictor.mean(X)
            differences = np.array([one.mean(X) - best for one in mixture.predictors])
        mean = mixture.weights @ differences
        std = np.sqrt(mixture.weights @ (differences - mean) ** 2)
        scale = self._model.target_scaling.scale
        return scale * mean, scale * std


def _parts(expression: Expression, theta: FloatArray) -> list[Part]:
    """Group the addends of a kernel that are equal."""
    groups: list[list[Addend]] = []
    for addend in addends(expression):
        for group in groups:
            if _are_equal(group[0], addend, theta):
                group.append(addend)
                break
        else:
            groups.append([addend])
    return [Part(group, theta) for group in groups]


def _are_equal(one: Addend, other: Addend, theta: FloatArray) -> bool:
    """Return whether two addends are one kernel but for its variances."""
    if one.expression != other.expression:
        return False
    ours, theirs = theta[one.entries], theta[other.entries]
    is_free = np.array(
        [p.role != Role.VARIANCE for node in one.expression.nodes for p in node.parameters]
    )
    return bool(np.all(np.abs(ours - theirs)[is_free] < SAME_PARAMETERS))


def _variance_shares(means: Sequence[FloatArray]) -> list[float]:
    """Compute the covariances of means (n,) with their sum, as fractions of its variance."""
    centred = np.array(means) - np.mean(means, axis=1, keepdims=True)
    whole = centred.sum(axis=0)
    total = whole @ whole
    shares: FloatArray = centred @ whole / total if total > 0 else np.zeros(len(means))
    return shares.tolist()
