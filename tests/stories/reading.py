"""Reads a description sentence by sentence, and checks each one against the fitted model.

A reader knows the model by ``predict``, ``decompose``, tables and the data, not by how the words
are made. It computes the effects of columns by brute force: it sets a column to a value in all
rows, and averages the predictions of the best kernel.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from autokernel import AutoKernelGPRegressor
from autokernel.explain.decomposition import ExplainedFunction
from autokernel.expression import Expression
from autokernel.inference.exact import ExactPredictor
from autokernel.model import MixtureComponent, MixturePredictor

N = r"(?P<n>-?[\d.]+(?:e[+-]?\d+)?)"
UNIT = r"(?: [^\d(),.;]+?)?"
RANGE = r"(?: \((?P<low>-?[\d.e+-]+) to (?P<high>-?[\d.e+-]+)(?:; probability [01]\.\d+)?\))?"
ENDS = r"\((?P<low>[\d.]+) to (?P<high>[\d.]+)\)\."
AMOUNT = rf"(?:(?P<factor>a factor of) )?{N}{UNIT}"
SOME = rf"(?:a factor of )?-?[\d.]+(?:e[+-]?\d+)?{UNIT}"  # an amount without groups
PLACE = r"\S+(?: \d\d:\d\d)?"  # a number, a date or a time
ABOUT = r"(?: \(\S+(?: \d\d:\d\d)? to [^)]+\))?"  # an interval of places
PERHAPS = r"(?: \(probability (?P<perhaps>[01]\.\d+)\))?"
P = r"(?P<bound>less than |more than )?(?P<p>-?[\d.]+) %"
LEAD = (
    rf"(?: explains {P} of the variance of the fit|, which other effects offset|"
    r" explains the variance of the fit, in part offset by other effects): "
)
WHERE = r"(?:Until|From|Nowhere|(?:where|Where) \S+ is) .+?, "  # a part of a column
DAYS = {"daily": 1.0, "weekly": 7.0, "monthly": 30.44, "yearly": 365.2425}
N_GRID, AHEAD = 65, 0.25  # points of a curve, and extents beyond the data
SCALES: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda x: x,
    "log": np.log,
    "sqrt": np.sqrt,
    "logit": logit,
}
INVERSES: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda t: t,
    "log": np.exp,
    "sqrt": lambda t: np.maximum(t, 0.0) ** 2,
    "logit": expit,
}
Match = re.Match[str]


class Kernel(NamedTuple):
    """A kernel with parameters, conditioned on the data."""

    weight: float
    expression: Expression
    predictor: ExactPredictor


def period_in(text: str) -> float:
    """Read the period of a cycle, zero if there is none."""
    word = re.search(rf"({'|'.join(DAYS)}) season", text)
    every = re.search(rf"repeats every {N}", text)
    return DAYS[word[1]] if word else float(every["n"]) if every else 0.0


class Reader:
    """The data, the fitted function, and the paragraph that is read."""

    def __init__(self, model: AutoKernelGPRegressor, X: pd.DataFrame, y: pd.Series) -> None:
        self.fitted, self.model, self.data, self.y = model._fitted, model, X, y.to_numpy()
        self.names, self.target = [*X], model.target_name_ or "the target"
        inputs = model._check_inputs(X)  # with numbers for dates and categories
        self.rows = inputs[self.fitted.rows]
        self.dates = X.select_dtypes("datetime").columns
        self.levels = {
            name: dict(zip(X[name].astype(str), inputs[:, number], strict=True))
            for number, name in enumerate(X)
            if X[name].dtype.kind not in "iufM"
        }
        best, data = self.fitted.evaluation, self.fitted.mixture.data
        self.best = [
            Kernel(1.0, best.expression, ExactPredictor(best.expression, best.theta, data))
        ]
        self.scale = best.expression.target  # on which the words are
        self.explained = ExplainedFunction(self.fitted)  # for parts of what a column does
        drawn = self.explained.posterior
        on_scale = (one for one in drawn if one.expression.target == self.scale)
        self.kernels = [
            Kernel(one.weight, one.expression, ExactPredictor(one.expression, one.theta, data))
            for one in on_scale
        ]
        self.parts = self.explained.parts
        self.subject = rf"(?i:{re.escape(self.target)})"
        self.lead = (
            rf"(?P<x>{'|'.join(map(re.escape, self.names))})(?: \([^)]+\))?{LEAD}(?P<what>.+)"
        )
        self.paragraphs = model.describe().split("\n\n")
        self.shown = [
            re.sub(r"^\d+\. ", "", one) for one in self.paragraphs if re.match(r"\d+\. ", one)
        ]
        self.text, self.numbers, self.period = "", [0], 0.0  # of a paragraph: parts, a cycle

    def wrong(self) -> Iterator[str]:
        """Yield each sentence that no template has, or that the model contradicts."""
        numbers = self.numbers_of_paragraphs()
        # a trend has the averages of the cycles along its column
        periods = [period_in(text) for text in self.shown]
        for place, paragraph in enumerate(self.paragraphs):
            self.text, self.numbers, self.period = re.sub(r"^\d+\. ", "", paragraph), [], 0.0
            if 0 < place <= len(self.shown) and numbers[place - 1] is not None:
                own = numbers[place - 1]
                self.numbers, self.period = [own], periods[place - 1]
                if not re.search(r"(?:season|cycle) in", self.text.split(". ")[0]):
                    cycles = {
                        number: period
                        for number, period in zip(numbers, periods, strict=True)
                        if period and number != own and self.name(number) == self.name(own)
                    }
                    self.numbers += cycles
                    self.period = max([self.period, *cycles.values()])
            for sentence in re.split(r"(?<=\.) ", self.text):
                yield from self.wrong_in(sentence)

    def wrong_in(self, sentence: str) -> Iterator[str]:
        """Yield a sentence, or what it says of a share, if no template has it or it is false."""
        lead, what = re.fullmatch(self.lead, sentence), sentence
        if lead:
            what = lead["what"]
            if not leads(self, lead):
                yield f"false: {sentence.removesuffix(lead['what'])}"
        what = re.sub(rf"^(?P<where>{WHERE})?{self.subject} ", r"\g<where>It ", what)
        matches = ((re.fullmatch(pattern, what), check) for pattern, check in SENTENCES)
        match, check = next(((m, c) for m, c in matches if m), (None, None))
        if match is None:
            yield f"unknown: {sentence}"
        elif not check(self, match):
            yield f"false: {sentence}"

    def numbers_of_paragraphs(self) -> list[int | None]:
        """Return the number of the part that a paragraph is about, None for an interaction."""
        if len(self.names) == 1:
            return list(range(len(self.shown)))
        own = {
            name: [n for n in range(self.explained.n_large) if self.name(n) == name]
            for name in self.names
        }
        leads = (re.match(self.lead, text) for text in self.shown)
        return [own[lead["x"]].pop(0) if lead else None for lead in leads]

    def name(self, number: int) -> str:
        """Return the column of a part."""
        return self.names[self.parts[number].column]

    @property
    def column(self) -> str:
        """The column that this paragraph is about."""
        return self.name(self.numbers[0])

    @property
    def x(self) -> np.ndarray:
        """The known values (n_known,) of this column."""
        return self.known(self.column)

    def values(self, name: str) -> np.ndarray:
        """Return a column (n,) in numbers, without rows that are excluded."""
        return self.rows[:, self.names.index(name)]

    def known(self, name: str) -> np.ndarray:
        """Return the values (n_known,) of a column that are not missing."""
        values = self.values(name)
        return values[~np.isnan(values)]

    @property
    def view(self) -> str:
        """The scale of its column on which the part of this paragraph acts."""
        return "identity" if self.period else self.parts[self.numbers[0]].scale

    def place(self, name: str, text: str) -> float:
        """Read a value of a column."""
        if name in self.levels:
            return self.levels[name][text]
        if name in self.dates:
            return (pd.Timestamp(text) - pd.Timestamp(0)) / pd.Timedelta(1, "D")
        return float(text)

    def written(self, change: float, sign: int = 1) -> float:
        """Convert a change to the number that is written for it, a factor on the log scale."""
        return float(np.exp(sign * change) if self.scale == "log" else sign * change)

    def in_unit(self, values: np.ndarray) -> np.ndarray:
        """Convert values on the scale of the target, but the log, to changes from its average."""
        if self.scale == "log":
            return values
        scale, inverse = SCALES[self.scale], INVERSES[self.scale]
        average = scale(self.y[self.fitted.rows]).mean()
        return inverse(average + values) - inverse(average)

    def fit(self, points: np.ndarray, kernels: Sequence[Kernel] | None = None) -> np.ndarray:
        """Predict rows (n, n_features) by the best kernel, or others, up to a constant."""
        kernels, X = kernels or self.best, self.fitted.scaled(points)
        weights, means = [one.weight for one in kernels], [one.predictor.mean(X) for one in kernels]
        return self.fitted.scale.width * np.average(means, axis=0, weights=weights)

    def average(self, kernels: Sequence[Kernel] | None = None, **places: np.ndarray) -> np.ndarray:
        """Average over the rows in which some columns are set to values (n_places,)."""
        n_places = len(next(iter(places.values())))
        points = np.tile(self.rows, (n_places, 1, 1))
        for name, values in places.items():
            points[:, :, self.names.index(name)] = np.asarray(values)[:, None]
        fit = self.fit(points.reshape(-1, len(self.names)), kernels)
        return fit.reshape(n_places, -1).mean(axis=1) - self.fit(self.rows, kernels).mean()

    def effect(self, numbers: Sequence[int], places: np.ndarray) -> np.ndarray:
        """Compute the sum of parts as changes that a sentence is about, by kernels that have it."""
        column = self.parts[numbers[0]].column
        kernels = [one for one in self.kernels if column in one.expression.columns]
        return self.in_unit(self.effect_on_scale(numbers, places, kernels))

    def effect_on_scale(
        self, numbers: Sequence[int], places: np.ndarray, kernels: Sequence[Kernel] | None = None
    ) -> np.ndarray:
        """Compute the sum of parts along a column; that of all parts is the effect of it."""
        name = self.name(numbers[0])
        if len(numbers) == sum(self.name(number) == name for number in range(len(self.parts))):
            return self.average(kernels, **{name: places})
        column = self.fitted.columns[self.names.index(name)]
        values = (np.asarray(places) - column.low) / column.extent
        parts = [self.parts[number] for number in numbers]
        if kernels is None:
            return np.sum([self.explained.mean(part, values) for part in parts], axis=0)
        drawn = (self.explained.means_of_draws(part, values) for part in parts)
        return np.sum([weights @ means for weights, means in drawn], axis=0)

    def share(self, effect: np.ndarray) -> float:
        """Compute the share of the variance of the fit that an effect (n,) of the rows explains."""
        fit = self.fit(self.rows)
        return float(np.cov(effect, fit, bias=True)[0, 1] / fit.var())

    @property
    def whole(self) -> np.ndarray:
        """Predictions of all rows on the scale of the target."""
        if self.scale == "identity":
            return self.model.predict(self.data)
        return SCALES[self.scale](self.model.predict_quantiles(self.data, [0.5])[:, 0])

    @property
    def residuals(self) -> np.ndarray:
        """What is left of the targets on their scale."""
        return SCALES[self.scale](self.y) - self.whole

    def ends(self, name: str) -> tuple[float, float]:
        """Return where a column begins and ends, one of several without a few extreme rows."""
        number = self.names.index(name)
        column = self.fitted.columns[number]
        x = column.low + column.extent * np.sort(self.explained.X[:, number])
        n_outside = 0 if name in self.dates or len(self.names) == 1 else int(0.025 * len(x))
        at = SCALES[next(part.scale for part in self.parts if part.column == number)](x)
        low, high = (
            inner if abs(at[inner] - at[end]) > 0.075 * np.ptp(at) else end
            for end, inner in ((0, n_outside), (-1, -1 - n_outside))
        )
        return x[low], x[high]

    def part_ends(self) -> tuple[float, float]:
        """Return where the column begins and ends, or the part of it that a paragraph is about."""
        low, high = self.ends(self.column)
        part = re.match(r"(?:From (?P<low>[\d.]+))?.*?(?:Until (?P<high>[\d.]+))?", self.text)
        inner = 0.05 * (high - low)  # where an edge bends no curve
        begin = float(part["low"]) + inner if part["low"] else low
        return begin, float(part["high"]) - inner if part["high"] else high

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Compute a curve over the data, averaged over the period of a wave around it."""
        view, values, ends = self.view, np.unique(self.x), self.part_ends()
        view = "identity" if ends[0] <= 0 else view  # of logs of a sum
        x = INVERSES[view](np.linspace(*SCALES[view](np.array(ends)), N_GRID))
        if len(values) <= 20:
            x = values[(values >= ends[0]) & (values <= ends[1])]
        if not self.period:
            at, rows = SCALES[view](x), SCALES[view](values)
            step = np.ptp(at) / (N_GRID - 1)  # what a curve does far from rows is not known
            near = np.abs(at[:, None] - rows).min(axis=1) <= 1.001 * step
            near[[0, -1]] = True
            return x[near], self.effect(self.numbers, x[near])
        cycle = (np.arange(16) + 0.5) / 16 * self.period
        starts = np.linspace(x[0], x[-1] - self.period, len(x))
        values = self.effect(self.numbers, np.add.outer(starts, cycle).ravel())
        return starts + self.period / 2, values.reshape(len(x), -1).mean(axis=1)


def is_said(reader: Reader, match: Match) -> bool:
    """Whether a sentence without a number may be said; its claim is tested elsewhere."""
    return True


def says(match: Match, value: float, rel: float = 0.05) -> bool:
    """Whether a number is what is written, and inside the interval that is written after it."""
    number, decimals = float(match["n"]), len(match["n"].partition(".")[2])
    groups = match.groupdict()
    low, high = groups.get("low"), groups.get("high")
    is_inside = low is None or float(low) - 1e-9 <= number <= float(high) + 1e-9
    digit = 10.0**-decimals * (10.0 if re.fullmatch(r"-?\d+0", match["n"]) else 1.0)
    size = min(abs(value - 1), 1e3) if groups.get("factor") else abs(value)
    return is_inside and abs(value - number) <= max(0.6 * digit, rel * size)


def is_share(match: Match, share: float) -> bool:
    """Whether a share is what is written in per cent, up to its last digit, or is no share."""
    if match["p"] is None:
        return share < 0 or share > 1
    number, decimals = float(match["p"]), len(match["p"].partition(".")[2])
    if match["bound"]:
        return (100 * share < number) == match["bound"].startswith("less")
    return abs(100 * share - number) <= 0.6 * 10.0**-decimals


def sign(match: Match) -> int:
    return 1 if match["way"] in ("rises", "higher", "grown") else -1


def slope(reader: Reader, match: Match) -> bool:
    step = float(match["step"] or 1)
    if reader.column in reader.dates and " per year" in match[0]:
        step = DAYS["yearly"]
    return says(match, reader.written(step * np.polyfit(*reader.curve(), 1)[0], sign(match)))


def slope_on_view(reader: Reader, match: Match) -> bool:
    places, y = reader.curve()
    to_view = np.sqrt if "root" in match["view"] else np.log2
    along = to_view(places)
    if reader.period:  # of averages over a cycle
        cycle = (np.arange(16) + 0.5) / 16 * reader.period - reader.period / 2
        along = to_view(np.add.outer(places, cycle)).mean(axis=1)
    is_line = np.corrcoef(along, y)[0, 1] ** 2 > 0.99
    return is_line and says(match, reader.written(np.polyfit(along, y, 1)[0], sign(match)))


def change(reader: Reader, match: Match) -> bool:
    places, y = reader.curve()
    is_part, total = re.match(WHERE, reader.text), y[-1] - y[0]  # whose ends are known roughly
    if not is_part:  # as if levels went on to the end
        total *= np.ptp(reader.part_ends()) / np.ptp(places)
    if match["first"] and not (
        is_part or are_ends(reader, reader.column, match["first"], match["last"])
    ):
        return False
    if match["jump"]:
        at = SCALES[reader.view]
        near = at(float(match["jump"])) + 0.12 * np.ptp(at(places)) * np.array([-1, 1])
        if np.ptp(np.interp(near, at(places), y)) < 0.5 * abs(total):
            return False
    if match["near"]:
        along = np.sqrt(places) if "root" in match["near"] else np.log(places)
        if np.corrcoef(along, y)[0, 1] ** 2 < 0.93:
            return False
    if match["half"]:
        at = SCALES[reader.view]
        amounts = np.exp(y) if reader.scale == "log" else y
        found = np.interp(at(float(match["half"])), at(places), amounts)
        if abs(found - (amounts[0] + amounts[-1]) / 2) > 0.15 * abs(amounts[-1] - amounts[0]):
            return False
    rel = 0.25 if reader.period or is_part else 0.05
    return says(match, reader.written(total, sign(match)), rel)


def change_between(reader: Reader, match: Match) -> bool:
    """Whether a curve changes by what is written between its lowest and its highest place."""
    places, y = reader.curve()
    first, last = (reader.place(reader.column, match[end]) for end in ("first", "last"))
    found = np.sort(places[[np.argmin(y), np.argmax(y)]])
    near = 0.1 if reader.period else 0.01  # averages over a cycle are flat around their extremes
    if not np.allclose([first, last], found, rtol=0.01, atol=near * np.ptp(places)):
        return False
    return says(match, reader.written(y.max() - y.min()))


def are_ends(reader: Reader, name: str, first: str, last: str) -> bool:
    """Whether two texts are the ends of a column, in three digits."""
    written = [reader.place(name, text) for text in (first, last)]
    return bool(np.allclose(written, reader.ends(name), rtol=0.006, atol=0.5e-6))


def turn(reader: Reader, match: Match) -> bool:
    places, y = reader.curve()
    top, at = int(np.argmax(sign(match) * y)), SCALES[reader.view]
    written = reader.place(reader.column, match["top"])
    if abs(at(places[top]) - at(written)) > 0.05 * np.ptp(at(places)):
        return False
    if match["then"] == match["way"] or not match["before"]:
        return match["then"] != match["way"]
    before, after = (re.fullmatch(AMOUNT, match[name]) for name in ("before", "after"))
    rise, fall = y[top] - y[0], y[-1] - y[top]
    rel = 0.25 if reader.period else 0.05  # levels of a cycle go on to the ends of the data
    return says(before, reader.written(rise, sign(match)), rel) and says(
        after, reader.written(fall, -sign(match)), rel
    )


def wiggles(reader: Reader, match: Match) -> bool:
    _, y = reader.curve()
    if match.groupdict().get("lowest"):
        written = [reader.place(reader.column, match[one]) for one in ("lowest", "highest")]
        low, high = reader.effect(reader.numbers, np.array(written))
        if max(low - y.min(), y.max() - high) > 0.1 * np.ptp(y):  # of places in three digits
            return False
    return says(match, reader.written(np.ptp(y)), 0.15 if reader.period else 0.05)


def difference(reader: Reader, match: Match) -> bool:
    places = np.array([reader.place(reader.column, match[name]) for name in "ba"])
    low, high = reader.effect(reader.numbers[:1], places)
    if match.groupdict().get("times"):
        return says(match, np.exp(high - low))
    return says(match, reader.written(high - low, sign(match)))


def levels(reader: Reader, match: Match) -> bool:
    """Whether the levels are in order, and differ from the average by what is written."""
    name, codes = reader.column, np.unique(reader.x)
    of_numbers = {f"{code:g}": code for code in codes}  # whole numbers that are taken for levels
    texts = {code: text for text, code in reader.levels.get(name, of_numbers).items()}
    heights = reader.effect(reader.numbers, codes)
    order = np.argsort(-heights, kind="stable")
    if int(match["count"] or len(order)) != len(order):
        return False
    items = re.split(", | and ", match["levels"])
    found = [re.fullmatch(rf"(?P<level>.+?) \+?{AMOUNT}{RANGE}", item) for item in items]
    names = [texts[codes[at]] for at in order]
    if not all(found) or not {one["level"] for one in found} <= {*names}:
        return False
    shown = [order[names.index(one["level"])] for one in found]
    ends = [*order[:3], *order[-3:]] if len(order) > 6 else [*order]
    if shown != ends and not (match["some"] and shown == sorted(shown, key=[*order].index)):
        return False
    return all(says(one, reader.written(heights[at])) for one, at in zip(found, shown, strict=True))


def spread_of_levels(reader: Reader, match: Match) -> bool:
    """Whether the levels of a category have this standard deviation."""
    heights = reader.effect(reader.numbers, np.unique(reader.x))
    return len(heights) == int(match["count"]) and says(match, reader.written(np.std(heights)))


def courses(reader: Reader, match: Match) -> bool:
    """Whether the fit changes along a column by what is written at the values of another one."""
    name, found = match["along"], list(re.finditer(COURSE, match["courses"]))
    if "".join(one[0] for one in found) != match["courses"]:
        return False
    z = found[0]["z"]
    levels = reader.levels.get(z, {})
    is_complete = {one["at"] for one in found} <= {*levels} if levels else len(found) == 2
    curves = [curve_at(reader, match, name, z, one["at"]) for one in found]
    if not is_complete or any(curve is None for curve in curves):
        return False
    pairs = zip(curves, found, strict=True)
    if not all(has_course(reader, *curve, one["what"]) for curve, one in pairs):
        return False
    if match["differ"] is None:
        return True
    size = np.ptp([width(y) if match["cycle"] else y[-1] - y[0] for _, y in curves])
    return says(re.fullmatch(rf"{AMOUNT}{RANGE}", match["differ"]), reader.written(size), 0.1)


def curve_at(
    reader: Reader, match: Match, name: str, z: str, at: str
) -> tuple[np.ndarray, np.ndarray] | None:
    """Compute the fit along the values that are written, which rows of this level have too."""
    level, rows = reader.place(z, at), reader.values(name)
    number, n_places = reader.names.index(name), N_GRID
    periods = [p.period for p in reader.parts if p.is_season and p.column == number]
    period = max(periods, default=np.nan) * reader.fitted.columns[number].extent
    if match["cycle"]:
        end = common_end(reader, name, z)
        first, last, n_places = end - period, end, 33
    else:
        ends = ("low", "high") if match["low"] else ("first", "last")
        first, last = (reader.place(name, match[end]) for end in ends)
        if periods:  # in one phase of a season
            n_places = int((last - first) / period + 1e-9) + 1
            last = first + (n_places - 1) * period
    has_level = reader.values(z) == level
    if z in reader.levels and not is_central(rows[has_level], first, last):
        return None
    places = np.linspace(first, last, n_places)
    view = "identity" if periods else next(p.scale for p in reader.parts if p.column == number)
    if view != "identity":
        places = INVERSES[view](np.linspace(*SCALES[view](np.array([first, last])), n_places))
    other = np.full(n_places, level)
    y = reader.in_unit(reader.average(reader.kernels, **{name: places, z: other}))
    return places, y


def common_end(reader: Reader, name: str, z: str) -> float:
    """Return the last value of a column that rows of all levels of another one reach."""
    codes = np.unique(reader.values(z))
    return min(reader.values(name)[reader.values(z) == code].max() for code in codes)


def width(y: np.ndarray) -> float:
    """Return the range of a cycle, without the line through its ends."""
    return float(np.ptp(y - np.linspace(0, y[-1] - y[0], len(y))))


def has_course(reader: Reader, places: np.ndarray, y: np.ndarray, what: str) -> bool:
    """Whether a curve (n_places,) does what a clause says."""
    change, amounts = y[-1] - y[0], np.exp(y) if reader.scale == "log" else y
    if flat := re.fullmatch(FLAT, what):
        low, high = (float(flat[name]) for name in ("least", "most"))
        return low <= reader.written(width(y) if "swings" in what else change) <= high
    if turned := re.fullmatch(TURN, what):
        way = sign(turned)
        top = way * np.max(way * y)
        before, after = (re.fullmatch(AMOUNT, turned[name]) for name in ("before", "after"))
        return says(before, reader.written(top - y[0], way), 0.1) and says(
            after, reader.written(y[-1] - top, -way), 0.1
        )
    match = re.fullmatch(CHANGE, what)
    if match is None:
        return False
    if match["half"]:
        at = float(np.interp(float(match["half"]), places, amounts))
        if abs(at - (amounts[0] + amounts[-1]) / 2) > 0.1 * np.ptp(amounts):
            return False
    sizes = {"goes up and down": np.ptp(y), "swings": width(y)}
    size = sizes.get(match["way"])
    written = reader.written(change, sign(match)) if size is None else reader.written(size)
    return says(match, written, 0.1)  # ends in three digits


def is_central(x: np.ndarray, first: float, last: float) -> bool:
    """Whether two values in three digits are within others."""
    return x.min() - 0.006 * abs(x.min()) <= first <= last <= x.max() + 0.006 * abs(x.max())


def changes_of_levels(reader: Reader, match: Match) -> bool:
    """Whether the change along a column has this standard deviation between levels of another."""
    name, other = match["along"], match["z"]
    codes, first, last = (
        np.unique(reader.known(other)),
        *(reader.place(name, match[end]) for end in ("first", "last")),
    )
    x, z = reader.values(name), reader.values(other)
    codes = [one for one in codes if is_central(x[z == one], first, last)]
    before, after = (
        reader.in_unit(reader.average(reader.kernels, **{name: places, other: codes}))
        for places in (np.full(len(codes), first), np.full(len(codes), last))
    )
    spread = np.std(after - before)  # that of the mean, which is less than that of draws
    near = reader.written(0.5 * spread) <= float(match["n"]) <= reader.written(2 * spread)
    return near and len(codes) >= 0.5 * len(np.unique(z))


def of_two_categories(reader: Reader, match: Match) -> bool:
    """Whether two levels together are highest or lowest, besides the effects of each."""
    pairs = {
        end: re.findall(r"(\S+) is (.+?)(?= and |$)", match[end] or "")
        for end in ("highest", "lowest")
    }
    names = [name for name, _ in pairs["highest"] or pairs["lowest"]]
    codes = np.unique(np.column_stack([reader.values(name) for name in names]), axis=0).T
    both = reader.average(**dict(zip(names, codes, strict=True)))
    each = [reader.average(**{name: own}) for name, own in zip(names, codes, strict=True)]
    heights = reader.in_unit(both - sum(each))
    for end, sign, written in (("highest", 1, match["most"]), ("lowest", -1, match["least"])):
        if written is None:
            continue
        places = [reader.place(*one) for one in pairs[end]]
        at = int(np.flatnonzero(np.all(places == codes.T, axis=1))[0])
        amount = re.fullmatch(rf"[+-]?{AMOUNT}", written)
        if not says(amount, reader.written(heights[at], -1 if written[0] == "-" else 1)):
            return False
        if at != np.argmax(sign * heights):
            return False
    return True


VERB = "(?:rises|falls|goes|hardly|may|swings) "


def within_and_between(reader: Reader, match: Match) -> bool:
    """Whether predictions have these slopes within groups, and from the mean of one to the next."""
    groups = reader.data[re.split(", | and ", match["groups"])].iloc[reader.fitted.rows]
    frame = groups.assign(x=reader.values(reader.column), y=reader.model.predict(reader.data))
    frame["y"] = np.log(frame["y"]) if reader.scale == "log" else frame["y"]
    views = {"doubling": np.log2, "root": np.sqrt}
    for word, view in views.items():
        frame["x"] = view(frame["x"]) if word in match["within"] else frame["x"]
    means = frame.groupby([*groups])[["x", "y"]].transform("mean")
    slopes = (np.polyfit(one["x"], one["y"], 1)[0] for one in (frame[["x", "y"]] - means, means))
    ways = (1 if match[one] == "rises" else -1 for one in ("way", "then"))
    texts = (re.match(AMOUNT, match[one]) for one in ("within", "between"))
    steps = (re.search(r" per (\d\S*) of", match[one]) for one in ("within", "between"))
    return all(
        says(text, reader.written(slope * float(step[1] if step else 1), way), 0.1)
        for text, slope, way, step in zip(texts, slopes, ways, steps, strict=True)
    )


def carries(reader: Reader, match: Match) -> bool:
    """Whether the component is less than half as large by a predictor without this row."""
    row, fitted = reader.fitted.given_rows.tolist().index(int(match["row"])), reader.fitted
    best, data, x = fitted.evaluation, fitted.mixture.data, reader.values(reader.column)
    others = np.delete(np.arange(len(data.y)), row)
    without = ExactPredictor(best.expression, best.theta, data.take(others))
    kernels = [Kernel(1.0, best.expression, without)]
    left = np.delete(reader.average(kernels, **{reader.column: x}), row)
    return bool(left.std() < 0.5 * reader.average(**{reader.column: x}).std())


def are_codes(reader: Reader, match: Match) -> bool:
    return bool(np.all(reader.known(match["code"]) % 1 == 0))


def are_apart(reader: Reader, match: Match) -> bool:
    """Whether most levels have rows in less than half of what one of them has, or of all."""
    x = pd.Series(reader.values(match["along"])).groupby(reader.values(match["z"]))
    within = (x.max() - x.min()) / np.ptp(reader.values(match["along"]))
    return bool(np.median(within) < 0.5 or x.min().max() >= x.max().min())


COURSE = (
    rf"(?P<what>{VERB}.+?) where (?P<z>.+?) is (?P<at>.+?){PERHAPS}"
    rf"(?:$|(?:, | and )(?={VERB}))"
)
TURN = (
    rf"(?P<way>rises|falls) by (?P<before>{SOME}) from {PLACE} until \S+.* and (?:rises|falls) by "
    rf"(?P<after>{SOME}) until \S+"
)
CHANGE = (
    rf"(?P<way>rises|falls|goes up and down|swings)(?: on the whole)? by {AMOUNT}{RANGE}"
    r"(?:, half of it until (?P<half>[\d.]+).*,)?"
)
FLAT = (
    r"(?:hardly changes|hardly swings|may rise or fall) \((?:a factor of )?(?P<least>\S+)"
    rf"{UNIT} to (?P<most>\S+?){UNIT}\)"
)
FROM = r"from (?P<first>\S+) to (?P<last>\S+) of (?P<along>.+?)"
HOW = {
    r"(?:from (?P<first>\S+) to (?P<last>\S+) of|within (?P<cycle>.+?) of|with) (?P<along>.+?)"
    r"(?: (?P<high>\S+) instead of (?P<low>\S+))?(?:, apart from its season)?, .+? "
    r"(?P<courses>(?:rises|falls|goes|hardly|may|swings) .+?)"
    r"(?:; the (?:changes|swings) differ by (?:up to )?(?P<differ>.+))?": courses,
    r"(?:.+? exceeds what both effects give most (?P<highest>where .+?) \((?P<most>[^)]+)\))?"
    r"(?: and )?(?:.*?falls short of (?:it|what both effects give) most (?P<lowest>where .+) "
    r"\((?P<least>.+)\))?": of_two_categories,
    rf"the change of .+? {FROM} differs between levels of (?P<z>.+), with a standard deviation of "
    rf"{AMOUNT}{RANGE}": changes_of_levels,
    r"the data cannot tell how, as rows that differ in (?P<z>.+) have hardly any range of "
    r"(?P<along>.+) in common": are_apart,
}
"""How the effects of two columns depend on each other."""


def interact(reader: Reader, match: Match) -> bool:
    """Check the share of an interaction besides the effects of both columns, and its course."""
    names = match["a"], match["b"]
    places = {name: reader.values(name) for name in names}
    each = [reader.average(**{name: values}) for name, values in places.items()]
    share = reader.share(reader.average(**places) - sum(each))
    if not is_share(match, share):
        return False
    if match["how"] is None:
        return "uncertain" in match[0]
    found = ((re.fullmatch(pattern, match["how"]), check) for pattern, check in HOW.items())
    how, check = next(((m, c) for m, c in found if m), (None, is_said))
    return how is not None and check(reader, how)


WAY = "(?P<way>rises|falls)"
EXTREMES = (
    "(?:,(?: highest (?P<highest>(?:in|on|at|between) .+?))?(?: and)?"
    "(?: lowest (?P<lowest>(?:in|on|at|between) .+?))?)?"
)
CLAUSES: Mapping[str, Callable[[Reader, Match], bool]] = {
    rf"[Ww]ithin each (?P<groups>.+?), .+? {WAY} by (?P<within>{SOME}.*?), and from one to the "
    rf"next it (?P<then>rises|falls) by (?P<between>{SOME}.*)": within_and_between,
    rf"{WAY}(?: exponentially,)? by {AMOUNT} per (?P<step>\d\S*)?[^(]*?{RANGE}{PERHAPS}": slope,
    rf"{WAY} (?:in proportion to the|exponentially with the|as a) (?P<view>[\w ]+) of .+, by "
    rf"{AMOUNT}{RANGE} (?:with each doubling of .+?|per unit of this root){PERHAPS}": slope_on_view,
    rf"{WAY} by {AMOUNT}{RANGE}(?: from (?P<first>\S+) to (?P<last>\S+?))?{PERHAPS}"
    r"(?:, most of it around (?P<jump>-?[\d.]+).*|, nearly (?P<near>[\w ]+) of .+"
    r"|, half of it until (?P<half>-?[\d.]+)(?:\D.*)?)?": change,
    rf"{WAY}(?: by (?P<before>{SOME}))? from {PLACE} until (?P<top>{PLACE}){UNIT}{ABOUT} and "
    rf"(?P<then>rises|falls)(?: by (?P<after>{SOME}))? until {PLACE}{PERHAPS}": turn,
    rf"{WAY} by {AMOUNT}{RANGE} from (?P<first>\S+) to (?P<last>\S+?){PERHAPS}, and its course "
    r"elsewhere is uncertain": change_between,
    rf"goes up and down by {AMOUNT}{RANGE}(?: from one value to the next)?"
    rf"(?:, lowest at (?P<lowest>\S+) and highest at (?P<highest>\S+?))?{PERHAPS}": wiggles,
    rf"varies by {AMOUNT}, in a direction that is uncertain": wiggles,
    rf"differs by {AMOUNT}, and it is uncertain which level is higher": wiggles,
    rf"[Ww]here .+ is (?P<a>.+?), .+ is {N} (?P<times>times as high){RANGE} as where it is "
    rf"(?P<b>[^,]+?){PERHAPS}": difference,
    r"changes in a direction that is uncertain": is_said,
    rf"[Ww]here .+ is (?P<a>.+?), .+ is (?P<way>higher|lower) by {AMOUNT}{RANGE} than where it is "
    rf"(?P<b>[^,]+?){PERHAPS}": difference,
    rf"(?P<count>\d+) levels have a standard deviation of {AMOUNT}, and none surely differs from "
    rf"the average{PERHAPS}": spread_of_levels,
    r"(?:Levels of .+?: )?(?P<levels>.+) \((?:(?:the highest and lowest )?of (?P<count>\d+) "
    r"levels with .+?, )?(?P<some>(?:all|the highest and lowest of \d+) that surely differ, )?"
    r"(?:differences from|factors of) the average(?:; probability [01]\.\d+)?\)": (levels),
}
"""What a curve does along a column."""


def does(reader: Reader, match: Match) -> bool:
    """Whether a curve does what a clause says; False for a clause that is not known."""
    found = ((re.fullmatch(pattern, match["does"]), check) for pattern, check in CLAUSES.items())
    clause, check = next(((m, c) for m, c in found if m), (None, is_said))
    return clause is not None and check(reader, clause)


def leads(reader: Reader, match: Match) -> bool:
    """Whether a column explains the share that a paragraph begins with."""
    share = reader.share(reader.effect_on_scale(reader.numbers[:1], reader.values(reader.column)))
    return match["x"] == reader.column and is_share(match, share)


def season(reader: Reader, match: Match) -> bool:
    """Whether the last cycle, less a line through its ends, has the swing."""
    end, period, x = reader.x.max(), reader.period, np.unique(reader.x)
    rows = x[x > end - period * (1 - 1e-9)]
    if match["highest"] or match["lowest"]:
        first, last, *values = reader.effect(reader.numbers[:1], [end - period, end, *rows])
        wave = np.array(values) - (last - first) * (rows - end) / period
        dates = pd.Timestamp(0) + pd.to_timedelta(rows, "D")
        calendar = "%B" if period > 300 else "%A" if period > 2 else "%H:%M"
        means = pd.Series(wave).groupby(dates.strftime(calendar), sort=False).mean()
        names = {"highest": means.idxmax(), "lowest": means.idxmin()}
        if not all(is_named(names[one], match[one], [*means.index]) for one in names):
            return False
    places = np.append(end - period, rows) if len(rows) in range(4, 33) else None
    places = np.linspace(end - period, end, 33) if places is None else places
    n = int(match["cycles"] or 1)
    every = np.add.outer(-period * np.arange(n), places).ravel()
    y = reader.effect(reader.numbers[:1], every).reshape(n, -1).mean(axis=0)
    wave = y - y[0] - (y[-1] - y[0]) * (places - places[0]) / period
    if reader.scale == "log":
        ends = np.array([wave.min(), wave.max()]) - wave[:-1].mean()
        written = np.log([float(match["least"]), float(match["most"])])
        return bool(np.all(np.abs(ends - written) < 0.1 * np.ptp(written)))
    written = float(match["swing"])
    return abs(reader.written(np.ptp(wave)) - written) < 0.1 * written


def is_named(name: str, text: str | None, names: list[str]) -> bool:
    """Whether a name of a part of a cycle is one of those that a text names, if it does."""
    if text is None:
        return True
    ends = re.split(" or | and ", text.split(" ", 1)[1])
    first, last = names.index(ends[0]), names.index(ends[-1])
    inside = range(first, last + 1 + len(names) * (last < first))
    return names.index(name) in [one % len(names) for one in inside]


def growth(reader: Reader, match: Match) -> bool:
    """Whether the wave around averages has grown or shrunk from the first cycle to the last."""
    cycle = np.linspace(0, reader.period, 33)
    swings = []
    for begin in (reader.x.min(), reader.x.max() - reader.period):
        y = reader.effect(reader.numbers[:1], begin + cycle)
        swings.append(np.ptp(y - np.linspace(0, y[-1] - y[0], len(y))))
    return (swings[1] > swings[0]) == (match["way"] == "grown")


def beyond(reader: Reader, match: Match) -> bool:
    ahead = AHEAD * np.ptp(reader.x)
    cycle = (np.arange(16) + 0.5) / 16 * reader.period - reader.period  # averages over the last
    ends = reader.x.max() + ahead * np.array([-1, 0, 1])
    places = np.add.outer(ends, cycle if reader.period else [0])
    values = reader.effect(reader.numbers, places.ravel()).reshape(places.shape)
    before, last, later = values.mean(axis=1)
    until = reader.place(reader.column, match["until"])
    if abs(until - ends[-1]) > 0.01 * np.ptp(reader.x):
        return False
    goes_on = "continues" not in match[0] or (later - last) * (last - before) > 0
    return goes_on and says(match, reader.written(later - last, sign(match)))


def repeats(reader: Reader, match: Match) -> bool:
    """Whether half of the swing is left half the extent of the data later, or where it is said."""
    far = float(match["n"]) if match["n"] else 0.5 * np.ptp(reader.x)
    cycle = np.linspace(0, reader.period, 17)
    before, after = (
        np.ptp(reader.effect(reader.numbers[:1], begin + cycle))
        for begin in (reader.x.max() - reader.period, reader.x.max() + far)
    )
    return after < 0.6 * before if match["n"] else after > 0.4 * before


def share(reader: Reader, match: Match) -> bool:
    found = reader.share(reader.effect_on_scale(reader.numbers[:1], reader.x))
    return is_share(match, found)


def of_more(reader: Reader, match: Match) -> bool:
    """Whether what no column and no pair with a sentence explains has this share."""
    rest = reader.fit(reader.rows) - reader.fit(reader.rows).mean()
    mains = {name: reader.average(**{name: reader.values(name)}) for name in reader.names}
    rest = rest - sum(mains.values())
    pairs = filter(None, (re.match("(.+?) and (.+?) interact", text) for text in reader.shown))
    for one, other in (pair.groups() for pair in pairs):
        both = reader.average(**{one: reader.values(one), other: reader.values(other)})
        rest = rest - (both - mains[one] - mains[other])
    return is_share(match, reader.share(rest))


def small(reader: Reader, match: Match) -> bool:
    """Whether parts that have no sentence explain little together."""
    names = set(re.split(", | and ", match["names"]))
    hidden = [n for n in range(len(reader.parts)) if reader.name(n) in names]
    is_first = {reader.name(number) for number in range(reader.explained.n_large)}
    hidden = [n for n in hidden if n >= reader.explained.n_large or reader.name(n) not in is_first]
    own = [[number for number in hidden if reader.name(number) == name] for name in names]
    effects = (reader.effect_on_scale(one, reader.values(reader.name(one[0]))) for one in own)
    return is_share(match, max(0.0, sum(map(reader.share, effects))))


def noise(reader: Reader, match: Match) -> bool:
    return says(match, reader.written(reader.in_unit(np.sqrt(reader.model.noise_variance_))))


def left_out(reader: Reader) -> float:
    """Compute the mean square error of rows in fifths that the best kernel has not seen."""
    fitted = reader.fitted
    data, best, predicted = fitted.mixture.data, fitted.evaluation, np.empty(len(fitted.rows))
    for rows in np.array_split(np.random.default_rng(0).permutation(len(predicted)), 5):
        others = np.setdiff1d(np.arange(len(predicted)), rows)
        only = [MixtureComponent(best.expression, best.theta, 1.0)]
        mixture = MixturePredictor(only, data.take(others), ExactPredictor)
        predicted[rows] = fitted.target.inverse(mixture.mean(data.X[rows]))
    return float(np.mean((reader.y[fitted.rows] - predicted) ** 2))


def explains(reader: Reader, match: Match) -> bool:
    share = max(0.0, 1 - left_out(reader) / reader.y[reader.fitted.rows].var())
    return abs(share - float(match["p"] or match["all_p"]) / 100) < 0.2  # other rows are left out


def missed(reader: Reader, match: Match) -> bool:
    return says(match, left_out(reader) ** 0.5, 0.5)


def widened(reader: Reader, match: Match) -> bool:
    return says(match, reader.fitted.mixture.law.deviation, 0.01)


def matters(reader: Reader, match: Match) -> bool:
    table = reader.model.inclusion_probabilities_
    p = dict(zip(table["column"], table["depends"], strict=True))
    low, high = (0.0, 0.055) if "not used" in match[0] else (0.045, 0.955)  # in two digits
    names = re.sub(r" and \d+ others", "", re.sub(r" \([\d.]+\)", "", match["names"]))
    names = re.split(r", | and ", names)
    return all(low <= p[name] <= high + 1e-9 for name in names)


def is_flat(reader: Reader, match: Match) -> bool:
    """Whether a part of a column ranges over less than the noise."""
    return bool(np.ptp(reader.curve()[1]) <= 1.5 * np.sqrt(reader.model.noise_variance_))


def is_constant(reader: Reader, match: Match) -> bool:
    names = re.split(r", | and ", match["names"])
    return all(np.ptp(reader.values(name)) == 0 for name in names)


def alike(reader: Reader, match: Match) -> bool:
    names = re.split(r", | and ", match["names"])
    return bool((reader.data[names].corr().abs().max() > 0.95).all())


def far_off(reader: Reader, match: Match) -> bool:
    size, named = np.abs(reader.residuals), re.sub(r"and \d+ more", "", match["rows"])
    rows = [int(row) for row in re.findall(r"\d+", named)]
    return bool(np.all(size[rows] > np.quantile(size, 0.8)))


def spread(reader: Reader, match: Match) -> bool:
    mean = reader.model.predict(reader.data)
    along = mean if match["x"] == "the prediction" else reader.data[match["x"]].to_numpy()
    left = reader.residuals[np.argsort(along, kind="stable")]
    low, _, high = (part.std() for part in np.array_split(left, 3))
    return bool((high > low) == (match["way"] == "grows"))


def of_terms(reader: Reader, match: Match) -> bool:
    """Whether residuals are larger in the rows of which it is said, and the factor is among."""
    low, value, high = (float(match[name]) for name in ("low", "times", "high"))
    x = reader.data[match["x"]]
    if "no" in match.groupdict():
        first, second = x.isna().to_numpy(), x.notna().to_numpy()
        first, second = (first, second) if match["no"] == "no" else (second, first)
    elif x.dtype.kind in "fi":
        far = [np.abs(x - float(match[one])) for one in "ab"]
        first, second = (one <= np.quantile(one, 1 / 3) for one in far)
    else:
        first, second = ((x == match[one]).to_numpy() for one in "ab")
    is_larger = reader.residuals[first].std() > reader.residuals[second].std()
    return bool(is_larger and value >= 1 and low < value < high)


def skew(reader: Reader, match: Match) -> bool:
    return bool((np.mean(reader.residuals**3) > 0) == (match["way"] == "above"))


def mean(reader: Reader, match: Match) -> bool:
    y, is_log = reader.y[reader.fitted.rows], match["what"] == "geometric mean"
    return says(match, np.exp(np.log(y).mean()) if is_log else y.mean())


def scale(reader: Reader, match: Match) -> bool:
    """Whether the components make up the median on this scale, which has its probability."""
    name = match["scale"].replace("square root", "sqrt").replace("original", "identity")
    found, table = reader.model.decompose(reader.data), reader.model.scales_
    whole = reader.whole
    parts = np.array([np.full(len(whole), found.constant), *(one.mean for one in found.components)])
    parts = np.log(parts) if name == "log" else parts
    rows = zip(table["subject"], table["scale"], table["probability"], strict=True)
    (p,) = (p for subject, one, p in rows if (subject, one) == ("target", name))
    is_probable = abs(float(match["perhaps"] or max(p, 0.95)) - p) < 0.006
    is_sum = np.allclose(parts.sum(axis=0), whole, atol=1e-8 * whole.std())
    return bool(name == reader.scale and is_probable and is_sum)


def kernels(reader: Reader, match: Match) -> bool:
    table = reader.model.posterior_
    p = dict(zip(table["kernel"], table["probability"], strict=True))
    return match["kernel"] == reader.model.best_expression_ and says(match, p[match["kernel"]])


def averaging(reader: Reader, match: Match) -> bool:
    added = reader.whole - reader.fit(reader.model._check_inputs(reader.data))
    return says(match, reader.written(reader.in_unit(added[reader.fitted.rows].std())))


SENTENCES: tuple[tuple[str, Callable[[Reader, Match], bool]], ...] = (
    (rf"The (?P<what>mean|geometric mean) of .+ is {N}{UNIT}\.", mean),
    (rf"Effects add up on the (?P<scale>.+?) scale{PERHAPS}\.", scale),
    (
        r"The effects multiply \((?P<scale>log) scale(?:; probability (?P<perhaps>[01]\.\d+))?\)\.",
        scale,
    ),
    (
        rf"The fit explains (?:[a-z ]*[\d.]+ % of the variance of (?:\d+ )?held-out rows; {P} "
        rf"without (?:the excluded rows|row \d+)|{P.replace('<', '<all_')} of the variance of "
        r"(?:(?:\d+ )?held-out rows|the rows that it .*? others))\.",
        explains,
    ),
    (
        rf"(?:The noise|What is left) (?:has a standard deviation of|is typically) {AMOUNT}"
        rf"{RANGE}(?:, wid.+)?\.",
        noise,
    ),
    (rf"The error of held-out rows is {N}{UNIT}\.", missed),
    (rf"Intervals are {N} times as wide as the fit alone says, as held-out rows show\.", widened),
    (r"Whether (?:it|the cycle) repeats beyond the data is uncertain\.", is_said),
    (r"No structure was found: .+ around its (?:geometric )?mean, .+\.", is_said),
    (r"It ends before the data do\.", is_said),
    (
        r"(?:.*, it is|It is) uncertain whether .+ (?:depends on|has a cycle of .+ in) .+\.|"
        r"(?:.*, outliers|Outliers) mask whether .+ (?:depends on|has a cycle of .+ in) .+\.",
        is_said,
    ),
    (r"It is uncertain whether (?P<names>.+) matters?\.", matters),
    (r"(?P<names>.+?) (?:is|are) not used by .+\.", matters),
    (r"(?P<names>.+?) (?:is|are) constant(?: in the \d+ rows of the fit)?\.", is_constant),
    (
        r"(?P<names>.+?) (?:are one column in different units|separate the rows in the same way|"
        r"have the same values): leave out .+\.",
        alike,
    ),
    (r"(?P<names>.+?) can hardly be dist.+", alike),
    (rf"Predictions average .+ by {AMOUNT} \(root mean.+", averaging),
    (rf"This describes the best kernel, (?P<kernel>.+?); its probability .+? is {N}\.", kernels),
    (r"The search was cut .+", is_said),
    (r"Kernels were searched on \d+ of the \d+ rows\.", is_said),
    (r"They mask the other rows; .+", is_said),
    (r"Its average (?P<does>.+)\.", does),
    (r"[Aa] cycle in .+ that is faster than the rows, or seems so\.", is_said),
    (
        r"(?:.*?a|A) (?:\w+ season|cycle) in (?P<x>.+?) "
        rf"(?:that repeats every {N}{UNIT}{RANGE},? )?"
        rf"(?:with a swing of (?P<swing>[\d.]+){UNIT}|(?:that|and) changes .+ by a factor of "
        rf"(?P<least>[\d.]+) to (?P<most>[\d.]+)) "
        rf"(?:in its last cycle|on average over its last (?P<cycles>\d+) cycles){PERHAPS}"
        rf"{EXTREMES}\.",
        season,
    ),
    (
        r"Its swing has (?P<way>grown|shrunk)"
        rf"(?: from .+ in the first cycle|: in the first cycle it was .+?){PERHAPS}\.",
        growth,
    ),
    (
        rf"(?P<a>.+?) and (?P<b>.+?) interact, which (?:explains {P} of the variance of the fit|"
        rf"other effects offset){PERHAPS}(?:: (?P<how>.+)|, in a way that is uncertain)\.",
        interact,
    ),
    (rf"It explains {P} of the variance of the fit\.", share),
    (
        rf"(?:Other i|I)nteractions explain {P} of the variance of the fit"
        r"(?:, most of it that of .+)?\.",
        of_more,
    ),
    (
        rf"\w+ smaller components? of (?P<names>.+?) (?:explains|together explain) {P} of the "
        r"variance of the fit(?:, as they offset each other)?\.",
        small,
    ),
    (
        rf"Beyond the data it (?:.+ and )?{WAY} by {AMOUNT}{RANGE} until (?:\S+ is )?"
        rf"(?P<until>\S+){UNIT}{PERHAPS}\.",
        beyond,
    ),
    (r"Its course beyond the data is uncertain\b.*", is_said),
    (r"Its level drifts by about .+ from one row to the next\.", is_said),
    (rf"(?P<n>)?(?:It|The cycle) repeats beyond the data{PERHAPS}\.", repeats),
    (rf"Beyond the data half of its swing is left after {N}{UNIT}{PERHAPS}\.", repeats),
    (r"Rows? (?P<rows>.+?) (?:is|are) (?:excluded as )?(?:an outlier|outliers): .+", far_off),
    (r"Rows? .+? (?:has a value|have values) where the target's scale ends, .+", is_said),
    (r"\d+ rows, of which the first are (?P<rows>.+?), are excluded as outliers: .+", far_off),
    (r"The noise(?: on the .+ scale)? (?P<way>grows|shrinks) with (?P<x>.+?): it is .+", spread),
    (
        rf"The noise(?: on the .+ scale)? (?:differs between levels of|changes along) (?P<x>.+?): "
        rf"it is (?P<times>\S+) times as large (?:for|at) (?P<a>.+?) as (?:for|at) (?P<b>.+?) "
        rf"{ENDS}",
        of_terms,
    ),
    (
        rf"The noise(?: on the .+ scale)? is (?P<times>\S+) times as large in rows that have "
        rf"(?P<no>no|a) value of (?P<x>.+?) as in those .+ {ENDS}",
        of_terms,
    ),
    (r"Large residuals are more often (?P<way>above|below) the prediction than not.*", skew),
    (
        rf"(?:{WHERE})?It (?P<does>(?:rises|falls|goes up|varies by|differs by|changes in) .+)\.",
        does,
    ),
    (r"(?P<does>(?:[Ww]here|.+ the average).+)\.", does),
    (r"It does not vary over the data\.", is_said),
    (rf"(?:{WHERE})?It hardly changes\.", is_flat),
    (r"(?:The residuals still|Intervals are too|Residuals were only) .+", is_said),
    (r".+ is not used, but residuals still .+", is_said),
    (r"(?P<code>.+?) has whole numbers that are taken for levels .+ always does so\.", are_codes),
    (r"\d+ of the \d+ rows that are far(?:thest)? off are .+\.", is_said),
    (r"(?P<does>[Ww]ithin each .+)\.", does),
    (r"Row (?P<row>\d+), where .+ carries this effect: .+ [\d.]+ % of it is left\.", carries),
)
"""What a description says, and how it is checked: the first pattern that a sentence has counts."""
