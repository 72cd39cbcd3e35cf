"""Whether what is stated is right on average: calibration by simulation from the package's priors.

Parameters are drawn from their priors, and 60 rows from the process. If inference is exact, the
rank of a true value among the draws of its posterior is uniform, and an event with probability p
happens in a share p of all cases (Cook, Gelman & Rubin 2006; Talts et al. 2018, arXiv:1804.06788;
for structures, arXiv:2508.11814).

``given``: the kernel is known. Ranks of its parameters, 90 % intervals, and the probabilities of
smaller values of the function and of a target at a new place between the rows and beyond them.

``unknown``: the structure is drawn from the prior over all with at most two leaves, and found by
the estimator, whose priors are those of a standardised target. So only targets whose mean and
deviation are nearly zero and one are taken: a choice that looks at the data changes no posterior.
The probabilities are those of ``posterior_`` and of ``inclusion_probabilities_``.

Rows go to results/calibration.csv.

    python benchmarks/calibration.py --jobs 2       # 50 minutes of CPU time
    python benchmarks/calibration.py --small
"""

import time
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import common
import numpy as np
from common import Row, Rows
from scipy.stats import kstest, norm

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.evidence import Evaluator
from autokernel.evidence.posterior import LogPosterior
from autokernel.explain.words import interval
from autokernel.expression import (
    NOISE,
    Expression,
    Leaf,
    arrange,
    fold,
    grammar_prior,
    normal_form,
    slots_of,
)
from autokernel.inference import ExactLikelihood, ExactPredictor, TrainingData
from autokernel.kernels import ADD, NOISE_VARIANCE
from autokernel.model import MixturePredictor, PosteriorAveraging, posterior_over_kernels

NAME = "calibration"  # of the CSV file
CASES = (
    "SE[0]", "RQ[0]", "PER[0]", "LIN[0] + PER[0]", "SE[0] * PER[0]", "SE[0] * SE[1]",
    "CAT[2] + SE[0]",
)  # fmt: skip
UNKNOWN = "unknown"  # structure
N_ROWS, N_LEVELS = 60, 4
BEYOND = 1.3  # extents, up to which a new place lies beyond the rows
BASE_KERNELS = ("SE", "LIN", "PER")  # of unknown structures
MAX_OFF = 0.1  # of the mean and the deviation of a target from zero and one
EVENTS = ("depends", "repeats", "linear")
EDGES = (0.0, 0.05, 0.25, 0.5, 0.75, 1.0)  # of classes of probabilities


KERNELS = {  # whose functions are drawn, here and by default_search.py
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


def measure(truth: str, seed: int) -> Row:
    rng = np.random.default_rng([55, seed, len(truth), *truth.encode()])
    found = _unknown(seed, rng) if truth == UNKNOWN else _given(truth, seed, rng)
    return {"drawn": "", "ranks": "", "held": "", "pareto_k": "", "probabilities": "", **found}


def draw(
    expression: Expression, X: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, ...] | None:
    """Draw log parameters from their priors, the function and targets at the rows of X.

    There is nothing if a period is longer than the space of kernels allows, which is two cycles.
    """
    rows = TrainingData(X[:N_ROWS], rng.normal(size=N_ROWS))
    posterior = LogPosterior(ExactLikelihood(expression, rows), priors={})
    theta = posterior.prior.quantile(rng.uniform(size=len(posterior.centre)))
    if np.any(theta > posterior.upper):
        return None
    K = covariance_of(expression, np.exp(theta[:-1]), X)
    f = np.linalg.cholesky(K + 1e-10 * (1 + np.trace(K)) * np.eye(len(X))) @ rng.normal(size=len(X))
    return theta, f, f + np.exp(theta[-1] / 2) * rng.normal(size=len(X))


def _given(truth: str, seed: int, rng: np.random.Generator) -> Row:
    expression = arrange(parse_expression(truth))[0]
    n = N_ROWS + 2  # one new place between the rows, and one beyond them
    X = np.column_stack([rng.uniform(size=(n, 2)), rng.integers(N_LEVELS, size=n)])
    X[-1, 0] = rng.uniform(1, BEYOND)
    while (drawn := draw(expression, X, rng)) is None:
        pass
    theta, f, y = drawn
    data = TrainingData(X[:N_ROWS], y[:N_ROWS])
    began = time.process_time()
    evaluator = Evaluator(data, priors={}, seed=seed)
    kernels = posterior_over_kernels(evaluator, [evaluator(expression)])
    mixture = MixturePredictor(PosteriorAveraging().components(kernels), data, ExactPredictor)
    seconds = time.process_time() - began
    draws = kernels[0].draws
    below = (draws < theta).sum(axis=0) + rng.uniform(size=len(theta))
    ranks = dict(zip(names_of(expression), below / (len(draws) + 1), strict=True))
    for place, number in (("inside", N_ROWS), ("beyond", N_ROWS + 1)):
        for what, noise, value in (("f", 0.0, f[number]), ("y", 1.0, y[number])):
            ranks[f"{what} {place}"] = probability_below(value, X[[number]], mixture, noise)
    low, high = interval(draws)
    return {
        "ranks": packed(ranks),
        "held": "".join(map(str, ((low < theta) & (theta < high)).astype(int))),
        "pareto_k": f"{kernels[0].pareto_k:.2f}",
        "cpu_seconds": seconds,
    }


def probability_below(
    value: float, x: np.ndarray, mixture: MixturePredictor, noise: float
) -> float:
    """Compute the probability of smaller values, of the function if ``noise`` is zero."""
    found = 0.0
    for weight, one in zip(mixture.weights, mixture.predictors, strict=True):
        mean, variance = one.function(x)
        std = np.sqrt(np.maximum(variance + noise * one.noise_variance, 1e-300))
        found += weight * float(norm.cdf(value, mean, std)[0])
    return found


def names_of(expression: Expression) -> list[str]:
    """Name the parameters, with the number of the node where a name occurs twice."""
    nodes = names_of_parameters(expression)
    every = [name for names in nodes for name in names]
    return [
        f"{name} {number}" if every.count(name) > 1 else name
        for number, names in enumerate(nodes)
        for name in names
    ] + [NOISE_VARIANCE.name]


def structures() -> tuple[tuple[Expression, ...], np.ndarray]:
    """List all structures with at most two leaves, and their prior probabilities."""
    leaves = [f"{name}[{column}]" for name, column in product(BASE_KERNELS, range(2))]
    pairs = combinations_with_replacement(leaves, 2)
    texts = [*leaves, *(f"{a} {sign} {b}" for a, b in pairs for sign in "+*")]
    forms = {one.canonical: one for text in texts for one in [normal_form(parse_expression(text))]}
    every = (NOISE, *forms.values())
    log_prior = [
        grammar_prior(one, n_kernels=len(BASE_KERNELS), n_operators=2, n_columns=2) for one in every
    ]
    weights = np.exp(log_prior)
    return every, weights / weights.sum()


def standardised(rng: np.random.Generator) -> tuple[Expression, np.ndarray, np.ndarray]:
    """Draw structures with data until a target is nearly standardised."""
    every, probabilities = structures()
    while True:
        truth = every[rng.choice(len(every), p=probabilities)]
        X = rng.uniform(size=(N_ROWS, 2))
        X[:2] = [[0, 1], [1, 0]]  # the ends of the unit interval
        if drawn := draw(truth, X, rng):
            y = drawn[-1]
            if max(abs(y.mean()), abs(y.std() - 1)) < MAX_OFF:
                return truth, X, y


def _unknown(seed: int, rng: np.random.Generator) -> Row:
    truth, X, y = standardised(rng)
    model = AutoKernelGPRegressor(
        base_kernels=BASE_KERNELS,
        max_leaves=2,
        column_scales=None,
        target_scale=None,
        outliers=None,
        noise="constant",
        random_state=seed,
    )
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    probabilities = {
        normal_form(parse_expression(text)).canonical: value
        for text, value in zip(*map(model.posterior_.get, ("kernel", "probability")), strict=True)
    }
    table = model.inclusion_probabilities_
    probabilities |= {f"{event} {c}": table[event][c] for event in EVENTS for c in range(2)}
    return {
        "drawn": truth.canonical,
        "probabilities": packed(probabilities),
        "cpu_seconds": seconds,
    }


def packed(numbers: Mapping[str, float]) -> str:
    return "; ".join(f"{name}: {value:.4f}" for name, value in numbers.items())


def unpacked(text: str) -> dict[str, float]:
    pairs = (part.rsplit(": ", 1) for part in text.split("; "))
    return {name: float(value) for name, value in pairs}


def events_of(truth: Expression) -> dict[str, bool]:
    found = {}
    for column in range(2):
        terms = [term for term in truth.terms(ADD) if column in term.columns]
        straight = all(isinstance(term, Leaf) and term.kernel.is_linear for term in terms)
        leaves = [leaf for leaf in truth.leaves if leaf.column == column]
        found[f"depends {column}"] = bool(terms)
        found[f"repeats {column}"] = any(leaf.kernel.name == "PER" for leaf in leaves)
        found[f"linear {column}"] = bool(terms) and straight
    return found


def summarise(rows: Rows) -> None:
    seconds = common.of(np.mean, "cpu_seconds")
    for truth, found in common.group(rows, "truth").items():
        print(f"\n{truth}: {len(found)} draws, {seconds(found):.3f} CPU seconds each")
        tables = [_classes(found), _structures(found)] if truth == UNKNOWN else [_ranks(found)]
        for table in filter(None, tables):
            common.print_table(table)


def _ranks(rows: Rows) -> list[Row]:
    """Compare ranks with a uniform distribution, by Kolmogorov's simultaneous 95 % band."""
    ranks = [unpacked(row["ranks"]) for row in rows]
    band = 1.358 / np.sqrt(len(rows))
    table: list[Row] = []
    for number, name in enumerate(ranks[0]):
        own = np.array([one[name] for one in ranks])
        distance = kstest(own, "uniform").statistic
        is_parameter = number < len(rows[0]["held"])
        if is_parameter:
            held = np.array([int(row["held"][number]) for row in rows])
        else:
            held = np.abs(own - 0.5) < 0.45
        table.append(
            {
                "of": name,
                "mean rank": f"{own.mean():.3f}",
                "distance": f"{distance:.3f}",
                "band": f"{band:.3f}{' *' * bool(distance > band)}",
                "90 % holds": f"{held.mean():.3f}",
            }
        )
    return table


def _classes(rows: Rows) -> list[Row]:
    """Compare probabilities in classes with the shares of events that happened."""
    pairs = defaultdict[str, list[tuple[float, bool]]](list)
    every_form, _ = structures()
    for row in rows:
        stated = unpacked(row["probabilities"])
        (truth,) = (form for form in every_form if form.canonical == row["drawn"])
        for event, is_true in events_of(truth).items():
            pairs[event.split()[0]].append((stated[event], is_true))
        for form in every_form:
            happened = form.canonical == truth.canonical
            pairs["structure"].append((stated.get(form.canonical, 0.0), happened))
    table: list[Row] = []
    for low, high in pairwise(EDGES):
        line: dict[str, object] = {"probability": f"{low:.2f} to {high:.2f}"}
        for event, every in pairs.items():
            some = np.array([(p, t) for p, t in every if low <= p and (p < high or high == 1)])
            line[event] = _compared(some) if len(some) else ""
        table.append(line)
    return table


def _compared(pairs: np.ndarray) -> str:
    """Write the mean probability, the share that happened, and the distance in standard errors."""
    p, happened = pairs.T
    z = distance(happened.sum(), p)
    return f"{happened.mean():.3f} of {len(p)} (stated {p.mean():.3f}, {z:+.1f})"


def distance(n_happened: float, p: np.ndarray) -> float:
    """Compute how far a number of events is from what is stated, in standard errors."""
    return float((n_happened - p.sum()) / (np.sqrt((p * (1 - p)).sum()) or np.nan))


def _structures(rows: Rows) -> list[Row]:
    """Compare the sum of the probabilities of each structure with how often it was drawn."""
    every = [(row["drawn"], unpacked(row["probabilities"])) for row in rows]
    table: list[Row] = []
    for form in structures()[0]:
        text = form.canonical
        p = np.array([stated.get(text, 0.0) for _, stated in every])
        n = sum(drawn == text for drawn, _ in every)
        if max(n, p.sum()) >= 5:
            z = distance(n, p)
            table.append(
                {"structure": text, "drawn": n, "stated": f"{p.sum():.1f}", "z": f"{z:+.1f}"}
            )
    return table


def main() -> None:
    arguments = common.options_of(
        __doc__, datasets=[*CASES, UNKNOWN], seeds=1000, unknown=500,
        small={"datasets": ["SE[0]", UNKNOWN], "seeds": 10, "unknown": 2},
    )  # fmt: skip
    units = [
        {"truth": truth, "seed": seed}
        for truth in arguments.datasets
        for seed in range(arguments.unknown if truth == UNKNOWN else arguments.seeds)
    ]
    summarise(common.collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
