"""How far approximations are from exact fits, on tables that allow both.

A kernel is found without a search by an approximation, and the same kernel is then fitted exactly
to the same rows. ``rmse`` and ``nll`` are those of the approximate model on rows held out, in units
of the standard deviation of the target, ``rmse_exact`` and ``nll_exact`` those of the exact one.
``posterior`` is the log posterior per row that the approximation reports in nats,
``posterior_exact`` the exact one at its own best parameters, ``posterior_there`` the exact one at
the parameters of the approximation.

Rows go to results/approximations.csv.

    AUTOKERNEL_DATA=folder python benchmarks/approximations.py      # half an hour
    python benchmarks/approximations.py --small
"""

from dataclasses import dataclass
from typing import Any

from common import (  # isort: skip
    Row,
    make_parser,
    parse,
    print_environment,
    print_table,
    rounded,
    run_missing,
)
from runs import Prediction, Split, mean_nll, rmse  # isort: skip
from scaling import Unit as Drawn, draw_split  # isort: skip

from autokernel import AutoKernelGPRegressor
from autokernel.evidence.posterior import LogPosterior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import PRESETS

NAME = "approximations"  # of the CSV file
SETS = ["power_plant", "friedman", "temperature_full", "births_full"]


@dataclass(frozen=True, slots=True)
class Unit:
    """What a row is measured for."""

    dataset: str
    n_train: int
    method: str
    seed: int


def measure(unit: Unit) -> Row:
    """Fit by an approximation, and the same kernel exactly."""
    split = draw_split(Drawn(unit.dataset, unit.n_train, "", unit.seed))
    settings: dict[str, Any] = {"n_iter": 0, "averaging": None, "random_state": unit.seed}
    found = AutoKernelGPRegressor(approximation=unit.method, **settings)
    found.fit(split.X_train, split.y_train)
    exact = AutoKernelGPRegressor(approximation="exact", **settings)
    exact.refit(split.X_train, split.y_train, found.best_expression_)
    evaluation, best = found._fitted.evaluation, exact._fitted.evaluation
    likelihood = ExactLikelihood(evaluation.expression, training_data(exact))
    there = LogPosterior(likelihood, priors=dict(PRESETS["default"])).value(evaluation.theta)
    approximate, precise = predict(found, split), predict(exact, split)
    return {
        "rmse": rounded(rmse(approximate, split.y_test)),
        "rmse_exact": rounded(rmse(precise, split.y_test)),
        "nll": rounded(mean_nll(approximate, split.y_test)),
        "nll_exact": rounded(mean_nll(precise, split.y_test)),
        "posterior": rounded(evaluation.log_posterior / unit.n_train),
        "posterior_exact": rounded(best.log_posterior / unit.n_train),
        "posterior_there": rounded(there / unit.n_train),
        "approximation": found.approximation_,
        "kernel": found.best_expression_,
    }


def training_data(model: AutoKernelGPRegressor) -> TrainingData:
    """Return the rows of a fit in the units of the search."""
    mixture = model._fitted.mixture
    return TrainingData(mixture._X, mixture._y)


def predict(model: AutoKernelGPRegressor, split: Split) -> Prediction:
    """Predict the rows held out."""
    return Prediction(*model.predict(split.X_test, return_std=True))


def main() -> None:
    """Measure what is missing and print the table."""
    parser = make_parser(__doc__, datasets=SETS, seeds=1)
    parser.add_argument("--rows", type=int, default=2000)
    small = {"datasets": ["friedman"], "rows": 700}
    arguments = parse(parser, small=small)
    print_environment()
    units = [
        Unit(dataset, arguments.rows, method, seed)
        for seed in range(arguments.seeds)
        for dataset in arguments.datasets
        for method in ("inducing", "neighbours")
    ]
    rows = run_missing(NAME, units, measure, n_jobs=arguments.jobs)
    numeric = ("rmse", "rmse_exact", "nll", "nll_exact")
    posteriors = ("posterior", "posterior_exact", "posterior_there")
    print_table(
        [
            {
                "set": row["dataset"],
                "method": row["method"],
                **{name: float(row[name]) for name in (*numeric, *posteriors)},
                "predicts by": row["approximation"],
            }
            for row in rows
        ]
    )


if __name__ == "__main__":
    main()
