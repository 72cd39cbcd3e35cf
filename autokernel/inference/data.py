"""The rows of a fit as inference sees them: inputs, targets, and pairs of inputs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from autokernel.data import CONSTANT, Columns, Inputs, NoiseFunction, RowNoise, Target
from autokernel.data.counts import Local
from autokernel.data.plain import as_text, read_text
from autokernel.data.scales import CountScale
from autokernel.expression import IDENTITY, Leaf, Tree, View
from autokernel.inference.packed import pack
from autokernel.inference.pairs import PackedPairs, with_gaps
from autokernel.kernels import KernelParameter
from autokernel.typing import FloatArray, IntArray


class TrainingData:
    """Inputs and targets y (n_samples,) with their noise, and the pairs of each view.

    Inputs that are an array X (n_samples, n_features) are used as they come, and so is a target
    without its standardisation. The noise is nothing but that of all rows by default. The targets
    ``u`` are those of the search, and ``y`` the same on a scale. On a scale of ``varying``, the
    noise varies with the inputs. On one of counts, each row has a value and a known error that its
    count suggests by itself.
    """

    def __init__(
        self,
        inputs: Inputs | FloatArray,
        u: FloatArray,
        noise: RowNoise | None = None,
        target: Target | None = None,
        scale: str = IDENTITY,
        varying: Mapping[str, NoiseFunction] | None = None,
    ) -> None:
        if not isinstance(inputs, Inputs):
            raw = Columns.of_names(None, inputs.shape[1]).with_places_of(inputs)
            inputs = raw.inputs(inputs, first_row=0)
        self.inputs, self.u = inputs, u
        self.known_noise = RowNoise(np.ones(len(u))) if noise is None else noise
        self.target = Target.raw(u) if target is None else target
        self.varying = varying or {}
        self.scale = self.target.scales[scale].of_rows(self.target.exposures(inputs), 0.0)
        self.y, log_slopes = self.scale.forward_and_log_slope(u)
        known = self.known_noise
        self.noise = known if scale == IDENTITY else known.on_scale(log_slopes)
        self.counts: FloatArray | None = None
        if isinstance(self.scale, CountScale):
            (self.counts, _), w = self.scale.counts(u), known.weights
            errors = self.scale.family.of_each(self.counts, self.scale.rates.e)[1] / w
            errors, ones = errors / self.scale.width**2, np.ones(len(u))
            self.noise = RowNoise(w, errors, log_slopes=w * log_slopes, counts=ones)
        self.noise_function = self.varying.get(scale, CONSTANT)
        if self.noise_function.terms:
            self.noise = self.noise.changed(log_factors=self.noise_function.log_factors(inputs))
        weights = self.noise.influence
        self.mean_square = float(np.average(self.y**2, weights=weights)) if len(u) else 0.0
        self._pairs: dict[View, PackedPairs] = {}
        self._scale = scale  # of y

    @property
    def X(self) -> FloatArray:  # noqa: N802 - a matrix
        """The inputs (n_samples, n_features), NaN where values are missing."""
        return self.inputs.values

    @property
    def has_counts(self) -> bool:
        """Whether targets are counts, given a function on the scale of their rates."""
        return self.counts is not None

    def local(self, log_noise: float) -> Callable[[FloatArray], Local]:
        """Return how log probabilities of the counts follow from a function (n_samples,)."""
        assert isinstance(self.scale, CountScale)
        scale = self.scale.of_rows(self.scale.rates.e, log_noise)
        return partial(scale.local, self.counts, self.known_noise.weights)

    def at_mode(self, t: FloatArray, local: Local) -> "TrainingData":
        """Return the data with the values and errors of rows to which a function leads.

        Their normal densities have the same slope and curvature as the probabilities of the counts.
        """
        other, errors = object.__new__(TrainingData), 1 / local.curvature
        ones, log_slopes = np.ones(len(t)), self.noise.log_slopes
        noise = RowNoise(ones, errors, log_slopes=log_slopes, log_factors=-np.inf)
        vars(other).update(vars(self), y=t + local.slope * errors, noise=noise)
        return other

    def on(self, scale: str) -> "TrainingData":
        """Return the data with the target on a scale."""
        return self if scale == self._scale else self._changed(scale, self.varying)

    def with_varying(self, varying: Mapping[str, NoiseFunction]) -> "TrainingData":
        """Return the data with noise that varies on some scales of the target."""
        return self._changed(self._scale, varying)

    def _changed(self, scale: str, varying: Mapping[str, NoiseFunction]) -> "TrainingData":
        other = TrainingData(self.inputs, self.u, self.known_noise, self.target, scale, varying)
        other._pairs = self._pairs
        return other

    def _with_rows(self, inputs: Inputs, u: FloatArray, noise: RowNoise) -> "TrainingData":
        return TrainingData(inputs, u, noise, self.target, self._scale, self.varying)

    def take(self, rows: IntArray, shares: FloatArray | float = 1.0) -> "TrainingData":
        """Return the data of these rows, of shares of their weights."""
        return self._with_rows(self.inputs[rows], self.u[rows], self.known_noise.take(rows, shares))

    def drawn(self, n_rows: int, seed: int) -> "TrainingData":
        """Return ``n_rows`` random rows, in order; with one seed, more rows include the fewer."""
        if len(self.u) <= n_rows:
            return self
        return self.take(np.sort(np.random.default_rng(seed).permutation(len(self.u))[:n_rows]))

    def joined(self, other: "TrainingData") -> "TrainingData":
        """Return the data of these rows and of others after them, in the same units."""
        inputs, u = self.inputs.joined(other.inputs), np.concatenate([self.u, other.u])
        return self._with_rows(inputs, u, self.known_noise.joined(other.known_noise))

    @property
    def definition(self) -> tuple[object, ...]:
        """All numbers that a fit depends on."""
        every = self.X, self.u, *self.known_noise.record.values()
        varying = as_text(self.varying)["text"]
        numbers = self.inputs.columns.numbers, sorted(self.target.scales.items()), varying
        return (*(values.tobytes() for values in every), *numbers)

    def __getstate__(self) -> dict[str, Any]:
        inputs = self.inputs  # pairs are computed again
        numbers = {"columns": inputs.columns, "target": self.target, "varying": self.varying}
        return {
            "numbers": as_text(numbers),
            "inputs": [inputs.values, inputs.rows],
            "u": self.u,
            "noise": self.known_noise.record,
            "scale": self._scale,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        kinds = {"columns": Columns, "target": Target, "varying": Mapping[str, NoiseFunction]}
        numbers = read_text(kinds, state["numbers"])
        inputs, u = Inputs(numbers["columns"], *state["inputs"]), state["u"]
        noise = RowNoise.of_record(u.shape, state["noise"])
        target, scale, varying = numbers["target"], state["scale"], numbers["varying"]
        vars(self).update(vars(TrainingData(inputs, u, noise, target, scale, varying)))

    @property
    def rounding_by_target(self) -> tuple[FloatArray, FloatArray]:
        """Targets in order, and the variances of their rounding; one of them where all agree.

        On another scale it depends on the slope at the target.
        """
        rounding = self.noise.rounding
        if not len(rounding) or rounding.min() == rounding.max():
            return np.zeros(1), rounding[:1] if len(rounding) else np.zeros(1)
        order = np.argsort(self.y, kind="stable")
        return self.y[order], rounding[order]

    def parameters(self, node: Tree) -> tuple[KernelParameter, ...]:
        """Return the parameters of a node on its column."""
        if not isinstance(node, Leaf):
            return node.parameters
        column = self.inputs.columns[node.column]
        return node.kernel.parameters_on(column.extent, is_of_dates=column.is_date)

    def pairs(self, view: View) -> PackedPairs:
        """Return the pairs of one view of a column, computed once."""
        if view not in self._pairs:
            x = np.ascontiguousarray(self.inputs.view(view))
            made = PackedPairs(x)
            if np.isnan(x).any():
                is_one_row, places = pack(np.eye(len(x))) > 0, self.inputs.columns.places(view)
                made = with_gaps(PackedPairs, x, is_one_row=is_one_row, places=places)
            self._pairs[view] = made
        return self._pairs[view]
