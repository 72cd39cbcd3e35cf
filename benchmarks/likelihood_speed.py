"""Speed of one log likelihood and gradient against scikit-learn's, and the share of LAPACK in it.

For 1, 3 and 5 leaves at n = 100 to 1000: the median over repeats of one call of each, taken in turn
in one run with BLAS on one thread, and the part of ours that its four LAPACK calls (dpftrf, dpftri,
dpftrs, dsfrk with one column) take on their own. Results are appended to
results/likelihood_speed.csv.

    python benchmarks/likelihood_speed.py
"""

import argparse

from common import append_rows, print_environment, print_table, seconds_of  # isort: skip

import numpy as np
from scipy.linalg.lapack import dpftrf, dpftri, dpftrs, dsfrk, dtrttf
from sklearn.gaussian_process import GaussianProcessRegressor

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.inference import ExactLikelihood, TrainingData

KERNELS = {
    1: "SE[0]",
    3: "LIN[0] * PER[0] + SE[0]",
    5: "LIN[0] * PER[0] * SE[0] + RQ[0] * SE[1]",
}
N_FEATURES = 2
N_ROWS_OF_KERNEL = 60  # to fit the parameters at which scikit-learn is timed


def measure(n_leaves: int, n: int, repeats: int) -> dict[str, object]:
    """Time one case; the repeats of the three parts alternate."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(n, N_FEATURES)), rng.normal(size=n)
    likelihood = ExactLikelihood(parse_expression(KERNELS[n_leaves]), TrainingData(X, y))
    theta = rng.normal(-1.0, 0.3, size=len(likelihood.parameters))
    theta[-1] = np.log(0.1)
    model = AutoKernelGPRegressor(column_scales=None, averaging=None, random_state=0)
    kernel = model.refit(X[:N_ROWS_OF_KERNEL], y[:N_ROWS_OF_KERNEL], KERNELS[n_leaves]).best_kernel_
    gpr = GaussianProcessRegressor(kernel=kernel, optimizer=None, alpha=0).fit(X, y)
    packed, _ = dtrttf(kernel(X), uplo="L")

    def lapack() -> None:
        factor, _ = dpftrf(n, packed.copy(), uplo="L", overwrite_a=1)
        alpha, _ = dpftrs(n, factor, y[:, None], uplo="L")
        inverse, _ = dpftri(n, factor, uplo="L", overwrite_a=1)
        dsfrk(n, 1, 1.0, alpha, -1.0, inverse, uplo="L", overwrite_c=1)

    calls = {
        "ours": lambda: likelihood.value_and_gradient(theta),
        "sklearn": lambda: gpr.log_marginal_likelihood(kernel.theta, eval_gradient=True),
        "lapack": lapack,
    }
    times = {name: np.zeros(repeats) for name in calls}
    for repeat in range(repeats):
        for name, call in calls.items():
            times[name][repeat] = seconds_of(call)
    return {
        "n_leaves": n_leaves,
        "n_params": len(theta),
        "n_samples": n,
        "ours_ms": 1e3 * float(np.median(times["ours"])),
        "sklearn_ms": 1e3 * float(np.median(times["sklearn"])),
        "speed_up": float(np.median(times["sklearn"] / times["ours"])),
        "lapack_share": float(np.median(times["lapack"] / times["ours"])),
    }


def main() -> None:
    """Measure all cases, print the table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 200, 500, 1000])
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    print_environment()
    rows = [measure(k, n, arguments.repeats) for k in KERNELS for n in arguments.sizes]
    print_table(rows)
    print(append_rows("likelihood_speed", rows))


if __name__ == "__main__":
    main()
