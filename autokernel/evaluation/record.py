"""The record of a scored kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from autokernel.expression import Expression, leaf_slots, theta_order
from autokernel.kernels import BASE_KERNELS
from autokernel.typing import FloatArray


class Parameter(NamedTuple):
    """One fitted parameter in its own unit."""

    leaf: int | None  # from left to right, None for the noise variance
    kernel: str | None  # such as "SE[0]"
    name: str
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # eq=False: theta is an array
class Evaluation:
    """One scored kernel; a failed fit has ``score == -inf`` and says why in ``status``."""

    expression: Expression
    parameters: tuple[Parameter, ...]  # leaves from left to right, noise variance last
    theta: FloatArray  # (n_params,), logs of the parameters
    log_likelihood: float  # nats
    log_prior: float  # nats, density of theta
    log_posterior: float  # nats
    log_evidence: float  # nats, by Laplace's method; -inf where that fails
    score: float  # larger is better; nats
    hessian: FloatArray  # (n_params, n_params), of the negative log posterior in theta
    n_params: int
    n_evaluations: int  # likelihood calls
    seconds: float  # wall clock, fit and criterion together
    status: str  # "ok" or the reason of the failure
    standard_error: float = np.nan  # nats, of score; nan where no random numbers are drawn for it
    pareto_k: float = np.nan  # above 0.7 the standard error is not to be trusted

    def __repr__(self) -> str:
        error = "" if np.isnan(self.standard_error) else f" ± {self.standard_error:.2f}"
        lines = [f"{self.expression}: score {self.score:.2f}{error} nats ({self.status})"]
        lines += [
            f"  {'' if p.kernel is None else p.kernel + ' '}{p.name} = {p.value:.4g}"
            for p in self.parameters
        ]
        return "\n".join(lines)


def as_written(evaluation: Evaluation, expression: Expression, order: Sequence[int]) -> Evaluation:
    """Put the fit of an arranged kernel into the order in which it was written, with names."""
    back = np.argsort(theta_order(expression, order))
    theta = evaluation.theta[back]
    return replace(
        evaluation,
        expression=expression,
        parameters=name_parameters(expression, theta),
        theta=theta,
        hessian=evaluation.hessian[np.ix_(back, back)],
    )


def name_parameters(expression: Expression, theta: FloatArray) -> tuple[Parameter, ...]:
    """Name the entries of theta, from the leaves' parameters to the noise variance."""
    values = np.exp(theta).tolist()
    return (
        *(
            Parameter(number, str(leaf), name, value)
            for number, (leaf, place) in enumerate(leaf_slots(expression))
            for name, value in zip(
                BASE_KERNELS[leaf.kernel].parameter_names, values[place], strict=True
            )
        ),
        Parameter(None, None, "noise_variance", values[-1]),
    )
