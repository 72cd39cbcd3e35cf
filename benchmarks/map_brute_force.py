"""Search the best log posterior of every MAP case by brute force.

Each case gets full runs from at least 200 varied starts: draws as the package makes them,
and draws that are log-uniform over far wider ranges, periods over four decades included. The best
is kept in results/map_best_known.csv; cases that have enough starts already are skipped.

    AUTOKERNEL_DATA=folder python benchmarks/map_brute_force.py
"""

import argparse

from common import append_rows, print_environment, read_rows  # isort: skip
from map_cases import BestKnown, Case, cases  # isort: skip

import numpy as np

from autokernel.evidence.maximise import maximise
from autokernel.evidence.starts import DataScales, draw_starts

WIDE = {  # natural ranges of the wide draws
    "lengthscale": (0.003, 10.0),
    "variance": (0.003, 10.0),
    "offset": (0.003, 10.0),
    "alpha": (0.03, 10.0),
    "period": (0.003, 5.0),
    "noise_variance": (1e-6, 1.0),
}


def brute_force(case: Case, n_starts: int) -> tuple[float, np.ndarray, int]:
    """Best log posterior, where it is, and how many starts end within 0.5 nats of it."""
    posterior = case.posterior()
    rng = np.random.default_rng(12345)
    usual = draw_starts(posterior, DataScales(case.data()), n_starts // 2, rng=rng)
    low, high = np.log([WIDE[parameter.name] for parameter in posterior.likelihood.parameters]).T
    wide = rng.uniform(low, high, size=(n_starts - len(usual), len(low)))
    modes = [maximise(posterior, start, max_iterations=400) for start in [*usual, *wide]]
    best = max(modes, key=lambda mode: mode.log_posterior)
    near = sum(mode.log_posterior > best.log_posterior - 0.5 for mode in modes)
    return best.log_posterior, best.theta, near


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--starts", type=int, default=200)
    arguments = parser.parse_args()
    print_environment()
    done = {
        (row["dataset"], row["n_samples"], row["kernel"])
        for row in read_rows("map_brute_force")
        if int(row["n_starts"]) >= arguments.starts
    }
    for case in cases(arguments.datasets):
        if case.key in done:
            continue
        value, theta, near = brute_force(case, arguments.starts)
        BestKnown().update(case, value, theta, found_by=f"{arguments.starts} starts")
        row = {
            **dict(zip(("dataset", "n_samples", "kernel"), case.key, strict=True)),
            "n_starts": arguments.starts,
            "log_posterior": round(value, 4),
            "starts_within_half_a_nat": near,
        }
        append_rows("map_brute_force", [row])
        print(*row.values(), sep="  ", flush=True)


if __name__ == "__main__":
    main()
