"""How far the MAP search ends from the best log posterior known, and at what cost.

For every case of map_cases.py and 8 seeds: the regret (best known minus found, in nats), the spread
of the log evidence over the seeds, likelihood calls and seconds, for

- autokernel: a fit from nothing, as evaluate_kernel makes it, Hessian and evidence included;
- prior draws: L-BFGS from ten draws from the priors;
- perturbed mean: L-BFGS from ten small perturbations of the prior means, as the published code has
  it.

Whatever is better than the best known is kept there. Rows are appended to
results/map_reliability.csv; those that the current commit has already are not run again.

    AUTOKERNEL_DATA=folder python benchmarks/map_reliability.py
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable

from common import append_rows, keys_of_this_commit, print_environment, print_table, read_rows  # isort: skip
from map_cases import PRIORS, BestKnown, Case, cases  # isort: skip

import numpy as np
from scipy.optimize import minimize

from autokernel.evidence import Evaluator
from autokernel.evidence.posterior import LogPosterior

N_BASELINE_STARTS = 10
FAR_BELOW = 1e9  # nats, where K has no Cholesky factor
PERTURBATION = 0.1  # standard deviation of a log parameter
Finding = dict[str, object]


def autokernel_evaluation(case: Case, seed: int) -> tuple[Finding, np.ndarray]:
    """Evaluate as evaluate_kernel does."""
    data = case.data()
    fit = Evaluator(data, priors=PRIORS, seed=seed)(case.expression)
    found = {
        "log_posterior": fit.log_posterior,
        "log_evidence": fit.log_evidence,
        "n_evaluations": fit.n_evaluations,
        "seconds": fit.seconds,
        "status": fit.status,
    }
    return found, fit.theta


def prior_draws(posterior: LogPosterior, rng: np.random.Generator) -> np.ndarray:
    """Draw starts from the priors."""
    shape = (N_BASELINE_STARTS, len(posterior.lower))
    return posterior.prior.quantile(rng.uniform(size=shape))


def perturbed_mean(posterior: LogPosterior, rng: np.random.Generator) -> np.ndarray:
    """Draw starts around the prior means."""
    mean = np.log(posterior.prior.shape / posterior.prior.rate)
    return mean + PERTURBATION * rng.standard_normal((N_BASELINE_STARTS, len(mean)))


def baseline(
    starts: Callable[[LogPosterior, np.random.Generator], np.ndarray], case: Case, seed: int
) -> tuple[Finding, np.ndarray]:
    """Run L-BFGS from each start to its end, and take the best."""
    began = time.perf_counter()
    posterior = case.posterior()
    draws = starts(posterior, np.random.default_rng(seed))
    bounds = np.stack([posterior.lower, posterior.upper], axis=1)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = posterior.value_and_gradient(theta)
        return -max(value, -FAR_BELOW), -gradient

    ends = [
        minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
        for start in np.clip(draws, posterior.lower, posterior.upper)
    ]
    best = min(ends, key=lambda end: end.fun)
    found = {
        "log_posterior": -float(best.fun),
        "log_evidence": float("nan"),
        "n_evaluations": posterior.n_evaluations,
        "seconds": time.perf_counter() - began,
        "status": "ok",
    }
    return found, best.x


METHODS: dict[str, Callable[[Case, int], tuple[Finding, np.ndarray]]] = {
    "autokernel": autokernel_evaluation,
    "prior draws": lambda case, seed: baseline(prior_draws, case, seed),
    "perturbed mean": lambda case, seed: baseline(perturbed_mean, case, seed),
}


def run(arguments: argparse.Namespace) -> None:
    """Run what the current commit has not run yet."""
    fields = ("dataset", "n_samples", "kernel", "method", "seed")
    done = keys_of_this_commit("map_reliability", fields)
    for case in cases(arguments.datasets):
        rows = []
        for method in arguments.methods:
            for seed in range(arguments.seeds):
                key = (*case.key, method, str(seed))
                if key in done:
                    continue
                found, theta = METHODS[method](case, seed)
                if found["status"] == "ok":
                    value = float(str(found["log_posterior"]))
                    BestKnown().update(case, value, theta, found_by=f"{method}, seed {seed}")
                rows.append({**dict(zip(fields, key, strict=True)), **found})
        if rows:
            append_rows("map_reliability", rows)
            print(*case.key, flush=True)


def summarise(datasets: list[str] | None) -> None:
    """Print the table of each method over the rows of the newest commit."""
    rows = read_rows("map_reliability")
    known = BestKnown()
    commit = rows[-1]["commit"]
    wanted = {case.key: case for case in cases(datasets)}
    regrets, calls, seconds, spreads = (defaultdict(list) for _ in range(4))
    evidences = defaultdict(list)
    for row in rows:
        case = wanted.get((row["dataset"], row["n_samples"], row["kernel"]))
        if case is None or row["commit"] != commit:
            continue
        regrets[row["method"]].append(known.value(case) - float(row["log_posterior"]))
        calls[row["method"]].append(int(row["n_evaluations"]))
        seconds[row["method"]].append(float(row["seconds"]))
        evidences[row["method"], case.key].append(float(row["log_evidence"]))
    for (method, _), values in evidences.items():
        spreads[method].append(max(values) - min(values))
    print_table(
        [
            {
                "method": method,
                "runs": len(values),
                "regret<=0.5": _share_up_to(0.5, values),
                "regret<=3": _share_up_to(3.0, values),
                "median_regret": float(np.median(values)),
                "worst_regret": float(np.max(values)),
                "evidence_spread<=0.5": _share_up_to(0.5, spreads[method]),
                "median_calls": float(np.median(calls[method])),
                "median_seconds": float(np.median(seconds[method])),
            }
            for method, values in regrets.items()
        ]
    )


def _share_up_to(limit: float, values: list[float]) -> float:
    """Share of the values up to a limit, NaN where there are none."""
    finite = np.array(values)[np.isfinite(values)]
    return float(np.mean(finite <= limit)) if len(finite) else float("nan")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    print_environment()
    run(arguments)
    summarise(arguments.datasets)


if __name__ == "__main__":
    main()
