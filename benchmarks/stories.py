"""Whether what a model says of data with a known truth is true, and how much of the truth it says.

The stories are those of tests/stories: data of one to forty columns, each with the facts that must
be claimed and those that may be. Precision is the share of claimed facts that are true, without
those that may be; recall is the share of true facts that are claimed. Every fit is one by defaults.
``stated`` holds each fact that is true or false with its probability, as ``probability:1`` or
``probability:0``; ``wrong`` the sentences of the description that the fitted model contradicts.

Rows go to results/stories.csv.

    python benchmarks/stories.py --seeds 10        # an hour and a half of CPU time
    python benchmarks/stories.py --small
"""

import sys
import time
from itertools import pairwise

import common
import numpy as np
import pandas as pd
from common import Row, Rows, group, numbers

from autokernel import AutoKernelGPRegressor

sys.path.insert(0, str(common.TOP))
from tests.stories import generators  # isort: skip
from tests.stories.generators import STORIES, agrees, facts_of  # isort: skip
from tests.stories.reading import Reader  # isort: skip

NAME = "stories"  # of the CSV file
BINS = (0.0, 0.5, 0.7, 0.9, 1.0)  # of stated probabilities


def measure(story: str, seed: int) -> Row:
    data = generators.story(story, seed)
    model = AutoKernelGPRegressor(operators=data.operators, random_state=seed)
    began = time.process_time()
    model.fit(data.X, data.y)
    fitted = time.process_time()
    claims = pd.DataFrame(model.claims_)
    described = time.process_time()
    facts = dict(facts_of(claims))
    decided = {fact: agrees(fact, data.true) for fact in facts if not agrees(fact, data.optional)}
    made = frozenset(facts)
    missed = [fact for fact in data.true if not agrees(fact, made)]
    wrong = list(Reader(model, data.X, data.y).wrong())
    return {
        "n_true": sum(decided.values()),
        "n_false": sum(not is_true for is_true in decided.values()),
        "n_missed": len(missed),
        "false": "; ".join(str(fact) for fact, is_true in decided.items() if not is_true),
        "missed": "; ".join(map(str, missed)),
        "n_wrong": len(wrong),
        "wrong": " | ".join(wrong),
        "stated": " ".join(f"{facts[fact]:.3f}:{int(ok)}" for fact, ok in decided.items()),
        "kernel": model.best_expression_,
        "fit_seconds": fitted - began,
        "describe_seconds": described - fitted,
    }


def summarise(rows: Rows) -> None:

    def count(name: str) -> common.Figure:
        return lambda found: int(numbers(found, name).sum())

    def share(missing: str) -> common.Figure:
        def figure(found: Rows) -> float:
            true, other = count("n_true")(found), count(missing)(found)
            return true / (true + other) if true + other else np.nan

        return figure

    figures = {
        "fits": len,
        "precision": share("n_false"),
        "recall": share("n_missed"),
        "false": count("n_false"),
        "missed": count("n_missed"),
        "wrong sentences": count("n_wrong"),
        "time of words": lambda found: float(
            np.median(numbers(found, "describe_seconds") / numbers(found, "fit_seconds"))
        ),
    }
    for commit, of_commit in group(rows, "commit").items():
        print(f"\n{commit}")
        groups = {**group(of_commit, "story"), "all stories": of_commit}
        common.print_groups(groups, "story", figures)
        pairs = [pair.split(":") for row in of_commit for pair in row["stated"].split()]
        stated, held = np.array(pairs, dtype=float).T
        for low, high in pairwise(BINS):
            inside = (stated > low) & (stated <= high)
            if inside.any():
                mean, n = held[inside].mean(), int(inside.sum())
                error = np.sqrt(mean * (1 - mean) / n)
                print(
                    f"stated {low} to {high} ({stated[inside].mean():.3f} on average): "
                    f"{mean:.3f} ± {error:.3f} of {n} are true"
                )


def main() -> None:
    small = {"datasets": ["noise_only", "a_line"], "seeds": 1}
    arguments = common.options_of(__doc__, datasets=STORIES, seeds=10, small=small)
    units = common.crossed(seed=range(arguments.seeds), story=arguments.datasets)
    summarise(common.collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
