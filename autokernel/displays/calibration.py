"""Whether predicted intervals hold as many observations as they should."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from autokernel.data.checks import check_index, check_inputs
from autokernel.displays import _style as style
from autokernel.displays._style import BLUE, GREY
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.model import whole_counts
from autokernel.model.mixture import random_within
from autokernel.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CalibrationDisplay:
    """Coverage of central intervals against their probability, and a histogram of PIT values.

    The probability integral transform (PIT) of an observation is the predicted probability of a
    smaller one, uniform where predictions are calibrated. Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    pit : ndarray of shape (n_samples,)
        PIT values of the observations.

    Attributes
    ----------
    axes_, figure_ : ndarray of matplotlib.axes.Axes, matplotlib.figure.Figure
        The two axes, and the figure, of the last plot.
    """

    def __init__(self, *, pit: FloatArray) -> None:
        self.pit = pit

    @classmethod
    def from_estimator(
        cls,
        estimator: AutoKernelGPRegressor,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        *,
        axes: "Sequence[Axes] | None" = None,
    ) -> Self:
        """Predict observations that the fit has not seen, and plot.

        Parameters
        ----------
        estimator : AutoKernelGPRegressor
            A fitted estimator.
        X : array-like of shape (n_samples, n_features), default=None
            Inputs that were not fitted. If ``X`` and ``y`` are None, the rows are those of
            ``left_out_``, which models that were fitted without them predict.
        y : array-like of shape (n_samples,), default=None
            Their targets.
        axes : sequence of two matplotlib.axes.Axes, default=None
            Axes to draw on; None for those of a new figure.

        Raises
        ------
        ValueError
            If only one of ``X`` and ``y`` is None, or both are and no rows were left out.
        """
        model = estimator.explanation().model
        if X is None and y is None:
            if model.left_out is None:
                what = "as the fit has left out none, with fewer than ten rows or no time"
                raise ValueError(f"X and y must be rows that were not fitted, {what}, got None")
            found = model.mixture.law.probabilities(model.left_out.probability)
            return cls(pit=np.repeat(found, whole_counts(model.left_out.weights))).plot(axes)
        if X is None or y is None:
            raise ValueError("X and y must both be given, or neither, got one of them")
        check_index("y", y, X)
        if model.transformed.has_counts:
            inputs, counts = check_inputs(estimator, X, model.columns), np.asarray(y, float)
            low, high = (model.below(inputs, one) for one in (counts - 1, counts))
            return cls(pit=random_within(low, high, np.lexsort((low, high)))).plot(axes)
        probabilities = np.arange(1, 200) / 200
        quantiles = estimator.predict_quantiles(X, probabilities.tolist())
        pit = [
            np.interp(one, of_row, probabilities, left=0.0, right=1.0)
            for one, of_row in zip(np.asarray(y, float), quantiles, strict=True)
        ]
        return cls(pit=np.array(pit)).plot(axes)

    def coverage(self, probability: FloatArray) -> FloatArray:
        """Compute the fractions of observations in central intervals of these probabilities."""
        inside = 2 * np.abs(self.pit - 0.5)
        return np.array([np.mean(inside <= one) for one in np.atleast_1d(probability)])

    def plot(self, axes: "Sequence[Axes] | None" = None) -> Self:
        """Draw on two axes or a new figure, with grey bands of 95 % of calibrated predictions."""
        axes = axes if axes is not None else style.new_axes(1, 2, size=(9.0, 4.0))
        of_coverage, of_pit = axes
        grey: dict[str, Any] = {"color": GREY, "alpha": 0.2, "linewidth": 0}
        p, n = np.linspace(0.01, 0.99, 99), len(self.pit)
        half = style.TWO_SIDED * np.sqrt(p * (1 - p) / n)
        style.clear_frame(of_coverage)
        of_coverage.fill_between(p, p - half, p + half, label="chance", **grey)
        of_coverage.plot(p, p, color=GREY, linewidth=1)
        of_coverage.plot(p, self.coverage(p), color=BLUE, linewidth=1.8, label="observed")
        of_coverage.set(xlabel="probability of a central interval", ylabel="fraction inside")
        of_coverage.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        of_coverage.legend(**style.BESIDE)
        n_bins = int(np.clip(n // 5, 2, 10))
        expected = n / n_bins
        room = style.TWO_SIDED * np.sqrt(expected * (1 - 1 / n_bins))
        style.clear_frame(of_pit)
        of_pit.axhspan(max(0.0, expected - room), expected + room, **grey)
        of_pit.hist(self.pit, bins=n_bins, range=(0, 1), color=BLUE, edgecolor="white")
        of_pit.axhline(expected, color=GREY, linewidth=1)
        of_pit.set(xlabel="probability integral transform", ylabel="observations", xlim=(0, 1))
        self.axes_ = np.array(axes, dtype=object)
        self.figure_: Any = of_coverage.get_figure(root=True)
        return self
