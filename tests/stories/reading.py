"""Reads a description sentence by sentence, and checks each one against the fitted model.

A reader knows the model by ``predict``, ``decompose``, tables and the data, not by how the words
are made. Columns are numbers.
"""

import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor

N = r"(?P<n>-?[\d.]+(?:e[+-]?\d+)?)"
UNIT = r"(?: [^\d(),.;]+?)?"
RANGE = r"(?: \((?P<low>-?[\d.e+-]+) to (?P<high>-?[\d.e+-]+)\))?"
PERHAPS = r"(?:, with a probability of (?P<perhaps>[01]\.\d+))?"
N_GRID, AHEAD = 65, 0.25  # points of a curve, and extents beyond the data
Match = re.Match[str]


class Reader:
    """The data, the fitted function, and the paragraph that is read."""

    def __init__(self, model: AutoKernelGPRegressor, X: pd.DataFrame, y: pd.Series) -> None:
        self.model, self.X, self.y = model, X, y.to_numpy()
        self.components = [one for one in model.decompose(X).components if one.expression]
        self.number, self.period = 0, 0.0  # of the component, and of a season in its paragraph

    def wrong(self) -> Iterator[str]:
        """Yield each sentence that no template has, or that the model contradicts."""
        for paragraph in self.model.describe().split("\n\n"):
            numbered = re.match(r"(\d+)\. ", paragraph)
            self.number = int(numbered[1]) - 1 if numbered else -1
            season = re.search(rf"repeats every {N}", paragraph)
            self.period = float(season["n"]) if season else 0.0
            text = paragraph[numbered.end() :] if numbered else paragraph
            for sentence in re.split(r"(?<=\.) (?=[A-Z])", text):
                matches = ((re.fullmatch(pattern, sentence), check) for pattern, check in SENTENCES)
                match, check = next(((m, c) for m, c in matches if m), (None, None))
                if match is None:
                    yield f"unknown: {sentence}"
                elif not check(self, match):
                    yield f"false: {sentence}"

    def along(self, name: str, places: np.ndarray, **fixed: float) -> np.ndarray:
        """Compute the component of this paragraph along a column, the others at their medians."""
        frame = pd.DataFrame([{**self.X.median(), **fixed}] * len(places)).assign(**{name: places})
        found = self.model.decompose(frame[self.X.columns]).components
        expression = self.components[self.number].expression
        return next(one.mean for one in found if one.expression == expression)

    def curve(self, name: str, **fixed: float) -> tuple[np.ndarray, np.ndarray]:
        """Compute a curve over the data, averaged over the period of a wave around it."""
        x = np.linspace(self.X[name].min(), self.X[name].max(), N_GRID)
        if not self.period:
            return x, self.along(name, x, **fixed)
        cycle = (np.arange(16) + 0.5) / 16 * self.period
        starts = np.linspace(x[0], x[-1] - self.period, N_GRID)
        values = self.along(name, np.add.outer(starts, cycle).ravel(), **fixed)
        return starts + self.period / 2, values.reshape(N_GRID, -1).mean(axis=1)

    @property
    def column(self) -> str:
        """The only column of the component of this paragraph."""
        (name,) = re.findall(r"\[(\w+)\]", self.components[self.number].expression)[:1]
        return name


def says(match: Match, value: float, rel: float = 0.05) -> bool:
    """Whether a number is what is written, and inside the interval that is written after it."""
    number, decimals = float(match["n"]), len(match["n"].partition(".")[2])
    low, high = match["low"], match["high"]
    is_inside = low is None or float(low) - 1e-9 <= number <= float(high) + 1e-9
    return is_inside and abs(value - number) <= max(0.6 * 10.0**-decimals, rel * abs(value))


def sign(match: Match) -> int:
    return 1 if match["way"] in ("rises", "higher", "grown") else -1


def slope(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    return says(match, sign(match) * np.polyfit(*reader.curve(x, **fixed), 1)[0])


def change(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    places, y = reader.curve(x, **fixed)
    total = (y[-1] - y[0]) * np.ptp(reader.X[x]) / np.ptp(places)  # as if levels went on to the end
    if match["jump"]:
        near = np.abs(places - float(match["jump"])) <= 0.12 * np.ptp(places)
        if np.ptp(y[near]) < 0.5 * abs(total):
            return False
    return says(match, sign(match) * total, 0.25 if reader.period else 0.05)


def turn(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    places, y = reader.curve(x, **fixed)
    top = places[np.argmax(sign(match) * y)]
    return says(match, top, 0) or abs(top - float(match["n"])) < 0.05 * np.ptp(places)


def wiggles(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    return says(match, np.ptp(reader.curve(x, **fixed)[1]), 0.15 if reader.period else 0.05)


def is_open(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:  # noqa: ARG001
    return True


def difference(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    low, high = reader.along(x, np.array([float(match["b"]), float(match["a"])]), **fixed)
    return says(match, sign(match) * (high - low))


WAY = "(?P<way>rises|falls)"
CLAUSES: Mapping[str, Callable[[Reader, Match, str, Mapping[str, float]], bool]] = {
    rf"{WAY} by {N}{UNIT} per [^(]*?{RANGE}{PERHAPS}": slope,
    rf"{WAY} by {N}{UNIT}{RANGE}{PERHAPS}"
    rf"(?P<jump>, most of it around (?P<place>[-\d.]+).*)?": change,
    rf"{WAY} until {N}{UNIT}{RANGE} and (?:rises|falls) from there on{PERHAPS}": turn,
    rf"goes up and down by {N}{UNIT}(?P<low>)(?P<high>){PERHAPS}": wiggles,
    r"may rise or fall: the data leave it open": is_open,
    rf"where \S+ is (?P<a>\S+), .+ is (?P<way>higher|lower) by {N}{UNIT}{RANGE} than where it is "
    rf"(?P<b>[^,]+){PERHAPS}": difference,
}
