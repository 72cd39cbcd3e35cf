"""Kernels with probabilities and draws that are made up."""

import numpy as np

from autokernel import parse_expression
from autokernel.evidence import Evaluation, Score
from autokernel.evidence.importance import ImportanceSample
from autokernel.model import KernelPosterior

LEAVES = ("SE", "LIN", "PER", "RQ", "MAT32", "MAT52")


def text_of(number: int) -> str:
    """Text of a kernel for each number."""
    name = LEAVES[number % len(LEAVES)]
    return " + ".join([f"{name}[0]"] * (1 + number // len(LEAVES)))


def evaluation(number: int, score: float, *, log_evidence: float | None = None) -> Evaluation:
    """A kernel of its own for each number, whose theta is its number."""
    expression = parse_expression(text_of(number))
    n_params = sum(len(leaf.parameters) for leaf in expression.leaves) + 1
    return Evaluation(
        expression=expression,
        parameters=(),
        theta=np.full(n_params, float(number)),
        log_likelihood=score,
        log_prior=0.0,
        log_posterior=score,
        log_evidence=score if log_evidence is None else log_evidence,
        score=score,
        hessian=np.eye(n_params),
        n_params=n_params,
        n_evaluations=1,
        seconds=0.0,
        status="ok",
    )


def believed(number: int, probability: float, draws: np.ndarray) -> KernelPosterior:
    """A kernel with a probability and with draws, the same number for all parameters of one."""
    found = evaluation(number, 0.0)
    thetas = np.repeat(np.array(draws, dtype=float)[:, None], found.n_params, axis=1)
    return KernelPosterior(found, probability, 0.0, thetas)


def sample_of(
    evaluation: Evaluation, log_evidence: float, weights: np.ndarray, pareto_k: float = 0.3
) -> ImportanceSample:
    """Draws that are numbered, with weights."""
    numbers = np.arange(float(len(weights)))
    theta = np.repeat(numbers[:, None], evaluation.n_params, axis=1)
    return ImportanceSample(theta, np.array(weights), Score(log_evidence, 0.01, pareto_k))
