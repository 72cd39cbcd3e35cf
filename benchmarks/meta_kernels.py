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
from runs import N_TRAIN, draw_split, pose, task_of  # isort: skip

import numpy as np

from autokernel.evaluation import Evaluator, Job
from autokernel.expression import Expression, Grammar
from autokernel.map.warm_start import Known

NAME = "meta_kernels"  # of the CSV file
_SEED = 0  # of the set of kernels
_MAX_LEAVES = 10  # of a kernel


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a row is measured for."""

    dataset: str
    data_seed: int  # of the rows that are drawn
    place: int  # in the set
    kernel: str


@dataclass(frozen=True, slots=True)
class Grown:
    """A kernel, and how it came into the set."""

    expression: Expression
    parent: int  # its place, -1 for a base kernel
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
        """Places of the kernels that have a score."""
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
    task = task_of(problem)
    grammar = replace(task.grammar, max_leaves=_MAX_LEAVES)
    grown = grow(grammar, n_kernels)
    fits: dict[int, Known] = {}
    for places in group(range(n_kernels), lambda place: grown[place].generation).values():
        jobs = {place: _prepare(problem.evaluator, grown, fits, place) for place in places}
        rows = run_missing(
            NAME,
            [Kernel(dataset, data_seed, p, str(grown[p].expression)) for p in places],
            partial(evaluate, problem.evaluator, jobs),
            n_jobs=n_jobs,
            any_commit=any_commit,
        )
        fits.update(
            (p, _read(grown[p].expression, row)) for p, row in zip(places, rows, strict=True)
        )
    scores = np.array([fits[place].score for place in range(n_kernels)])
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
    evaluator: Evaluator, grown: Sequence[Grown], fits: Mapping[int, Known], place: int
) -> Job:
    """Find what a kernel inherits from its parent and from the base kernels."""
    bases = [fit for other, fit in fits.items() if grown[other].generation == 0]
    parent = [] if grown[place].generation < 2 else [fits[grown[place].parent]]
    return evaluator.prepare(grown[place].expression, [*bases, *parent])


def _read(expression: Expression, row: Mapping[str, str]) -> Known:
    """Read a fit; theta is that of the file, so that a set that is resumed is the same."""
    theta = np.array([float(entry) for entry in row["theta"].split()])
    return Known(expression, theta, float(row["score_per_sample"]))
