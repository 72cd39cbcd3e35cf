"""The log evidence by importance sampling, as a criterion."""

from collections import deque
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from autokernel.criteria.base import Criterion, KernelFit, Score
from autokernel.criteria.importance_sampling import (
    ENOUGH_STANDARD_ERROR,
    N_MOST,
    importance_sample,
)
from autokernel.criteria.laplace import Laplace
from autokernel.exceptions import NotAMaximumError
from autokernel.expression import node_swaps, theta_order
from autokernel.map.maximum import Maximum, measure_maximum
from autokernel.typing import IntArray

_HOPELESS = 10.0  # nats below the best mode at which other modes are ignored
_N_OTHERS = 5  # most other modes, each of which takes a Hessian
_FEWEST_DRAWS = 100  # with fewer draws the weights have no tail to judge them by
_N_IMAGES = 24  # most images of a mode: all of them for up to four equal operands


class Importance(Criterion):
    """Log evidence by importance sampling around the best modes found.

    Equal operands, as in ``SE[0] + SE[0]``, may be exchanged, so each mode has mirror images. Where
    images overlap, a few hundred draws may miss some of the mass between them, and the standard
    error does not show it.

    Parameters
    ----------
    max_draws : int, default=2000
        Most draws for one kernel, each with one likelihood call; at least 100.
    standard_error : float, default=0.05
        Standard error in nats. Once it is reached and can be trusted, no more draws are made.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_draws": [Interval(Integral, _FEWEST_DRAWS, None, closed="left")],
        "standard_error": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, *, max_draws: int = N_MOST, standard_error: float = ENOUGH_STANDARD_ERROR
    ) -> None:
        self.max_draws = max_draws
        self.standard_error = standard_error

    def __call__(self, fit: KernelFit) -> Score:
        """Score by draws around all modes that may add to the evidence.

        Other modes than the best are not maximised further, as a sampling density does not have
        to be centred exactly.
        """
        posterior, expression = fit.posterior, fit.posterior.expression
        orders = [theta_order(expression, swap) for swap in node_swaps(expression)]
        maxima = _with_mirror_images(fit.maximum, orders)
        highest = fit.maximum.mode.log_posterior
        n_measured = 0
        for mode in fit.others:
            is_near = mode.log_posterior > highest - _HOPELESS
            if not is_near or any(known.stands_at(mode.theta) for known in maxima):
                continue
            if n_measured == _N_OTHERS:
                break
            n_measured += 1
            with suppress(NotAMaximumError):  # the draws around the best mode remain
                maxima += _with_mirror_images(measure_maximum(posterior, mode), orders)
        sample = importance_sample(
            posterior.value,
            maxima,
            lower=posterior.lower,
            upper=posterior.upper,
            rng=fit.rng,
            max_draws=self.max_draws,
            enough=self.standard_error,
        )
        return sample.log_evidence

    def for_approximations(self) -> Criterion:
        """Return Laplace's method, which takes far fewer calls."""
        return Laplace()


def _with_mirror_images(maximum: Maximum, orders: list[IntArray]) -> list[Maximum]:
    """Return a maximum with its distinct mirror images, at most ``_N_IMAGES`` in all."""
    images = [maximum]
    to_exchange = deque(images)  # images whose own images are still to be computed
    while to_exchange:
        image = to_exchange.popleft()
        for order in orders:
            other = image.reordered(order)
            if len(images) < _N_IMAGES and not any(e.stands_at(other.mode.theta) for e in images):
                images.append(other)
                to_exchange.append(other)
    return images
