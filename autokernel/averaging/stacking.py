"""Weights of kernels by the predictive densities of rows left out."""

import numpy as np
from scipy.special import logsumexp, softmax

from autokernel.criteria.pareto import pareto_smoothed
from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation import Evaluator
from autokernel.exceptions import EvaluationError
from autokernel.expression import Expression
from autokernel.typing import FloatArray

_MOST_STEPS = 1000
_HOPELESS = -1e6  # log density of each row where no draw has one
_CLOSE = 1e-7  # nats per row that a step gains at the end


def loo_log_densities(
    evaluator: Evaluator, expression: Expression, draws: FloatArray, *, deadline: Deadline = NEVER
) -> FloatArray:
    """Compute the log density (n_samples,) of each row given all others, parameters integrated out.

    Parameters
    ----------
    evaluator : Evaluator
        Evaluator of the kernel.
    expression : Expression
        The kernel.
    draws : ndarray of shape (n_draws, n_params)
        Draws from the posterior of its parameters given all rows.
    deadline : Deadline
        Moment after which an ``OutOfTimeError`` is raised.

    Notes
    -----
    Given parameters, a row left out has its density in closed form (R&W eq. 5.10-5.12). A draw has
    the importance weight of one over this density, as its posterior had seen the row (Vehtari et
    al. 2017, *Practical Bayesian model evaluation using leave-one-out cross-validation*).
    """
    try:
        densities = evaluator.leave_one_out(expression, draws, deadline=deadline)
    except EvaluationError:  # a kernel that fails at one of the draws
        densities = np.full((1, len(evaluator.data.y)), np.nan)
    possible = np.isfinite(densities).all(axis=1)
    if not possible.any():
        return np.full(densities.shape[1], _HOPELESS)
    densities = densities[possible]
    logs = [np.log(np.maximum(pareto_smoothed(-row), 1e-300)) + row for row in densities.T]
    return logsumexp(np.array(logs), axis=1)


def stacking_weights(log_densities: FloatArray) -> FloatArray:
    """Maximise the log density of a mixture over its weights, which sum to one.

    Parameters
    ----------
    log_densities : ndarray of shape (n_kernels, n_samples)
        Log densities of each row under each kernel.

    Returns
    -------
    ndarray of shape (n_kernels,)
        The weights. The problem is concave, and expectation maximisation converges to its solution.
    """
    n_kernels, n_samples = log_densities.shape
    log_weights = np.full(n_kernels, -np.log(n_kernels))
    last = -np.inf
    for _ in range(_MOST_STEPS):
        joint = log_densities + log_weights[:, None]
        value = float(logsumexp(joint, axis=0).mean())
        log_weights = logsumexp(joint - logsumexp(joint, axis=0), axis=1) - np.log(n_samples)
        if value - last < _CLOSE:
            break
        last = value
    return softmax(log_weights)
