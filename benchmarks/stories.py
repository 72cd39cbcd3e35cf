"""Whether what a model says of data with a known truth is true, and how much of the truth it says.

The stories are those of tests/stories: data of one to forty columns, each with the facts that must
be claimed and those that may be. Precision is the share of claimed facts that are true, without
those that may be; recall is the share of true facts that are claimed. Every fit is one by defaults.
``stated`` holds each fact that is true or false with its probability, as ``probability:1`` or
``probability:0``; ``wrong`` the sentences of the description that the fitted model contradicts.

Rows go to results/stories.csv; those of the current commit are not measured again.

    python benchmarks/stories.py --seeds 10        # an hour and a half of CPU time
    python benchmarks/stories.py --small
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from common import (  # isort: skip
    Row,
    collect,
    group,
    make_parser,
    numbers,
    parse,
    print_table,
    rounded,
)

import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.stories.generators import STORIES, agrees, facts_of, story  # isort: skip
from tests.stories.reading import Reader  # isort: skip

NAME = "stories"  # of the CSV file
BINS = (0.0, 0.5, 0.7, 0.9, 1.0)  # of stated probabilities


@dataclass(frozen=True, slots=True)
class Telling:
    """What a row is measured for."""

    story: str
    seed: int


def measure(unit: Telling) -> Row:
    """Fit a story and compare what is claimed with what is true."""
    data = story(unit.story, unit.seed)
    model = AutoKernelGPRegressor(operators=data.operators, random_state=unit.seed)
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
        "fit_seconds": rounded(fitted - began),
        "describe_seconds": rounded(described - fitted),
    }


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print precision and recall, by story and over all, and how often probabilities hold."""
    for commit, of_commit in group(rows, lambda row: row["commit"]).items():
        print(f"\n{commit}")
        by_story = {**group(of_commit, lambda row: row["story"]), "all stories": list(of_commit)}
        table: list[Mapping[str, object]] = []
        for name, found in by_story.items():
            true, false, missed = (
                int(numbers(found, column).sum()) for column in ("n_true", "n_false", "n_missed")
            )
            seconds = numbers(found, "describe_seconds") / numbers(found, "fit_seconds")
            table.append(
                {
                    "story": name,
                    "fits": len(found),
                    "precision": true / (true + false) if true + false else np.nan,
                    "recall": true / (true + missed) if true + missed else np.nan,
                    "false": false,
                    "missed": missed,
                    "wrong sentences": int(numbers(found, "n_wrong").sum()),
                    "time of words": float(np.median(seconds)),
                }
            )
        print_table(table)
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
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=STORIES, seeds=10)
    arguments = parse(parser, small={"datasets": ["noise_only", "a_line"], "seeds": 1})
    units = [Telling(name, seed) for seed in range(arguments.seeds) for name in arguments.datasets]
    summarise(collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
