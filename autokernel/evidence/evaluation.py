"""The records of a scored kernel, of its parameters for another one, and of an estimate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from autokernel.evidence.criteria import Score
from autokernel.evidence.maximise import Maximum, Point
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import Expression, Leaf, arrange, slots_of, theta_order
from autokernel.kernels import NOISE_VARIANCE
from autokernel.typing import FloatArray

NO_SCORE = Score(-np.inf)
"""The score of a kernel that could not be fitted or scored."""


class Parameter(NamedTuple):
    """One fitted parameter, not its logarithm."""

    leaf: int | None  # number from the left; None for an operator and the noise
    kernel: str | None  # node, such as "SE[0]" or an operation; None for the noise
    name: str
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # eq=False: theta is an array
class Evaluation:
    """One scored kernel; a failed fit has ``score == -inf`` and says why in ``status``."""

    expression: Expression  #: the structure
    theta: FloatArray  #: (n_params,), logs of the parameters, noise variance last
    log_prior: float  #: nats, as a density in theta
    log_posterior: float  #: nats
    log_evidence: float  #: nats, by Laplace, exact for noise alone; -inf on failure
    score: float  #: nats, larger is better; the criterion plus log_structure_prior
    hessian: FloatArray  #: (n_params, n_params), Hessian of the negative log posterior in theta
    n_evaluations: int  #: number of likelihood calls
    seconds: float  #: wall-clock time of fit and criterion together
    status: str  #: "ok", or the reason for the failure
    n_rows: float = np.nan  #: of the score and the Hessian, or the sum of their weights
    rows_for_each: float = 1.0  #: of these, for each one that has entered the likelihood
    standard_error: float = np.nan  #: nats; nan where the score draws no random numbers
    pareto_k: float = np.nan  #: above 0.7 the standard error is unreliable
    log_structure_prior: float = 0.0  #: nats, of the expression itself
    upper_bound: float = np.nan  #: nats, of the score where that is a lower bound

    @property
    def log_likelihood(self) -> float:
        """Log likelihood at the MAP parameters, in nats."""
        return self.log_posterior - self.log_prior

    def with_rows(self, log_density: float, n_readings: float) -> "Evaluation":
        """Return the record for more rows, of a log density given the others in nats.

        The likelihood is exact. Parameters stay, and so does what each row adds to the Hessian.
        """
        n_rows = self.n_rows + n_readings
        return replace(
            self,
            log_posterior=self.log_posterior + log_density,
            log_evidence=self.log_evidence + log_density,
            score=self.score + log_density,
            hessian=self.hessian * (n_rows / self.n_rows),
            n_rows=n_rows,
        )

    @property
    def n_params(self) -> int:
        """Number of parameters, the noise variance included."""
        return len(self.theta)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The fitted parameters node by node, in the order of theta, noise variance last."""
        values = np.exp(self.theta).tolist()
        named: list[Parameter] = []
        n_leaves = 0
        for node, entries in slots_of(self.expression):
            number = n_leaves if isinstance(node, Leaf) else None
            n_leaves += isinstance(node, Leaf)
            own = zip(node.parameters, values[entries], strict=True)
            named += [Parameter(number, str(node), one.name, value) for one, value in own]
        return (*named, Parameter(None, None, NOISE_VARIANCE.name, values[-1]))

    def __repr__(self) -> str:
        error = "" if np.isnan(self.standard_error) else f" ± {self.standard_error:.2f}"
        lines = [f"{self.expression}: score {self.score:.2f}{error} nats ({self.status})"]
        lines += [
            f"  {'' if p.kernel is None else p.kernel + ' '}{p.name} = {p.value:.4g}"
            for p in self.parameters
        ]
        return "\n".join(lines)


class WarmStart(NamedTuple):
    """Parameters of some nodes of a kernel, taken from the fit of another kernel."""

    nodes: tuple[int, ...]  # indices among the nodes of the kernel
    theta: FloatArray  # log parameters of these nodes in this order, the noise variance last
    hessian: FloatArray | None = None  # of the negative log posterior of the other kernel, in theta

    @classmethod
    def taken(cls, fit: Evaluation, pairs: Sequence[tuple[int, int]]) -> "WarmStart":
        """Take parameters from a fit, for pairs of nodes: one of the kernel, one of the fit."""
        entries = theta_order(fit.expression, [theirs for _, theirs in pairs])
        nodes, hessian = tuple(ours for ours, _ in pairs), fit.hessian[np.ix_(entries, entries)]
        return cls(nodes, fit.theta[entries], hessian)

    @classmethod
    def of_fit(cls, fit: Evaluation, *, times: float = 1.0) -> "WarmStart":
        """Take all parameters from a fit, for the arranged kernel on ``times`` as many rows."""
        return cls.taken(fit, [*enumerate(arrange(fit.expression.tree)[1])]).for_rows(times)

    def for_rows(self, times: float) -> "WarmStart":
        """Return the start of a fit to ``times`` as many rows."""
        return self if self.hessian is None else self._replace(hessian=times * self.hessian)

    @property
    def definition(self) -> tuple[tuple[int, ...], bytes, bytes]:
        """Nodes, theta and Hessian to the last bit, which determine the warm start."""
        hessian = b"" if self.hessian is None else self.hessian.tobytes()
        return tuple(map(int, self.nodes)), self.theta.tobytes(), hessian


WarmStarts = Sequence[Sequence[WarmStart]]
"""Alternatives, the best first; the warm starts in one alternative are combined."""


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: a warm start holds arrays
class Estimate:
    """A kernel to evaluate, with an estimate of its score and a starting point for its fit."""

    expression: Expression
    score: float = np.nan  # nats; nan for a kernel of which nothing is known
    expected: float = np.nan  # nats by which its score is expected to exceed the best one
    gains: tuple[tuple[float, float], ...] = ()  # keys of changes of known kernels, and nats
    start: WarmStart | None = None  # of all parameters of the arranged kernel


def record_fit(
    expression: Expression,
    posterior: LogPosterior,
    point: Point | Maximum,
    *,
    status: str,
    score: Score = NO_SCORE,
    log_evidence: float = -np.inf,
    n_other_evaluations: int = 0,
    seconds: float = 0.0,
    log_structure_prior: float = 0.0,
) -> Evaluation:
    """Record a fit of an expression, or of its arranged form, in the order of the expression.

    The Hessian at a mere point is not known. ``score`` is the value of the criterion, to which the
    log prior of the structure is added; ``n_other_evaluations`` are likelihood calls besides those
    of ``posterior``.
    """
    mode = point.mode if isinstance(point, Maximum) else point
    n_params = len(mode.theta)
    hessian = point.hessian if isinstance(point, Maximum) else np.full((n_params, n_params), np.nan)
    order = np.arange(n_params)
    if posterior.expression != expression:
        order = np.argsort(theta_order(expression, arrange(expression.tree)[1]))
    return Evaluation(
        expression=expression,
        theta=mode.theta[order],
        log_prior=float(posterior.prior.log_density(mode.theta)),
        log_posterior=mode.log_posterior,
        log_evidence=log_evidence,
        score=score.value + log_structure_prior,
        hessian=hessian[np.ix_(order, order)],
        n_evaluations=n_other_evaluations + posterior.n_evaluations,
        seconds=seconds,
        status=status,
        n_rows=posterior.data.noise.n_readings,
        rows_for_each=posterior.likelihood.rows_for_each,
        standard_error=score.standard_error,
        pareto_k=score.pareto_k,
        log_structure_prior=log_structure_prior,
    )
