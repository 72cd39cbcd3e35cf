"""Whether the kernel that a search reports is the one from which the data were drawn.

Twenty kernels of one to four base kernels, on one and two columns, with lengthscales and periods
that 100 uniform rows can tell; the standard deviation of the noise is a tenth of the function's.
``right`` counts fits whose normal form is that of the truth; ``beyond`` counts those that report
another kernel, which has a higher score than the truth (its evidence, and the prior of its
structure). Further cases: pure noise of 50 and 100 rows, a straight line, and 0.95 of a cycle of a
sine. Of each fit, ``n_simpler`` counts the kernels one step simpler than the one reported that have
a score as high. They and the truth are fitted twice: alone, and by a search that continues from
what is known. ``n_reducible`` counts the kernels in the history that are not in normal form.

Rows go to results/structure_recovery.csv.

    python benchmarks/structure_recovery.py --jobs 2           # an hour of CPU time
    python benchmarks/structure_recovery.py --small
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common import Row, collect, group, make_parser, numbers, parse, print_table, rounded  # isort: skip
from runs import covariance, names_of_parameters, same_kernel, score_of  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.expression import normal_form, simplifications

NAME = "structure_recovery"  # of the CSV file
TRUTHS = (
    "SE[0]",
    "LIN[0]",
    "PER[0]",
    "RQ[0]",
    "SE[0] + PER[0]",
    "LIN[0] + PER[0]",
    "LIN[0] + SE[0]",
    "PER[0] * SE[0]",
    "LIN[0] * PER[0]",
    "LIN[0] * SE[0]",
    "SE[0] + SE[1]",
    "SE[0] * SE[1]",
    "LIN[0] + PER[1]",
    "LIN[0] + PER[0] + SE[0]",
    "LIN[0] + PER[0] * SE[0]",
    "LIN[0] * PER[0] + SE[0]",
    "LIN[0] + PER[0] * SE[1]",
    "PER[0] + SE[0] + SE[1]",
    "LIN[0] + PER[0] * SE[0] + SE[0]",
    "LIN[0] * PER[1] + SE[0] * SE[1]",
)
N_ROWS = 100
NOISE = 0.1  # standard deviation, as a part of the function's
_LOW_HIGH = {  # ranges of the true parameters
    "lengthscale": (0.1, 0.3),
    "period": (0.08, 0.25),
    "variance": (0.5, 2.0),
    "offset": (0.1, 0.5),
    "alpha": (0.2, 0.5),
}
_IN_A_CYCLE = (0.4, 1.0)  # range of the lengthscale of a kernel that has a period


@dataclass(frozen=True, slots=True)
class Case:
    """What a row is measured for."""

    truth: str  # a kernel, or the name of another case
    seed: int
    n_rows: int
    n_iter: int


def draw_kernel(truth: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw inputs, and targets of a function that is drawn from a kernel."""
    expression = parse_expression(truth)
    params: list[float] = []
    for names in names_of_parameters(expression):
        for name in names:
            in_cycle = name == "lengthscale" and "period" in names
            low, high = _IN_A_CYCLE if in_cycle else _LOW_HIGH[name]
            params.append(float(np.exp(rng.uniform(np.log(low), np.log(high)))))
    n_columns = 1 + max(leaf.column for leaf in expression.leaves)
    X = rng.uniform(size=(N_ROWS, n_columns))
    K = covariance(expression, np.array(params), X)
    f = rng.multivariate_normal(np.zeros(N_ROWS), K + 1e-9 * np.eye(N_ROWS), method="cholesky")
    return X, f + NOISE * f.std() * rng.normal(size=N_ROWS)


def draw(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Draw the data of a case."""
    rng = np.random.default_rng([case.seed, sum(map(ord, case.truth))])
    x = rng.uniform(size=(case.n_rows, 1))
    match case.truth:
        case "noise":
            return x, rng.normal(size=case.n_rows)
        case "line":
            return x, 2 * x[:, 0] + 0.1 * rng.normal(size=case.n_rows)
        case "cycle":  # 0.95 of one
            return x, np.sin(0.95 * 2 * np.pi * x[:, 0]) + 0.1 * rng.normal(size=case.n_rows)
        case _:
            return draw_kernel(case.truth, rng)


def measure(case: Case) -> Row:
    """Search a kernel, and compare it with the truth."""
    X, y = draw(case)
    began = time.process_time()
    model = AutoKernelGPRegressor(n_iter=case.n_iter, random_state=case.seed).fit(X, y)
    seconds = time.process_time() - began
    history, kernel, score = model.search_history_, model.best_expression_, model.best_score_
    truth = [case.truth] if "[" in case.truth else []
    simpler = list(map(str, simplifications(parse_expression(kernel))))
    scores = scores_again(model, truth + simpler, X, y)
    return {
        "kernel": kernel,
        "n_leaves": parse_expression(kernel).n_leaves,
        "score": rounded(score),
        "true_score": rounded(scores[case.truth] if truth else float("nan")),
        "n_evaluations": len(history["score"]),
        "n_pruning": int(np.sum(history["phase"] == "pruning")),
        "n_simpler": sum(scores[text] >= score for text in simpler),
        "n_reducible": sum(map(is_reducible, history["kernel"])),
        "cpu_seconds": rounded(seconds),
    }


def scores_again(
    model: AutoKernelGPRegressor, kernels: Sequence[str], X: np.ndarray, y: np.ndarray
) -> dict[str, float]:
    """Score kernels alone, and by a search that continues from what is known."""
    seed = model.random_state
    model.set_params(warm_start=True, n_iter=model.n_iter_, start_kernel=list(kernels)).fit(X, y)
    history = model.search_history_
    known = list(zip(history["kernel"], history["score"], strict=True))
    return {
        one: max(
            [score_of(one, X, y, seed=seed)]
            + [old for text, old in known if same_kernel(text, one)]
        )
        for one in kernels
    }


def is_reducible(kernel: str) -> bool:
    """Whether a kernel is not in normal form."""
    expression = parse_expression(kernel)
    return bool(normal_form(expression).canonical != expression.canonical)


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print how often each truth is found, and what is found elsewhere."""
    kernels = [row for row in rows if "[" in row["truth"]]
    table = []
    for truth, found in group(kernels, lambda row: row["truth"]).items():
        right = [same_kernel(row["kernel"], row["truth"]) for row in found]
        beyond = numbers(found, "score") > numbers(found, "true_score") - 1e-6
        table.append(
            {
                "truth": truth,
                "runs": len(found),
                "right": sum(right),
                "beyond": int(np.sum(beyond & ~np.array(right))),
                "neither": int(np.sum(~beyond & ~np.array(right))),
                "simpler": int(np.sum(numbers(found, "n_simpler") > 0)),
                "leaves": float(np.median(numbers(found, "n_leaves"))),
                "CPU s": float(np.median(numbers(found, "cpu_seconds"))),
            }
        )
    if table:
        print_table(table)
        total = {name: sum(int(str(row[name])) for row in table) for name in list(table[0])[1:6]}
        total["reducible"] = int(numbers(kernels, "n_reducible").sum())
        print(total)
    for (truth, n), found in group(rows, lambda row: (row["truth"], row["n_rows"])).items():
        if "[" not in truth:
            texts = [row["kernel"] for row in found]
            counts = {text: texts.count(text) for text in sorted(set(texts))}
            print(f"{truth}, {n} rows: {counts}")


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=[*TRUTHS, "noise", "line", "cycle"], seeds=5)
    parser.add_argument("--n-iter", type=int, default=50)
    arguments = parse(parser, small={"datasets": ["SE[0]", "noise"], "seeds": 1, "n_iter": 5})
    units = []
    for seed in range(4 * arguments.seeds):
        for truth in arguments.datasets:
            if truth == "noise":
                units += [Case(truth, seed, n, arguments.n_iter) for n in (50, 100)]
            elif seed < arguments.seeds:
                units.append(Case(truth, seed, N_ROWS, arguments.n_iter))
    summarise(collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
