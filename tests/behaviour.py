"""Twelve small searches whose results are kept, so that a change of behaviour is a decision.

``python tests/behaviour.py`` prints the digests of the code as it is; ``--write`` keeps them in
 ``behaviour.json``, beside the environment in which they were computed: other versions of the
libraries, or another processor, round in other ways. ``test_behaviour.py`` compares.
"""

import argparse
import hashlib
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from joblib import parallel_config
from threadpoolctl import threadpool_info

from autokernel import BOMS, SOT, AutoKernelGPRegressor
from autokernel.datasets._bundled import load_airline

KEPT = Path(__file__).with_suffix(".json")
TIMES = ("fit_seconds", "proposal_seconds", "elapsed")
SHORT = {"n_iter": 5, "max_leaves": 4, "random_state": 0}
FEW = {"base_kernels": ("SE", "LIN")}

CASES = {
    "sot, one column": (1, 40, {"n_iter": 10, "max_leaves": 6}),
    "boms, one column": (1, 40, {"strategy": BOMS(n_walks=4, initial_design="paper")}),
    "arc, two columns": (2, 30, {"strategy": "arc", **FEW}),
    "greedy, bic, one column": (1, 40, {"strategy": "greedy", "criterion": "bic", "n_iter": 15}),
    "tree_gep, two columns": (2, 30, {"strategy": "tree_gep", **FEW}),
    "random, paper's priors, five columns": (
        5,
        30,
        {"strategy": "random", "priors": "paper", "base_kernels": ("SE",)},
    ),
    "sot, importance, one column": (1, 30, {"criterion": "importance", **FEW}),
    "sot, cv, two columns": (2, 30, {"criterion": "cv", **FEW, "n_iter": 3}),
    "sot, five columns, two workers": (
        5,
        25,
        {"strategy": SOT(initial_design="paper"), "max_leaves": 3, "n_jobs": 2, "batch_size": 2},
    ),
    "boms, two columns, resumed from memory": (2, 25, {"strategy": "boms", **FEW}),
    "greedy, loo, five columns": (
        5,
        25,
        {"strategy": "greedy", "criterion": "loo", "base_kernels": ("SE", "LIN")},
    ),
    "sot, thompson, 300 rows of one column": (
        1,
        300,
        {"acquisition": "thompson", "base_kernels": ("SE", "PER"), "max_leaves": 2, "n_iter": 2},
    ),
}


def environment() -> dict[str, str]:
    """What the last bit of a result depends on, beside the code."""
    blas = {one.get("architecture", "") for one in threadpool_info() if one["user_api"] == "blas"}
    return {
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "blas": ", ".join(sorted(f"{name}" for name in blas)),
    }


def data(n_features: int, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Build the data of a case: a part of the airline series, or a function of some columns."""
    if n_features == 1 and n_samples <= 144:
        X, y = load_airline(return_X_y=True)
        return X[:n_samples], y[:n_samples]
    rng = np.random.default_rng(n_features)
    X = rng.uniform(size=(n_samples, n_features))
    y = np.sin(25 * X[:, 0]) + 2 * X[:, -1] ** 2 + 0.2 * rng.normal(size=n_samples)
    return X, y


def run(name: str) -> dict[str, object]:
    """Run one case; return what is compared."""
    n_features, n_samples, settings = CASES[name]
    X, y = data(n_features, n_samples)
    model = AutoKernelGPRegressor(**{**SHORT, **settings})
    if "memory" in name:
        with tempfile.TemporaryDirectory() as folder:
            model.set_params(memory=folder, n_iter=2).fit(X, y)
            model.set_params(n_iter=SHORT["n_iter"]).fit(X, y)
    else:
        with parallel_config(backend="loky"):
            model.fit(X, y)
    history = {key: column for key, column in model.search_history_.items() if key not in TIMES}
    rows = [
        " | ".join(v.hex() if isinstance(v, float) else str(v) for v in row)
        for row in zip(*(column.tolist() for column in history.values()), strict=True)
    ]
    design = history["kernel"][history["phase"] == "initial"]
    return {
        "bits": _digest([*history, *rows]),
        "design": _digest(design),
        "best_score": round(model.best_score_, 3),
    }


def _digest(lines: list[str]) -> str:
    """Digest of some lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def main() -> None:
    """Run all cases, or some; print or keep their digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"keep the results in {KEPT.name}")
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {"cases": {}}
    found = {}
    for name in options.cases:
        began = time.perf_counter()
        found[name] = run(name)
        seconds = time.perf_counter() - began
        verdict = "as kept" if kept["cases"].get(name) == found[name] else "OTHER THAN KEPT"
        print(f"{seconds:6.1f} s  {name}: {found[name]}, {verdict}", flush=True)
    if options.write:
        everything = {"environment": environment(), "cases": {**kept["cases"], **found}}
        KEPT.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
