"""How good the kernels are that a default search finds: four questions, each with its own file.

- ``seeds``: how much the result depends on the seed, and on rounding. Twelve sets of 100 to 200
  rows, which are chosen once. The same seed rounds otherwise with ``OPENBLAS_CORETYPE=Haswell``,
  which is a column of the file. A run agrees if its score is within half a nat of the best that any
  row has for its set. ``--datasets`` also takes four tables with categories of tables.py, of 123 to
  180 rows. Rows with a limit of time, or with ``right``, are of six cases by a program of 03b29bbd;
  tests/stories has data like theirs. The tables are of all versions that have rows.
- ``certificate``: whether a kernel at a local maximum has no better neighbour. A search that ends
  with ``local_maximum`` has fitted only the neighbours of its best kernel whose estimates are
  promising. Here a second estimator fits every kernel one operation away: one base kernel more at
  any place, exchanged, or removed. ``gain`` is what the best of them gains, in nats. Rows up to
  165f008 fitted the same neighbours inside the search.
- ``left_to_gain``: what a search that has ended could still gain, compared with what it says by
  ``expected_improvement_``. Two searches make the same steps and then go on for 30 kernels: one
  with the kernels of the highest acquisition value, and one with random jumps, two or three
  operations away from the best kernels, of which ten are estimated for each that is fitted. After a
  gain both climb on. A third one ends where the climb ends. The tables show what was expected and
  gained, by quintiles of what was expected, and the gains by the acquisition less those by jumps.
  The noise is constant, and all rows are used, so that scores compare. Half of the fits are of
  drawn structures, with other seeds, the others of the sets of ``seeds``.
- ``drawn_structures``: whether kernels are as good as the structures that drew the data. Each is a
  structure of two to four columns, of which ``g`` and ``h`` are categories of two to four levels. A
  table of 150 rows is drawn from it: the size of each term, the lengthscales, periods and offsets,
  and the noise are drawn as well. ``lost`` is what the best kernel lacks of the score of the
  structure, in nats; less than zero if it is better.

Rows go to results/QUESTION.csv.

    AUTOKERNEL_DATA=folder python benchmarks/default_search.py --questions seeds   # one CPU hour
    python benchmarks/default_search.py --questions drawn_structures               # 15 minutes
    python benchmarks/default_search.py --finished --any-commit
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import common
import numpy as np
import numpy.typing as npt
import pandas as pd
from calibration import covariance_of, names_of_parameters
from common import Row, Rows, group, numbers, standard_error
from data import draw_split
from tables import CATEGORICAL, load_table

from autokernel import AutoKernelGPRegressor, Expression, parse_expression
from autokernel.evidence import Estimate
from autokernel.search import SOT

CLOSE, NEAR, FAR = 0.5, 1.0, 2.0  # nats below the best score known
SMALL_GAIN = 0.1  # nats
N_MORE = 30  # kernels
N_ESTIMATED = 10  # random kernels for each that is fitted
SEED_OF_DRAWN = 100  # the first of the drawn structures of left_to_gain
N_ROWS = 150  # of a drawn structure
N_UNIFORM = 100  # rows of :func:`draw_kernel`
LOW_HIGH = {  # ranges of its parameters, which so many uniform rows can show
    "lengthscale": (0.1, 0.3), "period": (0.08, 0.25), "variance": (0.5, 2.0),
    "offset": (0.1, 0.5), "alpha": (0.2, 0.5),
}  # fmt: skip
IN_A_CYCLE = (0.4, 1.0)  # range of the lengthscale of a kernel that has a period
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

Data = tuple[npt.ArrayLike, np.ndarray]


def draw_kernel(kernel: str, seed: int) -> Data:
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


def draw_structure(kind: str, seed: int) -> Data:
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


def rows_of(dataset: str, n_rows: int) -> Data:
    split = draw_split(dataset, 0, n_train=n_rows)
    return split.X, split.y


N_OF_SET = {
    "airline": (100, 144), "mauna": (200,), "solar": (200,), "call_centre": (180,),
    "gas_production": (150,), "power_plant": (150,), "airfoil": (150,), "concrete": (120,),
    "boston_housing": (120,),
}  # fmt: skip
SEED_OF_KERNEL = {"LIN[0] + PER[0] * SE[1]": 4, "LIN[0] * PER[1] + SE[0] * SE[1]": 3}
"""Draws on which a search has found less than the truth."""
REAL = {f"{name} {n}": partial(rows_of, name, n) for name, ns in N_OF_SET.items() for n in ns}
SETS: Mapping[str, Callable[[], Data]] = {
    **REAL,
    **{kernel: partial(draw_kernel, kernel, seed) for kernel, seed in SEED_OF_KERNEL.items()},
}
TABLES: Mapping[str, Callable[[], Data]] = {name: partial(load_table, name) for name in CATEGORICAL}


def timed_fit(model: AutoKernelGPRegressor, X: npt.ArrayLike, y: np.ndarray) -> float:
    """Fit, and return the CPU seconds."""
    began = time.process_time()
    model.fit(X, y)
    return time.process_time() - began


def measure_seed(dataset: str, seed: int, max_time: float, coretype: str) -> Row:
    model = AutoKernelGPRegressor(random_state=seed)
    return {
        "cpu_seconds": timed_fit(model, *{**SETS, **TABLES}[dataset]()),
        "score": model.best_score_,
        "kernel": model.best_expression_,
        "n_kernels": len(model.search_history_["score"]),
        "stop_reason": model.stop_reason_,
        "right": "",
    }


def print_seeds(rows: Rows) -> None:
    best = {name: numbers(found, "score").max() for name, found in group(rows, "dataset").items()}

    def below(found: Rows) -> np.ndarray:
        return np.array([best[row["dataset"]] - float(row["score"]) for row in found])

    def best_known(found: Rows) -> object:
        names = list(group(found, "dataset"))
        return float(best[names[0]]) if len(names) == 1 else ""

    figures = {
        "runs": len,
        "best known": best_known,
        **{
            f"within {nats}": lambda found, nats=nats: float(np.mean(below(found) <= nats))
            for nats in (CLOSE, NEAR, FAR)
        },
        "most below": lambda found: float(below(found).max()),
        "CPU s": common.of(np.median, "cpu_seconds"),
    }
    for (commit, coretype), own in group(rows, "commit", "coretype").items():
        print(f"\n{commit}, {coretype}")
        common.print_groups({**group(own, "dataset"), "all": own}, "set", figures)


def neighbours(kernel: Expression, leaves: Sequence[str]) -> Iterator[str]:
    """Yield the kernels one operation away, also those of another normal form."""
    yield from (f"({kernel}) {symbol} {leaf}" for symbol in "+*" for leaf in leaves)
    operands = getattr(kernel, "operands", ())
    if not operands:
        yield from leaves
    for number, operand in enumerate(operands):
        others = [f"({other})" for at, other in enumerate(operands) if at != number]
        joint = f" {kernel.operator.symbol} "
        if operand.n_leaves == 1:
            yield joint.join(others)
        yield from (joint.join([*others, f"({one})"]) for one in neighbours(operand, leaves))


def measure_neighbours(dataset: str, seed: int) -> Row:
    X, y = SETS[dataset]()
    model = AutoKernelGPRegressor(random_state=seed).fit(X, y)
    prefix, tilde, best = model.best_expression_.rpartition("~ ")
    tried = [parse_expression(text) for text in model.search_history_["kernel"]]
    leaves = sorted({str(leaf) for kernel in tried for leaf in kernel.leaves})
    found = neighbours(parse_expression(best), leaves)
    known = dict.fromkeys(f"{prefix}{tilde}{parse_expression(text).canonical}" for text in found)
    start = [model.best_expression_, *known]
    again = AutoKernelGPRegressor(start_kernel=start, n_iter=0, random_state=seed).fit(X, y)
    history = again.search_history_
    others = history["kernel"] != model.best_expression_
    first = int(np.argmax(np.where(others, history["score"], -np.inf)))
    return {
        "score": model.best_score_,
        "kernel": model.best_expression_,
        "stop_reason": model.stop_reason_,
        "n_neighbours": len(known),
        "gain": history["score"][first] - model.best_score_,
        "neighbour": history["kernel"][first],
    }


def print_neighbours(rows: Rows) -> None:
    ended = [row for row in rows if row["stop_reason"] == "local_maximum"]
    figures = {
        "fits": len,
        "neighbours": common.of(np.median, "n_neighbours"),
        f"gain above {SMALL_GAIN}": common.of(lambda gain: np.sum(gain > SMALL_GAIN), "gain"),
        "largest gain": common.of(np.max, "gain"),
    }
    common.print_groups({**group(ended, "dataset"), "all sets": ended}, "set", figures)
    print(f"{len(rows) - len(ended)} of {len(rows)} searches ended otherwise")


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


def measure_gain(dataset: str, seed: int) -> Row:
    is_drawn = dataset in KINDS
    data = draw_structure(dataset, SEED_OF_DRAWN + seed) if is_drawn else SETS[dataset]()
    model = AutoKernelGPRegressor(noise="constant", outliers=None, random_state=seed)
    seconds = timed_fit(model, *data)
    row = {
        "expected": model.expected_improvement_,
        "stop_reason": model.stop_reason_,
        "cpu_seconds": seconds,
        "n_searched": model.n_iter_,
    }
    best, more = model.best_score_, model.n_iter_ + N_MORE
    others = {"climb": (Climbs(), 50), "acquisition": (GoesOn(), more), "jumps": (Jumps(), more)}
    for name, (strategy, n_iter) in others.items():
        seconds = timed_fit(model.set_params(strategy=strategy, n_iter=n_iter), *data)
        row[f"gain_{name}"] = model.best_score_ - best
        row[f"cpu_seconds_{name}"] = seconds
    return row


def print_gains(rows: Rows) -> None:
    expected, by_acquisition, by_jumps = (
        numbers(rows, name) for name in ("expected", "gain_acquisition", "gain_jumps")
    )
    gain = np.maximum(by_acquisition, by_jumps)
    print(f"{len(rows)} fits, CPU s {np.median(numbers(rows, 'cpu_seconds')):.1f}")
    parts = np.array_split(np.argsort(expected), min(5, len(rows)))
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
    outer = -numbers(rows, "gain_climb")
    cpu = numbers(rows, "cpu_seconds") / numbers(rows, "cpu_seconds_climb")
    print(
        f"less without the outer loop: {outer.mean():.3f} nats, in {np.sum(outer > 0.01)} fits "
        f"more than .01; it takes {100 * np.median(cpu) - 100:.1f} % of the time"
    )
    less = by_acquisition - by_jumps
    print(
        f"30 kernels by the acquisition: {by_acquisition.mean():.3f} nats, by jumps: "
        f"{by_jumps.mean():.3f}; difference {less.mean():.3f} +- {standard_error(less):.3f}"
    )


def measure_structure(kind: str, seed: int) -> Row:
    X, y = draw_structure(kind, seed)
    model = AutoKernelGPRegressor(random_state=seed)
    seconds = timed_fit(model, X, y)
    truth = AutoKernelGPRegressor(random_state=seed).refit(X, y, kernel=kind)
    return {
        "lost": truth.best_score_ - model.best_score_,
        "cpu_seconds": seconds,
        "n_kernels": len(model.search_history_["score"]),
        "kernel": model.best_expression_,
        "stop_reason": model.stop_reason_,
        "expected_improvement": model.expected_improvement_,
    }


def print_structures(rows: Rows) -> None:
    lost, seconds = numbers(rows, "lost"), numbers(rows, "cpu_seconds")
    print(
        f"{np.sum(lost <= CLOSE)} of {len(rows)} tables lost at most {CLOSE} nats, "
        f"{np.sum(lost > FAR)} more than two; CPU s: median {np.median(seconds):.1f}, "
        f"90 % {np.quantile(seconds, 0.9):.1f}"
    )
    shown = ("kind", "seed", "lost", "cpu_seconds", "kernel")
    far = [row for row, nats in zip(rows, lost, strict=True) if nats > CLOSE]
    common.print_table(
        [{name: row[name] for name in shown} for row in far] or [{"lost more": "none"}]
    )


QUESTIONS = {  # by the names of the files: how a row is measured, its data, and how many seeds
    "seeds": (measure_seed, [*SETS, *TABLES], 10),
    "certificate": (measure_neighbours, [*SETS], 5),
    "left_to_gain": (measure_gain, [*KINDS[::3], *KINDS[1::3], *KINDS[2::6], *REAL], 2),
    "drawn_structures": (measure_structure, KINDS, 5),
}
PRINTED = {
    "certificate": print_neighbours,
    "left_to_gain": print_gains,
    "drawn_structures": print_structures,
}


def main() -> None:
    arguments = common.options_of(
        __doc__, questions=list(QUESTIONS), datasets=[*SETS, *KINDS], by_name=TABLES, seeds=0,
        small={"datasets": ["concrete 120", *KINDS[:2]], "seeds": 1},
    )  # fmt: skip
    for question in arguments.questions:
        measure, datasets, n_seeds = QUESTIONS[question]
        chosen = [name for name in datasets if name in arguments.datasets]
        if not chosen:
            continue
        what = "kind" if question == "drawn_structures" else "dataset"
        units = common.crossed(seed=range(arguments.seeds or n_seeds), **{what: chosen})
        if question == "seeds":
            coretype = os.environ.get("OPENBLAS_CORETYPE", "native")
            units = [unit | {"max_time": math.inf, "coretype": coretype} for unit in units]
        rows = common.collect(question, units, measure, arguments)
        if question == "seeds":  # the best known score is that of all versions
            print_seeds([row for row in common.read_rows(question) if row["dataset"] in chosen])
            continue
        for commit, own in group(rows, "commit").items():
            print(f"\n{commit}")
            PRINTED[question](own)


if __name__ == "__main__":
    main()
