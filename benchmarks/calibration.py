"""Whether events that are given a probability happen as often, on data drawn from known kernels.

Kernels on two columns are drawn from a list, their parameters and the noise from the priors, and 60
uniform rows from the process. The events are those of ``inclusion_probabilities_``: the target
depends on a column, repeats along it, is linear in it. The 90 % intervals of
``parameters_`` are counted where the kernel that is reported is the true one.

Rows go to results/calibration.csv; those of the current commit are not measured again.

    python benchmarks/calibration.py --jobs 2       # half an hour of CPU time
    python benchmarks/calibration.py --small
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from common import (  # isort: skip
    Row,
    collect,
    make_parser,
    parse,
    print_table,
    rounded,
)
from runs import covariance, same_kernel  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.expression import Expression, Leaf, normal_form, slots_of
from autokernel.kernels import ADD, NOISE_VARIANCE, PRESETS, Role

NAME = "calibration"  # of the CSV file
KERNELS = (
    "NOISE",
    "SE[0]",
    "LIN[0]",
    "PER[0]",
    "RQ[1]",
    "LIN[0] + SE[0]",
    "LIN[0] + LIN[1]",
    "SE[0] + SE[1]",
    "SE[0] * SE[1]",
    "LIN[0] + PER[1]",
    "PER[0] + SE[1]",
    "PER[0] * SE[0]",
    "LIN[0] * SE[1]",
    "LIN[0] + PER[0] + SE[1]",
    "PER[1] * SE[1] + LIN[1]",
)
N_ROWS = 60
EVENTS = ("depends", "repeats", "linear")
EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.7, 0.9, 0.97, 1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """What a row is measured for."""

    truth: str
    seed: int
    n_iter: int


def measure(case: Case) -> Row:
    """Draw data, fit, and write the probabilities with what is true."""
    rng = np.random.default_rng([case.seed, KERNELS.index(case.truth)])
    truth = parse_expression(case.truth)
    declared = [parameter for node, _ in slots_of(truth) for parameter in node.parameters]
    pairs = [one.prior_in(PRESETS["default"]) for one in (*declared, NOISE_VARIANCE)]
    params = np.array([rng.gamma(shape, 1 / rate) for shape, rate in pairs])
    X = rng.uniform(size=(N_ROWS, 2))
    K = covariance(truth, params[:-1], X) + params[-1] * np.eye(N_ROWS)
    y = np.linalg.cholesky(K + 1e-9 * np.eye(N_ROWS)) @ rng.normal(size=N_ROWS)
    began = time.process_time()
    model = AutoKernelGPRegressor(n_iter=case.n_iter, random_state=case.seed).fit(X, y)
    seconds = time.process_time() - began
    table = model.inclusion_probabilities_
    right = same_kernel(case.truth, model.best_expression_)
    held = held_of(model, params, truth) if right and normal_form(truth) == truth else ""
    return {
        **{
            f"{event}_{column}": f"{table[event][column]:.4f}:{int(is_true)}"
            for event in EVENTS
            for column, is_true in enumerate(truths_of(truth, params, np.ptp(X, axis=0))[event])
        },
        "held": held,
        "kernel": model.best_expression_,
        "cpu_seconds": rounded(seconds),
    }


def truths_of(truth: Expression, params: np.ndarray, extents: np.ndarray) -> dict[str, list[bool]]:
    """Say for each column whether the events are true."""
    found: dict[str, list[bool]] = {event: [] for event in EVENTS}
    for column in range(2):
        terms = [
            term for term in truth.terms(ADD) if any(leaf.column == column for leaf in term.leaves)
        ]
        periods = [
            params[entries.start + number]
            for node, entries in slots_of(truth)
            for number, parameter in enumerate(node.parameters)
            if node.column == column and parameter.role == Role.PERIOD
        ]
        found["depends"].append(bool(terms))
        found["repeats"].append(any(period < extents[column] for period in periods))
        is_linear = all(isinstance(term, Leaf) and term.kernel.is_linear for term in terms)
        found["linear"].append(bool(terms) and is_linear)
    return found


def held_of(model: AutoKernelGPRegressor, params: np.ndarray, truth: Expression) -> str:
    """Say which 90 % intervals of lengths hold the true value, as ``name:0 or 1``."""
    intervals = model.parameters_
    names = [parameter.name for node, _ in slots_of(truth) for parameter in node.parameters]
    held = []
    for row, name in enumerate([*names, NOISE_VARIANCE.name]):
        if name in ("lengthscale", "period", NOISE_VARIANCE.name):
            inside = intervals["low"][row] < params[row] < intervals["high"][row]
            held.append(f"{name}:{int(inside)}")
    return " ".join(held)


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print how often events happen, by their probability, and how often intervals hold."""
    pairs = [
        (event, *map(float, row[f"{event}_{column}"].split(":")))
        for row in rows
        for event in EVENTS
        for column in range(2)
    ]
    table = []
    for low, high in pairwise(EDGES):
        line: dict[str, object] = {"probability": f"{low:.2f} to {high:.2f}"}
        for name in ("all", *EVENTS):
            some = [
                (p, true)
                for event, p, true in pairs
                if name in ("all", event) and low <= p and (p < high or high == 1.0)
            ]
            mean, share = np.mean(some, axis=0) if some else (np.nan, np.nan)
            line[name] = f"{share:.2f} of {len(some)} (mean {mean:.2f})" if some else ""
        table.append(line)
    print_table(table)
    held = [part.split(":") for row in rows for part in row["held"].split()]
    for name in sorted({name for name, _ in held}):
        own = [int(value) for other, value in held if other == name]
        print(f"90 % interval of the {name} holds it in {np.mean(own):.2f} of {len(own)}")


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=list(KERNELS), seeds=10)
    parser.add_argument("--n-iter", type=int, default=10)
    arguments = parse(parser, small={"datasets": ["SE[0]"], "seeds": 2})
    units = [
        Case(truth, seed, arguments.n_iter)
        for seed in range(arguments.seeds)
        for truth in arguments.datasets
    ]
    summarise(collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
