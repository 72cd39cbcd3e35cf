"""Recomputes the claims of a description from ``predict`` alone, at the values that they name.

A claim is confirmed if the average of predictions over the rows of the fit, in which the columns
of the claim are set to these values, has changes within the interval of the claim.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor

Claim = Any
PLACE = r"(\S+(?: \d\d:\d\d)?)"
DIGIT = 0.06  # of the size of an interval, by which its ends are rounded


class Confirming:
    """A fitted model and its rows, as a user has them."""

    def __init__(self, model: AutoKernelGPRegressor, X: pd.DataFrame) -> None:
        rows = np.setdiff1d(np.arange(len(X)), model.outliers_)
        self.model, self.every, self.X = model, X, X.iloc[rows][:: 1 + len(rows) // 300]
        self.claims = pd.DataFrame(model.claims_)
        self.is_log = "log scale)" in model.describe() or "log scale;" in model.describe()
        expression = re.sub(r"(log|sqrt)\((\S+?)(?: \+ \S+?)?\)", r"\2", model.best_expression_)
        self.parts = {name: expression.count(f"[{name}]") for name in X}

    def average(self, **places: object) -> float:
        """Average predictions, or the logs of their medians, with columns set to values."""
        X = self.X.copy()
        for name, value in places.items():
            of_floats = X[name].dtype.kind in "iuf" and not isinstance(value, int)
            kind = float if of_floats else X[name].dtype
            X[name] = pd.Series([value] * len(X), index=X.index).astype(kind)
        if self.is_log:
            return float(np.log(self.model.predict_quantiles(X, [0.5])).mean())
        return float(self.model.predict(X).mean())

    def place(self, name: str, text: str) -> object:
        """Read a value of a column."""
        column = self.every[name]
        if column.dtype.kind == "M":
            return pd.Timestamp(text)
        if column.dtype.kind in "iuf":
            return float(text) if column.dtype.kind == "f" else round(float(text))
        return next((value for value in column.unique() if str(value) == text), None)

    def slope(self, name: str, unit: str) -> float | None:
        """Compute the average change per unit of a column of numbers, or per doubling of it."""
        if self.X[name].dtype.kind not in "iuf" or unit == "unit of this root":
            return None
        low, high = np.nanquantile(self.X[name], [0.05, 0.95])
        change = self.average(**{name: high}) - self.average(**{name: low})
        if unit == "doubling":
            return change / np.log2(high / low) if low > 0 else None
        step = re.match(r"[\d.e+]+", unit)
        return change / (high - low) * (float(step[0]) if step else 1.0)

    def of_groups(self, name: str, claim: Claim) -> float | None:
        """Compute the slope of predictions within groups, or from the mean of one to the next."""
        way, _, names = claim.predicate.split(" ", 1)[1].partition(" ")
        if claim.unit.endswith(("doubling", "root")):
            return None
        frame = self.every[re.split(", | and ", names)].assign(x=self.every[name].astype(float))
        frame["y"] = self.model.predict_quantiles(self.every, [0.5])[:, 0]
        frame["y"] = np.log(frame["y"]) if self.is_log else frame["y"]
        means = frame.groupby([*frame.columns[:-2]])[["x", "y"]].transform("mean")
        some = means if way == "between" else frame[["x", "y"]] - means
        step = re.match(r"[\d.e+]+", claim.unit.partition("/")[2])
        return float(np.polyfit(some["x"], some["y"], 1)[0]) * (float(step[0]) if step else 1.0)

    def changes(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield the text of each claim that can be recomputed, its interval and the change."""
        text = ""
        for claim in self.claims.itertuples():
            text = claim.text or text
            found = self.change(claim, text)
            if found is not None and np.isfinite(claim.low):
                ends = np.array([claim.low, claim.high])
                low, high = np.log(ends) if self.is_log else ends
                yield f"{claim.subject} {claim.predicate}: {text}", float(low), float(high), found

    def change(self, claim: Claim, text: str) -> float | None:
        """Compute the change that a claim is about, None for one of another kind."""
        pair = re.fullmatch(r"(.+?), where (.+?) is (.+)", claim.subject)
        ends = re.fullmatch(rf"from {PLACE} to {PLACE}", claim.evidence)
        if pair and ends and claim.predicate in ("rises", "falls"):
            name, other, level = pair.groups()
            if "apart from" in text:
                return None
            at = [self.place(name, one) for one in ends.groups()]
            first, last = (
                self.average(**{name: one, other: self.place(other, level)}) for one in at
            )
            return last - first
        return self.change_along(claim, text)

    def change_along(self, claim: Claim, text: str) -> float | None:
        """Compute the change along one column that a claim is about."""
        names = re.findall(r"\[(?:\w+\()?([^\[\]()]+?)(?: \+ \S+)?\)?\]", claim.subject)
        name = names[0] if names else claim.subject.split("=")[0]
        if name not in self.parts or self.parts[name] > 1 or "season" in text or "cycle" in text:
            return None
        if "=" in claim.subject:
            level = claim.subject.partition("=")[2]
            return self.average(**{name: self.place(name, level)}) - self.average()
        if re.search(" (within|between) ", claim.predicate):
            return self.of_groups(name, claim)
        if claim.predicate.split()[0] in ("rises", "falls") and claim.unit.partition("/")[2]:
            return self.slope(name, claim.unit.partition("/")[2])
        if claim.predicate in ("rises", "falls"):
            found = re.search(rf"from {PLACE} to {PLACE}[ ,.]", f"{text} ")
            if not found:
                return None
            at = [self.place(name, one.rstrip(",.")) for one in found.groups()]
            first, last = (self.average(**{name: one}) for one in at)
            return last - first
        if claim.predicate in ("is higher", "is lower"):
            than = r"where .+? is (.+?), .+ (?:than|as) where it is (.+?)(?: \(prob|\.$)"
            found = re.search(than, text)
            if not found:
                return None
            high, low = (self.average(**{name: self.place(name, one)}) for one in found.groups())
            return high - low
        return None


def unconfirmed(model: AutoKernelGPRegressor, X: pd.DataFrame) -> tuple[int, list[str]]:
    """Count the claims that can be recomputed, and list those outside of their intervals."""
    found = list(Confirming(model, X).changes())
    wrong = [
        f"{text} [{low:.4g} to {high:.4g}, predict has {value:.4g}]"
        for text, low, high, value in found
        if not low - DIGIT * (high - low) <= value <= high + DIGIT * (high - low)
    ]
    return len(found), wrong
