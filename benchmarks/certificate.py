"""Whether a kernel at a local maximum has no better neighbour.

A search that ends with ``local_maximum`` has fitted only the neighbours of its best kernel whose
estimates are promising. Here a second estimator fits every kernel one operation away: one base
kernel more at any place, exchanged, or removed. ``gain`` is what the best of them gains, in nats.

Rows go to results/certificate.csv. Rows up to 165f008 fitted the same neighbours inside the search.

    AUTOKERNEL_DATA=folder python benchmarks/certificate.py     # 60 fits, 40 minutes of CPU time
    python benchmarks/certificate.py --finished --any-commit
"""

from collections.abc import Iterator, Sequence

import common
import numpy as np
from common import Row, Rows, numbers
from seeds import SETS

from autokernel import AutoKernelGPRegressor, Expression, parse_expression

NAME = "certificate"  # of the CSV file
SMALL_GAIN = 0.1  # nats


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


def measure(dataset: str, seed: int) -> Row:
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


def summarise(rows: Rows) -> None:
    for commit, of_commit in common.group(rows, "commit").items():
        print(f"\n{commit}")
        ended = [row for row in of_commit if row["stop_reason"] == "local_maximum"]
        figures = {
            "fits": len,
            "neighbours": common.of(np.median, "n_neighbours"),
            f"gain above {SMALL_GAIN}": lambda found: int(
                (numbers(found, "gain") > SMALL_GAIN).sum()
            ),
            "largest gain": common.of(np.max, "gain"),
        }
        common.print_groups({**common.group(ended, "dataset"), "all sets": ended}, "set", figures)
        print(f"{len(of_commit) - len(ended)} of {len(of_commit)} searches ended otherwise")


def main() -> None:
    small = {"datasets": ["concrete 120"], "seeds": 1}
    arguments = common.options_of(__doc__, datasets=SETS, seeds=5, small=small)
    units = common.crossed(seed=range(arguments.seeds), dataset=arguments.datasets)
    summarise(common.collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
