"""The record of a scored kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from autokernel.expression import Expression, Leaf, slots_of, theta_order
from autokernel.kernels import NOISE_VARIANCE
from autokernel.typing import FloatArray


class Parameter(NamedTuple):
    """One fitted parameter in its own unit."""

    leaf: int | None  # from left to right, None for an operator and for the noise variance
    kernel: str | None  # such as "SE[0]", for an operator the operation, None for the noise
    name: str
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # eq=False: theta is an array
class Evaluation:
    """One scored kernel; a failed fit has ``score == -inf`` and says why in ``status``."""

    expression: Expression
    parameters: tuple[Parameter, ...]  # in the order of theta, the noise variance last
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


def as_written(evaluation: Evaluation, expression: Expression, nodes: Sequence[int]) -> Evaluation:
    """Put the fit of an arranged kernel into the order in which it was written, with names."""
    back = np.argsort(theta_order(expression, nodes))
    theta = evaluation.theta[back]
    return replace(
        evaluation,
        expression=expression,
        parameters=name_parameters(expression, theta),
        theta=theta,
        hessian=evaluation.hessian[np.ix_(back, back)],
    )


def name_parameters(expression: Expression, theta: FloatArray) -> tuple[Parameter, ...]:
    """Name the entries of theta, from the first node's parameters to the noise variance."""
    values = np.exp(theta).tolist()
    named: list[Parameter] = []
    n_leaves = 0
    for node, entries in slots_of(expression):
        number = n_leaves if isinstance(node, Leaf) else None
        n_leaves += isinstance(node, Leaf)
        own = zip(node.parameters, values[entries], strict=True)
        named += [Parameter(number, str(node), parameter.name, value) for parameter, value in own]
    return (*named, Parameter(None, None, NOISE_VARIANCE.name, values[-1]))
