"""The cases of the MAP benchmarks: kernels on data sets, and the best log posterior known."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from common import RESULTS, environment  # isort: skip
from data import read_data  # isort: skip

import numpy as np

from autokernel import parse_expression
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import Expression
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import PRESETS

PRIORS = PRESETS["paper"]
"""Those of the published method, so that its defaults can be compared on the same posterior."""

_SERIES = (
    "SE[0]",
    "PER[0]",
    "RQ[0]",
    "LIN[0] + PER[0]",
    "LIN[0] * PER[0]",
    "SE[0] + PER[0]",
    "PER[0] * SE[0] + RQ[0]",
    "LIN[0] + PER[0] * SE[0]",
    "LIN[0] * PER[0] + SE[0]",
    "LIN[0] + PER[0] * SE[0] + SE[0]",
    "(LIN[0] + PER[0]) * SE[0] + RQ[0]",
    "LIN[0] * PER[0] * SE[0] + SE[0] + RQ[0]",
    "(SE[0] + PER[0] * LIN[0]) * (RQ[0] + LIN[0]) + SE[0]",
)
_TABLES = (
    "SE[0]",
    "RQ[1]",
    "SE[0] + SE[1]",
    "SE[0] * SE[3]",
    "LIN[0] * SE[1] + PER[2]",
    "SE[0] * RQ[1] + SE[2]",
    "(SE[0] + RQ[1]) * SE[3]",
    "SE[0] + SE[1] + SE[2] + SE[3]",
    "SE[0] * SE[1] * SE[2] * SE[3]",
    "(SE[0] + SE[1]) * (SE[2] + RQ[3])",
    "SE[0] * SE[1] + RQ[2] * SE[3] + SE[0]",
    "(SE[0] + RQ[1] * SE[2]) * (SE[3] + SE[0]) + RQ[3]",
)
_SIZES = (
    {"airline": 100, "mauna": 150, "solar": 200},
    {
        "concrete": 300,
        "airfoil": 150,
        "power_plant": 500,
    },
)
_FIELDS = ("dataset", "n_samples", "kernel", "log_posterior", "found_by", "theta", "commit")


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel on one data set."""

    dataset: str
    n_samples: int
    kernel: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What stands in the first columns of the CSV files."""
        return (self.dataset, str(self.n_samples), self.kernel)

    @property
    def expression(self) -> Expression:
        """The kernel as a tree."""
        return parse_expression(self.kernel)

    def data(self) -> TrainingData:
        """Draw rows with a fixed seed, scale the inputs and standardise the target."""
        return TrainingData(*_load(self.dataset, self.n_samples))

    def posterior(self) -> LogPosterior:
        """Build the log posterior."""
        return LogPosterior(ExactLikelihood(self.expression, self.data()), priors=PRIORS)


def cases(datasets: list[str] | None = None) -> Iterator[Case]:
    """Yield all cases, or those of some data sets."""
    for kernels, sizes in zip((_SERIES, _TABLES), _SIZES, strict=True):
        for dataset, n_samples in sizes.items():
            if datasets is None or dataset in datasets:
                for kernel in kernels:
                    yield Case(dataset, n_samples, kernel)


@lru_cache
def _load(dataset: str, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of a data set."""
    X, y = read_data(dataset)
    rows = np.random.default_rng(0).permutation(len(y))[:n_samples]
    return X[rows], (y[rows] - y[rows].mean()) / y[rows].std()


class BestKnown:
    """The best log posterior known of each case, kept in ``results/map_best_known.csv``."""

    path = RESULTS / "map_best_known.csv"

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], dict[str, str]] = {}
        if self.path.exists():
            with self.path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    self.rows[row["dataset"], row["n_samples"], row["kernel"]] = row

    def value(self, case: Case) -> float:
        """Best log posterior known in nats, ``-inf`` where none is."""
        row = self.rows.get(case.key)
        return -np.inf if row is None else float(row["log_posterior"])

    def update(self, case: Case, log_posterior: float, theta: np.ndarray, *, found_by: str) -> None:
        """Keep a point if it is better than what is known."""
        if log_posterior <= self.value(case) + 1e-6:
            return
        self.rows[case.key] = {
            **dict(zip(_FIELDS, case.key, strict=False)),
            "log_posterior": f"{log_posterior:.6f}",
            "found_by": found_by,
            "theta": json.dumps([round(float(t), 6) for t in theta]),
            "commit": environment()["commit"],
        }
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=_FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows.values())
