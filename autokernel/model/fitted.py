"""A fitted kernel with the mixture that predicts, in the units of the user."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from autokernel.data.gaps import FIRST_NEW, mark_missing
from autokernel.data.scales import Scale, rows_beyond
from autokernel.data.scaling import Scaling, TargetScaling
from autokernel.evidence import Evaluation
from autokernel.exceptions import warn_user
from autokernel.expression import Expression, changes_along, gaps_of, with_gaps
from autokernel.inference import TrainingData
from autokernel.kernels import possible_values
from autokernel.model.averaging import KernelPosterior
from autokernel.model.mixture import MixturePredictor
from autokernel.model.packing import as_columns, from_columns
from autokernel.model.sklearn_kernel import to_sklearn
from autokernel.typing import FloatArray, IntArray

Outliers = tuple[IntArray, FloatArray]
"""Rows that are excluded, as they are counted in ``X``, and their deviations from predictions."""


def common_rounding(expression: Expression, data: TrainingData) -> float:
    """Return the variance of rounding that all rows have; zero on another scale of the target."""
    return float(data.on(None).noise.rounding[0]) if expression.target is None else 0.0


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class FittedModel:
    """The best kernel, the kernels that are believed, the mixture that predicts and the scaling."""

    evaluation: Evaluation  # of the best kernel
    scaled_noise_variance: float  # of the best kernel and the standardised target, not rounded
    mixture: MixturePredictor
    kernel: Kernel  # scikit-learn kernel on inputs before scaling, noise included
    scaling: Scaling
    target_scaling: TargetScaling
    feature_names: list[str] | None
    kernels: Sequence[KernelPosterior]  # the most probable first
    approximation: str  # how predictions are computed, as the user reads it
    outliers: Outliers
    rows: IntArray  # (n_samples,), the other rows, as they are counted in ``X``

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        evaluations = [one.evaluation for one in self.kernels]
        best = next(n for n, one in enumerate(evaluations) if one is self.evaluation)
        del state["kernel"]  # follows from the best evaluation
        return {**state, "kernels": as_columns(self.kernels), "evaluation": best}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kernels = from_columns(KernelPosterior, state["kernels"])
        best = kernels[state["evaluation"]].evaluation
        kernel = to_sklearn(
            best.expression,
            best.theta,
            scaling=state["scaling"],
            noise_variance=state["scaled_noise_variance"]
            + common_rounding(best.expression, state["mixture"].data),
            feature_names=state["feature_names"],
        )
        read = {"kernels": kernels, "evaluation": best, "kernel": kernel}
        for name, value in {**state, **read}.items():
            object.__setattr__(self, name, value)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, ``x0``, ``x1`` and so on where they have none."""
        return self.feature_names or [f"x{column}" for column in range(len(self.scaling.scale))]

    @property
    def target_scale(self) -> Scale | None:
        """The scale of the target on which the best kernel acts, None for the target as it is."""
        target = self.evaluation.expression.target
        return None if target is None else target.scale

    @property
    def location_and_spread(self) -> tuple[float, float]:
        """Mean and standard deviation of the training targets, on the scale of the best kernel."""
        scale = self.target_scale
        if scale is None:
            return self.target_scaling.shift, self.target_scaling.scale
        return scale.shift, scale.width

    @property
    def typical_rounding(self) -> float:
        """The median variance of rounding, for the standardised target on its scale."""
        data = self.mixture.data.on(self.evaluation.expression.target)
        return float(np.median(data.noise.rounding))

    @property
    def noise_variance(self) -> float:
        """Variance of the noise of the best kernel, in squared units of its scale of the target.

        It includes the rounding of a typical row.
        """
        variance = self.scaled_noise_variance + self.typical_rounding
        return variance * self.location_and_spread[1] ** 2

    def warn_beyond_scales(self, X: FloatArray) -> None:
        """Warn of numbers in X (n, n_features) that the scale of a column does not have."""
        leaves = (leaf for one in self.mixture.components for leaf in one.expression.leaves)
        views = {(leaf.column, leaf.scale.name) for leaf in leaves if leaf.scale is not None}
        for column, scale in sorted(views):
            beyond = rows_beyond(scale, X[:, column])
            if len(beyond):
                value, name = X[beyond[0], column], self.column_names[column]
                warn_user(
                    f"column {name!r} acts on the scale {scale!r}, which does not have {value:g} "
                    f"(row {beyond[0]}): such a number counts as the smallest one of fit"
                )

    def scaled(self, X: FloatArray) -> FloatArray:
        """Scale new inputs (n, n_features), in which each NaN is another draw of its column."""
        return mark_missing(self.scaling.apply(X), FIRST_NEW)

    def _asked(self, X: FloatArray) -> tuple[MixturePredictor, FloatArray]:
        """Return the mixture that predicts at inputs (n, n_features), and the scaled inputs.

        The kernels on columns that had no gaps in the fit do not know of missing values. For such
        columns the covariance matrices are factorised again at each call.
        """
        components, rows = self.mixture.components, self.mixture.data
        places = gaps_of(one.expression for one in components)
        gaps = np.flatnonzero(np.isnan(X).any(axis=0)).tolist()
        new = {one: possible_values(rows.X[:, one]) for one in gaps if one not in places}
        used = set().union(*(one.expression.columns for one in components))
        if not used & new.keys():
            return self.mixture, self.scaled(X)
        changes = set().union(*(changes_along(one.expression) for one in components))
        for column in changes & new.keys():
            raise ValueError(
                f"column {self.column_names[column]!r} must have no missing values, as the kernel "
                f"changes along it, got one in row {np.flatnonzero(np.isnan(X[:, column]))[0]}: "
                "leave out such rows"
            )
        knowing = [
            replace(one, expression=with_gaps(one.expression, {**places, **new}))
            for one in components
        ]
        mixture = self.mixture
        asked = MixturePredictor(
            knowing, rows, mixture.make_predictor, tail_share=mixture.tail_share
        )
        return asked, self.scaled(X)

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features)."""
        mixture, inputs = self._asked(X)
        return self.target_scaling.undo(mixture.mean(inputs))

    def mean_and_std(self, X: FloatArray, *, noise: bool = True) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and standard deviation (n,), with or without noise."""
        mixture, inputs = self._asked(X)
        mean, variance = mixture.moments(inputs, noise=noise)
        return self.target_scaling.undo(mean), self.target_scaling.scale * np.sqrt(variance)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""
        mixture, inputs = self._asked(X)
        mean, covariance = mixture.mean_and_covariance(inputs)
        return self.target_scaling.undo(mean), self.target_scaling.scale**2 * covariance

    def quantiles(self, X: FloatArray, levels: FloatArray) -> FloatArray:
        """Compute the quantiles (n, n_levels) of new observations."""
        mixture, inputs = self._asked(X)
        return self.target_scaling.undo(mixture.quantiles(inputs, levels))

    def log_density(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Compute the log density (n,) of new observations (n,), in nats."""
        scaled = self.target_scaling.apply(y)
        mixture, inputs = self._asked(X)
        log_density = mixture.log_density(inputs, scaled)
        return log_density - np.log(self.target_scaling.scale)

    def samples(
        self, X: FloatArray, n_samples: int, random_state: int | np.random.RandomState | None
    ) -> FloatArray:
        """Draw new observations (n, n_samples), noise included."""
        rng = check_random_state(random_state)
        mixture, inputs = self._asked(X)
        draws = mixture.samples(inputs, n_samples, rng)
        return self.target_scaling.undo(draws)
