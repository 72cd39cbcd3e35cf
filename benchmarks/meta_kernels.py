"""Kernels with their log evidence, for surrogates to learn from (SOT paper, section 4; BOMS).

The set begins with all base kernels; then, again and again, one kernel of it is picked at random,
one random operation of the grammar is applied to it, and the result is added. A larger set begins
with the smaller one. Each kernel is evaluated as in a search, beginning at the fits of the kernel
that it was grown from and of the base kernels: those of one generation at the same time. Rows go to
results/meta_kernels.csv, with as much of theta as the next generation needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from common import Row, group, rounded, run_missing  # isort: skip
from runs import N_TRAIN, draw_split, pose  # isort: skip

import numpy as np

from autokernel.evidence import Evaluation, Evaluator, Job
from autokernel.evidence.evaluation import name_parameters
from autokernel.expression import Expression, Grammar

NAME = "meta_kernels"  # of the CSV file
_SEED = 0  # of the set of kernels
_MAX_LEAVES = 10  # of a kernel


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a row is measured for."""

    dataset: str
    data_seed: int  # of the rows that are drawn
    place: int  # number in the set; a column of the file has this name
    kernel: str


@dataclass(frozen=True, slots=True)
class Grown:
    """A kernel, and how it came into the set."""

    expression: Expression
    parent: int  # its number, -1 for a base kernel
    generation: int  # 0 for a base kernel


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Landscape:
    """The log evidence of many kernels."""

    expressions: Sequence[Expression]
    scores: np.ndarray  # (n_kernels,), nats per sample; -inf where the evaluation failed
    grammar: Grammar
    X: np.ndarray  # (n_samples, n_features), scaled as the kernels see it

    @property
    def scored(self) -> np.ndarray:
        """Numbers of the kernels that have a score."""
        return np.flatnonzero(np.isfinite(self.scores))


def grow(grammar: Grammar, n_kernels: int) -> list[Grown]:
    """Grow a set of kernels of distinct canonical texts."""
    rng = np.random.default_rng(_SEED)
    grown = [Grown(leaf, -1, 0) for leaf in grammar.leaves]
    texts = {one.expression.canonical for one in grown}
    while len(grown) < n_kernels:
        parent = int(rng.integers(len(grown)))
        expression = grammar.random_neighbour(grown[parent].expression, rng)
        if expression.canonical not in texts:
            texts.add(expression.canonical)
            grown.append(Grown(expression, parent, grown[parent].generation + 1))
    return grown[:n_kernels]


def measure_landscape(
    dataset: str, data_seed: int, n_kernels: int, *, n_jobs: int, any_commit: bool
) -> Landscape:
    """Evaluate what is missing of a set of kernels, generation by generation."""
    split = draw_split(dataset, data_seed)
    problem = pose(split.X_train, split.y_train, seed=data_seed)
    task = problem.task
    grammar = replace(task.grammar, max_leaves=_MAX_LEAVES)
    grown = grow(grammar, n_kernels)
    fits: dict[int, Evaluation] = {}
    for numbers in group(range(n_kernels), lambda number: grown[number].generation).values():
        jobs = {number: _prepare(problem.evaluator, grown, fits, number) for number in numbers}
        rows = run_missing(
            NAME,
            [Kernel(dataset, data_seed, i, str(grown[i].expression)) for i in numbers],
            partial(evaluate, problem.evaluator, jobs),
            n_jobs=n_jobs,
            any_commit=any_commit,
        )
        fits.update(
            (i, _read(grown[i].expression, row)) for i, row in zip(numbers, rows, strict=True)
        )
    scores = np.array([fits[number].score for number in range(n_kernels)])
    return Landscape([one.expression for one in grown], scores, grammar, task.X)


def evaluate(evaluator: Evaluator, jobs: Mapping[int, Job], unit: Kernel) -> Row:
    """Evaluate one kernel."""
    evaluation = evaluator.run(jobs[unit.place])
    return {
        "score_per_sample": rounded(evaluation.score / N_TRAIN[unit.dataset]),
        "seconds": rounded(evaluation.seconds),
        "theta": " ".join(f"{entry:.3f}" for entry in evaluation.theta),
        "status": evaluation.status,
    }


def _prepare(
    evaluator: Evaluator, grown: Sequence[Grown], fits: Mapping[int, Evaluation], number: int
) -> Job:
    """Find the warm starts of a kernel, from its parent and from the base kernels."""
    bases = [fit for other, fit in fits.items() if grown[other].generation == 0]
    parent = [] if grown[number].generation < 2 else [fits[grown[number].parent]]
    return evaluator.prepare(grown[number].expression, [*bases, *parent])


def _read(expression: Expression, row: Mapping[str, str]) -> Evaluation:
    """Read a fit, its score per sample; what the file does not have is nan.

    Theta is that of the file, so that a set that is resumed is the same.
    """
    theta = np.array([float(entry) for entry in row["theta"].split()])
    unknown = ("log_likelihood", "log_prior", "log_posterior", "log_evidence")
    return Evaluation(
        expression=expression,
        parameters=name_parameters(expression, theta),
        theta=theta,
        **dict.fromkeys(unknown, np.nan),
        score=float(row["score_per_sample"]),
        hessian=np.full((len(theta), len(theta)), np.nan),
        n_params=len(theta),
        n_evaluations=0,
        seconds=float(row["seconds"]),
        status=row["status"],
    )
