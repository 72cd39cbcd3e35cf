"""What a search that has ended could still gain, compared with what it says.

A default search ends when no kernel is expected to gain ``tol``; ``expected_improvement_`` is the
largest such expectation. Here two searches make the same steps and then go on for 30 kernels: one
with the kernels of the highest acquisition value, and one with random jumps, two or three
operations away from the best kernels, of which ten are estimated for each that is fitted. After a
gain both climb on. A third one ends where the climb ends. The tables show what was expected and
gained, by quintiles of what was expected, and the gains by the acquisition less those by jumps with
their standard error.

Half of the fits are of drawn structures (see drawn_structures.py, with other seeds), the others of
the sets of seeds.py. The noise is constant, and all rows are used, so that scores compare. Rows go
to results/left_to_gain.csv.

    AUTOKERNEL_DATA=folder python benchmarks/left_to_gain.py     # 70 fits, an hour of CPU time
    python benchmarks/left_to_gain.py --finished --any-commit
"""

import time
from dataclasses import replace
from typing import Any

import common
import numpy as np
from common import Row, Rows, numbers, standard_error
from drawn_structures import KINDS, drawn
from seeds import N_OF_SET, SETS

from autokernel import AutoKernelGPRegressor
from autokernel.evidence import Estimate
from autokernel.search import SOT

NAME = "left_to_gain"  # of the CSV file
N_MORE = 30  # kernels
N_ESTIMATED = 10  # random kernels for each that is fitted
SEED_OF_DRAWN = 100  # the first
DRAWN = KINDS[::3] + KINDS[1::3] + KINDS[2::6]
REAL = tuple(f"{name} {n}" for name, sizes in N_OF_SET.items() for n in sizes)


class Climbs(SOT):
    """Ends where the climb ends."""

    def propose_far(self, *data: Any, **settings: Any) -> list[Estimate]:  # noqa: ARG002
        return []


class GoesOn(SOT):
    """Proposes a kernel also where none is expected to gain anything."""

    def propose_far(self, *data: Any, **settings: Any) -> list[Estimate]:
        return [replace(one, expected=np.inf) for one in super().propose_far(*data, **settings)]


class Jumps(SOT):
    """Proposes random kernels near the best ones, those of the highest estimate first."""

    def propose_far(
        self, task: Any, history: Any, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Estimate]:
        fits, known = history.best_first()[:10], history.canonical_texts()
        walks = [
            task.grammar.random_walk(fits[n % len(fits)].expression, 2 + n % 2, rng)
            for n in rng.permutation(3 * N_ESTIMATED)
        ]
        new = {one.canonical: one for one in walks if one.canonical not in known}
        estimates = task.farther(fits[0], [*new.values()][:N_ESTIMATED], history)
        return [replace(one, expected=np.inf) for one in estimates[:n_proposals]]


def measure(dataset: str, seed: int) -> Row:
    X, y = drawn(dataset, SEED_OF_DRAWN + seed) if dataset in KINDS else SETS[dataset]()
    fixed = AutoKernelGPRegressor(noise="constant", outliers=None, random_state=seed)
    began = time.process_time()
    model = fixed.fit(X, y)
    row = {
        "expected": model.expected_improvement_,
        "stop_reason": model.stop_reason_,
        "cpu_seconds": time.process_time() - began,
        "n_searched": model.n_iter_,
    }
    best, more = model.best_score_, model.n_iter_ + N_MORE
    others = {"climb": (Climbs(), 50), "acquisition": (GoesOn(), more), "jumps": (Jumps(), more)}
    for name, (strategy, n_iter) in others.items():
        began = time.process_time()
        model = fixed.set_params(strategy=strategy, n_iter=n_iter).fit(X, y)
        row[f"gain_{name}"] = model.best_score_ - best
        row[f"cpu_seconds_{name}"] = time.process_time() - began
    return row


def summarise(rows: Rows) -> None:
    for commit, found in common.group(rows, "commit").items():
        expected, by_acquisition, by_jumps = (
            numbers(found, name) for name in ("expected", "gain_acquisition", "gain_jumps")
        )
        gain = np.maximum(by_acquisition, by_jumps)
        print(
            f"\n{commit}: {len(found)} fits, CPU s {np.median(numbers(found, 'cpu_seconds')):.1f}"
        )
        parts = np.array_split(np.argsort(expected), min(5, len(found)))
        common.print_table(
            [
                {
                    "fits": len(part),
                    "expected of one kernel, up to": float(expected[part].max()),
                    "gained by 60": float(gain[part].mean()),
                    "most": float(gain[part].max()),
                    "fits with a gain above .05": int(np.sum(gain[part] > 0.05)),
                }
                for part in parts
            ]
        )
        outer = -numbers(found, "gain_climb")
        cpu = numbers(found, "cpu_seconds") / numbers(found, "cpu_seconds_climb")
        print(
            f"less without the outer loop: {outer.mean():.3f} nats, in {np.sum(outer > 0.01)} fits "
            f"more than .01; it takes {100 * np.median(cpu) - 100:.1f} % of the time"
        )
        less = by_acquisition - by_jumps
        print(
            f"30 kernels by the acquisition: {by_acquisition.mean():.3f} nats, by jumps: "
            f"{by_jumps.mean():.3f}; difference {less.mean():.3f} +- {standard_error(less):.3f}"
        )


def main() -> None:
    small = {"datasets": DRAWN[:2], "seeds": 1}
    arguments = common.options_of(__doc__, datasets=(*DRAWN, *REAL), seeds=2, small=small)
    units = common.crossed(seed=range(arguments.seeds), dataset=arguments.datasets)
    summarise(common.collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
