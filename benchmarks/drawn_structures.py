"""Whether a search finds kernels as good as the structures that drew the data.

Each kind is a structure of two to four columns, of which ``g`` and ``h`` are categories of two to
four levels. A table of 150 rows is drawn from it: the size of each term, the lengthscales, periods
and offsets, and the noise are drawn as well. ``lost`` is what the best kernel lacks of the score of
the structure, in nats; less than zero if it is better. The program prints the share of tables with
at most half a nat, those that lost more, and seconds.

Rows go to results/drawn_structures.csv.

    python benchmarks/drawn_structures.py --seeds 5     # 30 kinds, a quarter of an hour of CPU time
    python benchmarks/drawn_structures.py --finished --any-commit
"""

import time
from typing import Any

import common
import numpy as np
import pandas as pd
from common import Row, Rows, numbers

from autokernel import AutoKernelGPRegressor, Expression, parse_expression
from autokernel.expression import fold, slots_of

NAME = "drawn_structures"  # of the CSV file
N_ROWS = 150
CLOSE = 0.5  # nats
KINDS = (
    "CAT[g] * LIN[a] + LIN[b]", "CAT[g] * LIN[a] + SE[b]", "CAT[g] * SE[a] + LIN[b]",
    "CAT[g] + LIN[a]", "CAT[g] * LIN[a] + LIN[b] + SE[c]", "CAT[g] * SE[a] + SE[b]",
    "CAT[g] * LIN[a] + CAT[h]", "CAT[g] * LIN[a] + CAT[h] * LIN[b]", "LIN[a] * SE[b] + LIN[c]",
    "SE[a] * SE[b] + LIN[c]", "LIN[a] * LIN[b] + SE[c]", "SE[a] + SE[b] + SE[c]",
    "SE[a] * SE[b] + SE[c]", "LIN[a] * SE[b] + SE[a]", "PER[a] + LIN[a]",
    "CAT[g] * PER[a] + LIN[a]", "CAT[g] * PER[a] + LIN[b]", "PER[a] * SE[a] + LIN[b]",
    "LIN[a] + SE[a] * CAT[g]", "LIN[a] + LIN[b] + LIN[c]", "CAT[g] + SE[a] * SE[b]",
    "CAT[g] * CAT[h] + LIN[a]", "SE[a] + CAT[g] + CAT[h]", "LIN[a] * LIN[b] + LIN[c] * LIN[d]",
    "SE[a] * SE[b] + SE[c] * SE[d]", "LIN[a] * SE[b] + LIN[c] * SE[d]", "LIN[a] * PER[b] + SE[c]",
    "LIN[a] * PER[b] + LIN[c]", "CAT[g] * LIN[a] + LIN[b] + LIN[c] + SE[d]",
    "SE[a] + LIN[b] * LIN[c]",
)  # fmt: skip


KERNELS = {  # whose functions are drawn by :func:`draw_kernel`
    "SE": lambda x, z, lengthscale, variance: (
        variance * np.exp(-((x - z) ** 2) / (2 * lengthscale**2))
    ),
    "LIN": lambda x, z, variance, offset: variance * x * z + offset,
    "CAT": lambda x, z, variance, offset: variance * (x == z) + offset,
    "PER": lambda x, z, lengthscale, variance, period: (
        variance * np.exp(-(np.sin(np.pi * (x - z) / period) ** 2) / (2 * lengthscale**2))
    ),
    "RQ": lambda x, z, lengthscale, variance, alpha: (
        variance * (1 + (x - z) ** 2 / (2 * alpha * lengthscale**2)) ** -alpha
    ),
}
N_UNIFORM = 100  # rows of :func:`draw_kernel`
LOW_HIGH = {  # ranges of its parameters, which so many uniform rows can show
    "lengthscale": (0.1, 0.3), "period": (0.08, 0.25), "variance": (0.5, 2.0),
    "offset": (0.1, 0.5), "alpha": (0.2, 0.5),
}  # fmt: skip
IN_A_CYCLE = (0.4, 1.0)  # range of the lengthscale of a kernel that has a period


def names_of_parameters(expression: Expression) -> list[list[str]]:
    """List the names of the parameters of each node, in the order of the parameters."""
    return [[parameter.name for parameter in node.parameters] for node, _ in slots_of(expression)]


def covariance_of(expression: Expression, params: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Compute the covariance of sums and products of these kernels, without noise."""
    if not expression.leaves:
        return np.zeros((len(X), len(X)))

    def leaf(tree: Any, own: np.ndarray) -> np.ndarray:
        x = X[:, tree.column]
        return KERNELS[tree.kernel.name](x[:, None], x[None], *own)

    def join(tree: Any, _: np.ndarray, operands: list[np.ndarray]) -> np.ndarray:
        combine = np.add if tree.operator.symbol == "+" else np.multiply
        return combine.reduce(operands)

    return fold(expression, params, leaf, join)


def draw_kernel(kernel: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw uniform inputs, and targets of a function of a kernel; the noise is a tenth of it."""
    rng = np.random.default_rng([seed, sum(map(ord, kernel))])
    rng.uniform(size=N_UNIFORM)  # so that the numbers of earlier measurements follow
    expression = parse_expression(kernel)
    params: list[float] = []
    for names in names_of_parameters(expression):
        for name in names:
            in_cycle = name == "lengthscale" and "period" in names
            low, high = IN_A_CYCLE if in_cycle else LOW_HIGH[name]
            params.append(float(np.exp(rng.uniform(np.log(low), np.log(high)))))
    n, n_columns = N_UNIFORM, 1 + max(leaf.column for leaf in expression.leaves)
    X = rng.uniform(size=(n, n_columns))
    K = covariance_of(expression, np.array(params), X)
    f = rng.multivariate_normal(np.zeros(n), K + 1e-9 * np.eye(n), method="cholesky")
    return X, f + 0.1 * f.std() * rng.normal(size=n)


def drawn(kind: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng, n = np.random.default_rng([seed, KINDS.index(kind)]), N_ROWS
    names = sorted({part[part.index("[") + 1] for part in kind.replace("*", "+").split("+")})
    X = pd.DataFrame(
        {
            name: rng.choice([*"pqrs"][: 2 + rng.integers(3)], n)
            if name in "gh"
            else rng.uniform(size=n)
            for name in names
        }
    )
    f = np.zeros(n)
    for term in kind.split(" + "):
        K = np.prod([covariance(leaf, X, rng) for leaf in term.split(" * ")], axis=0)
        values, vectors = np.linalg.eigh(K)
        part = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.normal(size=n))
        f += rng.uniform(0.6, 1.5) * (part - part.mean()) / part.std()
    y = f + rng.uniform(0.1, 0.4) * f.std() * rng.normal(size=n)
    return X.map(lambda one: one if isinstance(one, str) else 10 * one), y


def covariance(leaf: str, X: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    kernel, x = leaf[:-3], X[leaf[-2]].to_numpy()
    if kernel == "CAT":
        return 0.3 + (x[:, None] == x)
    distance = np.abs(x[:, None] - x)
    if kernel == "LIN":
        return np.multiply.outer(*[x - rng.uniform(0.2, 0.8)] * 2)
    if kernel == "SE":
        return np.exp(-0.5 * (distance / rng.uniform(0.15, 0.35)) ** 2)
    return np.exp(-2 * np.sin(np.pi * distance / rng.uniform(0.1, 0.25)) ** 2)


def measure(kind: str, seed: int) -> Row:
    X, y = drawn(kind, seed)
    began = time.process_time()
    model = AutoKernelGPRegressor(random_state=seed).fit(X, y)
    seconds = time.process_time() - began
    truth = AutoKernelGPRegressor(random_state=seed).refit(X, y, kernel=kind)
    return {
        "lost": truth.best_score_ - model.best_score_,
        "cpu_seconds": seconds,
        "n_kernels": len(model.search_history_["score"]),
        "kernel": model.best_expression_,
        "stop_reason": model.stop_reason_,
        "expected_improvement": model.expected_improvement_,
    }


def summarise(rows: Rows) -> None:
    for commit, found in common.group(rows, "commit").items():
        lost, seconds = numbers(found, "lost"), numbers(found, "cpu_seconds")
        print(
            f"\n{commit}: {np.sum(lost <= CLOSE)} of {len(found)} tables lost at most {CLOSE} "
            f"nats, {np.sum(lost > 2.0)} more than two; CPU s: median {np.median(seconds):.1f}, "
            f"90 % {np.quantile(seconds, 0.9):.1f}"
        )
        shown = ("kind", "seed", "lost", "cpu_seconds", "kernel")
        far = [row for row, nats in zip(found, lost, strict=True) if nats > CLOSE]
        common.print_table(
            [{name: row[name] for name in shown} for row in far] or [{"lost more": "none"}]
        )


def main() -> None:
    small = {"datasets": KINDS[:2], "seeds": 1}
    arguments = common.options_of(__doc__, datasets=KINDS, seeds=5, small=small)
    units = common.crossed(seed=range(arguments.seeds), kind=arguments.datasets)
    summarise(common.collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
