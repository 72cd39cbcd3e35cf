"""Draws from the posterior over the parameters of a kernel by the no-U-turn sampler of mici.

The metric is the Hessian at the best mode. Outside the bounds of its parameters a log posterior
counts as ``-inf``: a trajectory that gets there ends, as at a divergence, and the draws remain
exact. No transformation is needed, because the bounds, a factor of 1e6 from the prior means, are
hardly ever met.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from arviz_stats.base import array_stats
from joblib import Parallel, delayed
from mici.adapters import DualAveragingStepSizeAdapter
from mici.integrators import LeapfrogIntegrator
from mici.samplers import DynamicMultinomialHMC
from mici.states import ChainState
from mici.systems import EuclideanMetricSystem

from autokernel.evidence.posterior import LogPosterior

ENOUGH_R_HAT = 1.01  # both as Vehtari et al. (2021), Bayesian Analysis 16, advise
ENOUGH_DRAWS = 400.0  # effective draws
_LEAST_CURVATURE = 0.1  # nats per squared log parameter; the priors alone have one or more
_TARGET = 0.95  # mean acceptance; with 0.8 trajectories into narrow modes diverge


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Chains:
    """Draws of several chains, and how they were made."""

    theta: np.ndarray  # (n_chains, n_draws, n_params)
    log_posterior: np.ndarray  # (n_chains, n_draws), nats
    n_steps: np.ndarray  # (n_chains, n_draws), gradients for each draw
    diverged: np.ndarray  # (n_chains, n_draws), whether the trajectory ended by an error

    @property
    def n_draws(self) -> int:
        """Number of draws of each chain."""
        return self.theta.shape[1]

    @property
    def in_turn(self) -> np.ndarray:
        """Draws (n, n_params) of all chains in turn, those of one moment together."""
        return self.theta.swapaxes(0, 1).reshape(-1, self.theta.shape[-1])

    @property
    def r_hat(self) -> float:
        """Largest rank-normalised split R-hat of a parameter or the log posterior."""
        return float(np.max(array_stats.rhat(self._monitored, chain_axis=0, draw_axis=1)))

    @property
    def effective_draws(self) -> float:
        """Least bulk effective sample size of a parameter or the log posterior."""
        return float(np.min(array_stats.ess(self._monitored, chain_axis=0, draw_axis=1)))

    @property
    def is_enough(self) -> bool:
        """Whether the chains agree and hold enough effective draws."""
        return self.r_hat < ENOUGH_R_HAT and self.effective_draws > ENOUGH_DRAWS

    @property
    def _monitored(self) -> np.ndarray:
        """All parameters and the log posterior (n_chains, n_draws, n_params + 1)."""
        return np.concatenate([self.theta, self.log_posterior[..., None]], axis=-1)


def sample_chains(
    posterior: LogPosterior,
    starts: Sequence[np.ndarray],
    hessian: np.ndarray,
    *,
    n_draws: int,
    most_draws: int,
    rng: np.random.Generator,
    n_jobs: int = 1,
) -> Chains:
    """Run a chain from each start, on and on until they are enough.

    Parameters
    ----------
    posterior : LogPosterior
        The log posterior.
    starts : sequence of ndarray of shape (n_params,)
        First point of each chain.
    hessian : ndarray of shape (n_params, n_params)
        Hessian of the negative log posterior at its best mode.
    n_draws, most_draws : int
        Draws of each chain at least and at most. A quarter of ``n_draws`` more adapt the step.
    rng : numpy.random.Generator
        Source of the draws.
    n_jobs : int
        Processes.
    """
    values, vectors = np.linalg.eigh(hessian)
    metric = (vectors * np.maximum(values, _LEAST_CURVATURE)) @ vectors.T
    parts: list[Chains] = []
    while True:
        runs = Parallel(n_jobs=n_jobs)(
            delayed(_run)(posterior, start, metric, n_draws, own)
            for start, own in zip(starts, rng.spawn(len(starts)), strict=True)
        )
        parts.append(_joined(runs, axis=0))
        chains = _joined(parts, axis=1)
        if chains.is_enough or chains.n_draws >= most_draws:
            return chains
        starts = list(chains.theta[:, -1])


def _run(
    posterior: LogPosterior,
    start: np.ndarray,
    metric: np.ndarray,
    n_draws: int,
    rng: np.random.Generator,
) -> Chains:
    """Run one chain."""

    def gradient_and_value(theta: np.ndarray) -> tuple[np.ndarray, float]:
        if np.any((theta < posterior.lower) | (theta > posterior.upper)):
            return np.zeros(len(theta)), np.inf
        value, gradient = posterior.value_and_gradient(theta)
        return -gradient, -value

    def trace(state: ChainState) -> dict[str, object]:
        return {"theta": state.pos, "log_posterior": -system.neg_log_dens(state)}

    system = EuclideanMetricSystem(
        lambda theta: gradient_and_value(theta)[1],
        metric=metric,
        grad_neg_log_dens=gradient_and_value,
    )
    sampler = DynamicMultinomialHMC(system, LeapfrogIntegrator(system), rng)
    found = sampler.sample_chains(
        n_draws // 4,
        n_draws,
        [start],
        adapters=[DualAveragingStepSizeAdapter(_TARGET)],
        trace_funcs=[trace],
        display_progress=False,
    )
    return Chains(
        np.array(found.traces["theta"]),
        np.array(found.traces["log_posterior"]),
        np.array(found.statistics["n_step"]),
        np.array(found.statistics["diverging"]),
    )


def _joined(parts: Sequence[Chains], *, axis: int) -> Chains:
    """Join chains side by side (axis 0) or one after the other (axis 1)."""
    arrays = zip(*(astuple(part) for part in parts), strict=True)
    return Chains(*(np.concatenate(fields, axis=axis) for fields in arrays))
