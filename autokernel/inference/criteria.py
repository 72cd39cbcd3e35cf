"""What a kernel is scored by, given the modes of its posterior; one entry of the registry each."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np

from autokernel.exceptions import NotAMaximumError
from autokernel.expression import leaf_swaps, theta_order
from autokernel.inference.importance import importance_log_evidence
from autokernel.inference.laplace import summit_log_evidence
from autokernel.inference.map import Mode
from autokernel.inference.posterior import LogPosterior
from autokernel.inference.summit import Summit, look_around
from autokernel.typing import IntArray

_HOPELESS = 10.0  # nats below the best mode
_N_OTHERS = 5  # a Hessian each
_N_IMAGES = 24  # of a mode: all for up to four equal operands


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a criterion, larger is better, and what is known of its error."""

    value: float  # nats
    standard_error: float = np.nan  # nats; nan where the criterion draws no random numbers
    pareto_k: float = np.nan  # above 0.7 the standard error is not to be trusted


class Criterion(Protocol):
    """From the best mode, with its shape, and other modes to a score."""

    def __call__(
        self,
        posterior: LogPosterior,
        summit: Summit,
        *,
        others: Sequence[Mode],
        rng: np.random.Generator,
    ) -> Score:
        """Score; a ``NotAMaximumError`` says why it cannot."""


def laplace(
    posterior: LogPosterior,  # noqa: ARG001 - of other criteria
    summit: Summit,
    *,
    others: Sequence[Mode],  # noqa: ARG001 - of other criteria
    rng: np.random.Generator,  # noqa: ARG001 - of other criteria
) -> Score:
    """Log evidence by Laplace's method at the best mode."""
    return Score(summit_log_evidence(summit))


def importance(
    posterior: LogPosterior,
    summit: Summit,
    *,
    others: Sequence[Mode],
    rng: np.random.Generator,
) -> Score:
    """Log evidence by importance sampling around the best mode and those that may add to it.

    Equal operands, as in ``SE[0] + SE[0]``, may change places: each mode has its mirror images. The
    others are taken as they stand: a proposal does not ask for the very top.
    """
    expression = posterior.expression
    orders = [theta_order(expression, swap) for swap in leaf_swaps(expression)]
    summits = _mirrored(summit, orders)
    near = [mode for mode in others if mode.log_posterior > summit.mode.log_posterior - _HOPELESS]
    # lazily: the summits that are known grow with each
    apart = (mode for mode in near if not any(known.stands_at(mode.theta) for known in summits))
    for mode in islice(apart, _N_OTHERS):
        with suppress(NotAMaximumError):  # no Hessian there: the best mode's draws are left
            summits += _mirrored(look_around(posterior, mode), orders)
    estimate = importance_log_evidence(
        posterior.value, summits, lower=posterior.lower, upper=posterior.upper, rng=rng
    )
    return Score(estimate.log_evidence, estimate.standard_error, estimate.pareto_k)


def _mirrored(summit: Summit, orders: list[IntArray]) -> list[Summit]:
    """Return a summit with its mirror images that stand apart, as many as allowed."""
    images = [summit]
    for image in images:  # grows on the way
        for order in orders:
            other = image.reordered(order)
            if len(images) < _N_IMAGES and not any(e.stands_at(other.mode.theta) for e in images):
                images.append(other)
    return images


CRITERIA: Mapping[str, Criterion] = {"laplace": laplace, "importance": importance}


def check_criterion(criterion: str) -> None:
    """Check the name of a criterion.

    Raises
    ------
    ValueError
        If it is unknown; the message lists the known ones.
    """
    if not isinstance(criterion, str) or criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {list(CRITERIA)}, got {criterion!r}")
