"""How near predictions come to those of Hamiltonian Monte Carlo over the parameters of one kernel.

The truth is the mixture over draws by the no-U-turn sampler (nuts.py): four chains, from the best
mode and from others within ``NEAR`` nats of it, or from a higher mode once one of them has found
that. Compared with it, on up to 200 rows held out, are

- best: the estimator with its best parameters alone, ``averaging=None``;
- posterior-8, -32, -100: the estimator with so many components, of which 8 is the default;
- hmc-8, -32, -200: so many other draws of the chains, the mean over ``n_mixtures`` such mixtures:
  the error that this number of random components has by itself.

``mean_error`` is the root mean square difference of the means, ``end_error`` and
``worst_end_error`` the mean and largest difference of the ends of 95 % intervals, all in units of
the standard deviation of the truth, row by row; ``std_ratio`` is the median ratio of standard
deviations. ``divergence`` is the Kullback-Leibler divergence from the truth, ``density_gap`` the
log predictive density of the held-out targets less that of the truth, and ``nll`` minus that
density, of a standardised target: means in nats per row.

How far the truth can be trusted: ``r_hat``, ``effective_draws`` and ``divergent`` of the chains;
``gain``, the log posterior of their best draw less that of the fit, positive only where the fit has
missed a higher mode; ``at_best``, the share of draws from which an ascent ends at the fit; and
``other_modes``, the number of lower ones within ``NEAR`` nats. ``same_fit`` tells whether the
estimator has the fit from which the chains started, ``pareto_k`` is that of its own draws.

Rows go to results/hmc.csv; those that the current commit has there are not measured again.

    AUTOKERNEL_DATA=folder python benchmarks/hmc.py --jobs 2   # an hour
    AUTOKERNEL_DATA=folder python benchmarks/hmc.py --small    # two minutes
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from common import (  # isort: skip
    Row,
    group,
    make_parser,
    numbers,
    parse,
    print_environment,
    print_table,
    rounded,
    run_missing,
)
from data import read_data  # isort: skip
from nuts import Chains, sample_chains  # isort: skip
from runs import Split, pose  # isort: skip

import numpy as np
from sklearn.datasets import make_friedman1

from autokernel import AutoKernelGPRegressor, PosteriorAveraging, parse_expression
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Evaluation, Evaluator
from autokernel.evidence.maximise import maximise
from autokernel.evidence.mode_search import ModeSearch
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import arrange, theta_order
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import check_priors
from autokernel.model import Averaging, KernelPosterior, MixtureComponent, posterior_over_kernels

NAME = "hmc"  # of the CSV file
KERNELS: Mapping[str, str] = {
    "airline": "LIN[0] + PER[0] * SE[0]",
    "mauna": "SE[0] + PER[0]",
    "solar": "PER[0] * RQ[0]",
    "concrete": " * ".join(f"SE[{column}]" for column in range(8)),
    "friedman1": "SE[0] * SE[1] + SE[2] + SE[3] + SE[4]",
    "power_plant": "SE[0] + SE[1]",
}
FORECASTS = ("airline",)  # of these the first rows are given, of the others random ones
AVERAGED: Mapping[str, Averaging | None] = {
    "best": None,
    **{f"posterior-{n}": PosteriorAveraging(n_components=n) for n in (8, 32, 100)},
}
OF_HMC = {f"hmc-{n}": n for n in (8, 32, 200)}
METHODS = (*AVERAGED, *OF_HMC)
MEASURES = (
    "mean_error",
    "std_ratio",
    "end_error",
    "worst_end_error",
    "divergence",
    "density_gap",
    "nll",
)
TRUST = ("r_hat", "effective_draws", "divergent", "gain", "at_best", "other_modes", "pareto_k")
N_TRAIN = 60
MOST_TEST = 200
N_CHAINS = 4
N_DRAWS = 2000  # of each chain at least
LONGEST = 3  # times as many draws, where fewer are not enough
N_TRUTH = 500  # draws of the truth, and as many others
MOST_MIXTURES = 10
N_ASCENTS = 100
NEAR = 5.0  # nats of log posterior
SAME = 0.05  # nats by which ends of ascents to one mode differ at most
STEP = 0.35  # standard deviations between the targets at which the divergence is summed up
TARGETS = STEP * np.arange(-16, 17)
PRIORS = check_priors("default")


@dataclass(frozen=True, slots=True)
class Unit:
    """What a row is measured for."""

    dataset: str
    kernel: str
    seed: int
    n_draws: int  # of each chain at least
    method: str


class OfDraws(Averaging):
    """The mixture of given parameters (n_draws, n_params) of one kernel."""

    def __init__(self, draws: np.ndarray) -> None:
        self.draws = draws

    def weights(
        self,
        evaluator: Evaluator,  # noqa: ARG002 - there is one kernel
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,  # noqa: ARG002 - this takes no time
    ) -> np.ndarray:
        """Return the weight of the only kernel."""
        return np.ones(len(kernels))

    def components(
        self,
        evaluator: Evaluator,  # noqa: ARG002 - the draws are given
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,  # noqa: ARG002 - this takes no time
    ) -> list[MixtureComponent]:
        """Return a component for each draw."""
        (one,) = kernels
        weight = 1 / len(self.draws)
        return [MixtureComponent(one.evaluation.expression, theta, weight) for theta in self.draws]


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Forecast:
    """The predictive distribution of the held-out rows."""

    mean: np.ndarray  # (n,)
    std: np.ndarray  # (n,)
    ends: np.ndarray  # (n, 2), of the 95 % interval
    log_density: np.ndarray  # (n,), of the held-out targets


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Truth:
    """What HMC predicts for one split, and how far this can be trusted."""

    split: Split
    fit: Evaluation  # where the chains started
    forecast: Forecast
    log_densities: np.ndarray  # (n, n_targets), of the targets at which the divergence is summed up
    others: np.ndarray  # (N_TRUTH, n_params), draws that are not of the truth
    trust: Row


def units_of(arguments: argparse.Namespace) -> list[Unit]:
    """List what to measure, the methods of one split together."""
    return [
        Unit(dataset, KERNELS[dataset], seed, arguments.draws, method)
        for seed in range(arguments.seeds)
        for dataset in arguments.datasets
        for method in METHODS
    ]


def measure(unit: Unit, *, n_jobs: int) -> Row:
    """Predict by one method, and compare with the truth."""
    truth = truth_of(unit.dataset, unit.kernel, unit.seed, unit.n_draws, n_jobs)
    if unit.method in AVERAGED:
        ways = [AVERAGED[unit.method]]
    else:
        ways = [OfDraws(draws) for draws in parts_of(truth.others, OF_HMC[unit.method])]
    models = [refit(unit, truth.split, way) for way in ways]
    found = [compare(model, truth) for model in models]
    same = all(np.isclose(model.best_score_, truth.fit.score, atol=SAME) for model in models)
    means = {name: rounded(np.mean([one[name] for one in found])) for name in MEASURES}
    return {"n_mixtures": len(found), **means, **truth.trust, "same_fit": same}


def refit(unit: Unit, split: Split, averaging: Averaging | None) -> AutoKernelGPRegressor:
    """Fit the parameters of the kernel."""
    model = AutoKernelGPRegressor(averaging=averaging, random_state=unit.seed)
    return model.refit(split.X_train, split.y_train, kernel=unit.kernel)


def predict(model: AutoKernelGPRegressor, split: Split) -> Forecast:
    """Predict the held-out rows."""
    mean, std = model.predict(split.X_test, return_std=True)
    ends = model.predict_interval(split.X_test)
    return Forecast(mean, std, ends, model.log_predictive_density(split.X_test, split.y_test))


def log_densities(model: AutoKernelGPRegressor, X: np.ndarray, forecast: Forecast) -> np.ndarray:
    """Compute the log densities (n, n_targets) of targets all over the range of a forecast."""
    targets = forecast.mean[:, None] + forecast.std[:, None] * TARGETS
    repeated = np.repeat(X, len(TARGETS), axis=0)
    return model.log_predictive_density(repeated, targets.ravel()).reshape(targets.shape)


def compare(model: AutoKernelGPRegressor, truth: Truth) -> dict[str, float]:
    """Compute the differences of a model's predictions from the truth."""
    found, true = predict(model, truth.split), truth.forecast
    end_errors = np.abs(found.ends - true.ends) / true.std[:, None]
    p, q = truth.log_densities, log_densities(model, truth.split.X_test, true)
    integrand = np.exp(p) * (p - q) + np.exp(q) - np.exp(p)  # nowhere negative
    return {
        "mean_error": float(np.sqrt(np.mean(((found.mean - true.mean) / true.std) ** 2))),
        "std_ratio": float(np.median(found.std / true.std)),
        "end_error": float(end_errors.mean()),
        "worst_end_error": float(end_errors.max()),
        "divergence": float(np.mean(integrand.sum(axis=1) * STEP * true.std)),
        "density_gap": float(np.mean(found.log_density - true.log_density)),
        "nll": -float(found.log_density.mean()),
    }


@lru_cache(maxsize=1)  # the methods of one split stand together
def truth_of(dataset: str, kernel: str, seed: int, n_draws: int, n_jobs: int) -> Truth:
    """Run the chains on one split, and predict with some of their draws."""
    split = draw_rows(dataset, seed)
    problem = pose(split.X_train, split.y_train, seed=seed)
    fit, data = problem.evaluator(parse_expression(kernel)), problem.evaluator.data
    posterior = LogPosterior(ExactLikelihood(fit.expression, data), priors=PRIORS)
    others = other_modes(fit, data, seed)
    began = time.perf_counter()
    chains = run_chains(posterior, fit, others, n_draws=n_draws, seed=seed, n_jobs=n_jobs)
    seconds = time.perf_counter() - began
    every = len(chains.in_turn) // (2 * N_TRUTH)
    draws, left = (chains.in_turn[first :: 2 * every][:N_TRUTH] for first in (0, every))
    model = refit(Unit(dataset, kernel, seed, n_draws, "hmc"), split, OfDraws(draws))
    forecast = predict(model, split)
    (ours,) = posterior_over_kernels(problem.evaluator, [fit])
    return Truth(
        split,
        fit,
        forecast,
        log_densities(model, split.X_test, forecast),
        left,
        {
            **trust_of(chains, posterior, fit),
            "other_modes": len(others),
            "pareto_k": rounded(ours.pareto_k),
            "hmc_seconds": rounded(seconds),
        },
    )


def run_chains(
    posterior: LogPosterior,
    fit: Evaluation,
    others: Sequence[np.ndarray],
    *,
    n_draws: int,
    seed: int,
    n_jobs: int,
) -> Chains:
    """Run chains from the modes, anew from a higher one where they have found that."""
    rng = np.random.default_rng(seed)
    starts, hessian, highest = [fit.theta, *others], fit.hessian, fit.log_posterior
    while True:
        chains = sample_chains(
            posterior,
            [starts[number % len(starts)] for number in range(N_CHAINS)],
            hessian,
            n_draws=n_draws,
            most_draws=LONGEST * n_draws,
            rng=rng,
            n_jobs=n_jobs,
        )
        best_draw = chains.theta.reshape(-1, fit.n_params)[chains.log_posterior.argmax()]
        mode = maximise(posterior, best_draw, max_iterations=300)
        if mode.log_posterior < highest + SAME:
            return chains
        starts, highest = [mode.theta], mode.log_posterior
        hessian = posterior.hessian(mode.theta)


def draw_rows(dataset: str, seed: int) -> Split:
    """Draw the rows to fit, and those to predict; all are standardised by the former."""
    if dataset == "friedman1":
        X, y = make_friedman1(N_TRAIN + MOST_TEST, n_features=5, noise=1.0, random_state=seed)
    else:
        X, y = read_data(dataset)
    order = np.arange(len(y))
    if dataset not in FORECASTS:
        order = np.random.default_rng(seed).permutation(order)
    train, test = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + MOST_TEST]
    y = (y - y[train].mean()) / y[train].std()
    return Split(X[train], y[train], X[test], y[test])


def other_modes(fit: Evaluation, data: TrainingData, seed: int) -> list[np.ndarray]:
    """Find other modes (n_params,) of a kernel that are almost as high as the best one."""
    arranged, order = arrange(fit.expression)
    likelihood = ExactLikelihood(arranged, data)
    modes, _ = ModeSearch(data, priors=PRIORS, seed=seed)(LogPosterior(likelihood, priors=PRIORS))
    back = np.argsort(theta_order(fit.expression, order))
    lowest, highest = fit.log_posterior - NEAR, fit.log_posterior - SAME
    return [mode.theta[back] for mode in modes if lowest < mode.log_posterior < highest]


def trust_of(chains: Chains, posterior: LogPosterior, fit: Evaluation) -> dict[str, object]:
    """Measure how far chains can be trusted, and how much of them belongs to the best mode."""
    draws = chains.in_turn[:: len(chains.in_turn) // N_ASCENTS]
    ends = [maximise(posterior, theta, max_iterations=300).log_posterior for theta in draws]
    return {
        "r_hat": rounded(chains.r_hat),
        "effective_draws": rounded(chains.effective_draws),
        "draws": chains.log_posterior.size,
        "gradients_per_draw": rounded(float(chains.n_steps.mean())),
        "divergent": int(chains.diverged.sum()),
        "gain": rounded(float(chains.log_posterior.max() - fit.log_posterior)),
        "at_best": rounded(float(np.mean(np.abs(np.array(ends) - fit.log_posterior) < SAME))),
    }


def parts_of(draws: np.ndarray, size: int) -> list[np.ndarray]:
    """Part draws, which come in the order of time, into mixtures of so many that lie far apart."""
    n = len(draws) // size
    return [draws[first::n][:size] for first in range(min(n, MOST_MIXTURES))]


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print means over the seeds, first of the chains and then of each method."""
    of_dataset = group(rows, lambda row: row["dataset"])
    print_table(
        [
            {"dataset": name, **{what: float(np.mean(numbers(found, what))) for what in TRUST}}
            for name, found in of_dataset.items()
        ]
    )
    print_table(
        [
            {
                "dataset": dataset,
                "method": method,
                **{name: float(np.mean(numbers(found, name))) for name in MEASURES},
                "same_fit": sum(row["same_fit"] == "True" for row in found) / len(found),
            }
            for (dataset, method), found in group(
                rows, lambda row: (row["dataset"], row["method"])
            ).items()
        ]
    )


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=list(KERNELS), seeds=3)
    parser.add_argument("--draws", type=int, default=N_DRAWS, help="of each chain at least")
    small = {"datasets": ["airline", "power_plant"], "seeds": 1, "draws": 500}
    arguments = parse(parser, small=small)
    print_environment()
    units, any_commit = units_of(arguments), arguments.any_commit
    summarise(
        run_missing(NAME, units, partial(measure, n_jobs=arguments.jobs), any_commit=any_commit)
    )


if __name__ == "__main__":
    main()
