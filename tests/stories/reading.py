"""Reads a description sentence by sentence, and checks each one against the fitted model.

A reader knows the model by ``predict``, ``decompose``, tables and the data, not by how the words
are made.
"""

import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor
from autokernel.explain.decomposition import ExplainedFunction
from autokernel.inference.exact import ExactPredictor
from autokernel.model import MixtureComponent, MixturePredictor

N = r"(?P<n>-?[\d.]+(?:e[+-]?\d+)?)"
UNIT = r"(?: [^\d(),.;]+?)?"
RANGE = r"(?: \((?P<low>-?[\d.e+-]+) to (?P<high>-?[\d.e+-]+)(?:; probability [01]\.\d+)?\))?"
AMOUNT = rf"(?:(?P<factor>a factor of) )?{N}{UNIT}"
PERHAPS = r"(?: \(probability (?P<perhaps>[01]\.\d+)\))?"
DAYS = {"daily": 1.0, "weekly": 7.0, "monthly": 30.44, "yearly": 365.2425}
N_GRID, AHEAD = 65, 0.25  # points of a curve, and extents beyond the data
SCALES: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda x: x,
    "log": np.log,
    "sqrt": np.sqrt,
    "logit": lambda x: np.log(x / (1 - x)),
}
INVERSES: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda t: t,
    "log": np.exp,
    "sqrt": np.square,
}
Match = re.Match[str]


def period_in(text: str) -> float:
    """Read the period of a cycle, zero if there is none."""
    word = re.search(rf"({'|'.join(DAYS)}) season", text)
    every = re.search(rf"repeats every {N}", text)
    return DAYS[word[1]] if word else float(every["n"]) if every else 0.0


class Reader:
    """The data, the fitted function, and the paragraph that is read."""

    def __init__(self, model: AutoKernelGPRegressor, X: pd.DataFrame, y: pd.Series) -> None:
        self.dates = X.select_dtypes("datetime").columns
        days = {name: (X[name] - pd.Timestamp(0)) / pd.Timedelta(1, "D") for name in self.dates}
        self.model, self.data, self.X, self.y = model, X, X.assign(**days), y.to_numpy()
        self.paragraphs = model.describe().split("\n\n")
        found = model.decompose(X)
        self.components = [one for one in found.components if one.expression]
        self.explained = ExplainedFunction(model._fitted)  # decompose without words, at any place
        self.scale = found.scale  # of the target, on which the words are
        self.n_shown = sum(bool(re.match(r"\d+\. ", one)) for one in self.paragraphs)
        self.text, self.numbers, self.period = "", [0], 0.0  # of a paragraph: components, a cycle

    def wrong(self) -> Iterator[str]:
        """Yield each sentence that no template has, or that the model contradicts."""
        # a trend has the averages of the cycles along its column
        periods = [period_in(text) for text in self.paragraphs[1 : 1 + self.n_shown]]
        cycles = np.flatnonzero(periods).tolist()
        for place, paragraph in enumerate(self.paragraphs):
            self.text, self.numbers, self.period = re.sub(r"^\d+\. ", "", paragraph), [], 0.0
            if 0 < place <= self.n_shown:
                self.numbers, self.period = [place - 1], periods[place - 1]
                if "curve in" in self.text or "line in" in self.text:
                    self.numbers += [n for n in cycles if n != place - 1 and self.is_along(n)]
                    self.period = max(periods[n] for n in self.numbers)
            for sentence in re.split(r"(?<=\.) ", self.text):
                matches = ((re.fullmatch(pattern, sentence), check) for pattern, check in SENTENCES)
                match, check = next(((m, c) for m, c in matches if m), (None, None))
                if match is None:
                    yield f"unknown: {sentence}"
                elif not check(self, match):
                    yield f"false: {sentence}"

    def is_along(self, number: int) -> bool:
        """Whether a component has the same single column as the first one of this paragraph."""
        columns = self.columns(number)
        return len(columns) == 1 and columns == self.columns(self.numbers[0])

    def columns(self, number: int) -> set[str]:
        """Return the columns of a component."""
        return set(re.findall(r"\[(?:\w+\()?(\w+)\)?\]", self.components[number].expression))

    def view(self, name: str) -> str:
        """Return the scale of a column on which the component of a paragraph acts."""
        found = re.search(rf"\[(\w+)\({name}\)\]", self.components[self.numbers[0]].expression)
        return found[1] if found and not self.period else "identity"

    def on_scale(self, mean: np.ndarray) -> np.ndarray:
        """Return means of a component on the scale of the target, where factors are logs."""
        return np.log(mean) if self.scale == "log" else mean

    @property
    def residuals(self) -> np.ndarray:
        """What is left of the targets on their scale."""
        if self.scale == "identity":
            return self.y - self.model.predict(self.data)
        median = self.model.predict_quantiles(self.data, [0.5])[:, 0]
        return SCALES[self.scale](self.y) - SCALES[self.scale](median)

    def along(self, name: str, places: np.ndarray, **fixed: float) -> np.ndarray:
        """Compute the component of a paragraph along a column, the others at their medians."""
        return self.means(name, places, **fixed)[0]

    def means(self, name: str, places: np.ndarray, **fixed: float) -> np.ndarray:
        """Compute all components that a paragraph is about, (n_components, n_places)."""
        frame = pd.DataFrame([{**self.X.median(), **fixed}] * len(places)).assign(**{name: places})
        frame = frame.assign(**{one: pd.to_datetime(frame[one], unit="D") for one in self.dates})
        inputs = self.model._fitted.scaled(self.model._check_inputs(frame[self.X.columns]))
        parts = [self.explained.parts[number] for number in self.numbers]
        return np.array([self.explained.mean(part, inputs) for part in parts])

    def ends(self, name: str) -> tuple[float, float]:
        """Return where a column begins and ends, or the part of it that a paragraph is about."""
        low, high = self.X[name].min(), self.X[name].max()
        part = re.match(r"(?:From (?P<low>[\d.]+))?.*?(?:Until (?P<high>[\d.]+))?", self.text)
        inner = 0.05 * (high - low)  # where an edge bends no curve
        begin = float(part["low"]) + inner if part["low"] else low
        return begin, float(part["high"]) - inner if part["high"] else high

    def curve(self, name: str, **fixed: float) -> tuple[np.ndarray, np.ndarray]:
        """Compute a curve over the data, averaged over the period of a wave around it."""
        view, values = self.view(name), np.unique(self.X[name])
        ends = SCALES[view](np.array(self.ends(name)))
        x = INVERSES[view](np.linspace(*ends, N_GRID))
        if len(values) <= 20:
            x = values
        if not self.period:
            return x, self.means(name, x, **fixed).sum(axis=0)
        cycle = (np.arange(16) + 0.5) / 16 * self.period
        starts = np.linspace(x[0], x[-1] - self.period, len(x))
        values = self.means(name, np.add.outer(starts, cycle).ravel(), **fixed).sum(axis=0)
        return starts + self.period / 2, values.reshape(len(x), -1).mean(axis=1)

    @property
    def column(self) -> str:
        """The only column of the component of this paragraph."""
        (name,) = self.columns(self.numbers[0])
        return name


def says(match: Match, value: float, rel: float = 0.05) -> bool:
    """Whether a number is what is written, and inside the interval that is written after it."""
    number, decimals = float(match["n"]), len(match["n"].partition(".")[2])
    groups = match.groupdict()
    low, high = groups.get("low"), groups.get("high")
    is_inside = low is None or float(low) - 1e-9 <= number <= float(high) + 1e-9
    digit = 10.0**-decimals * (10.0 if re.fullmatch(r"-?\d+0", match["n"]) else 1.0)
    size = abs(value)
    if groups.get("factor"):
        value = np.exp(value)
        size = min(abs(value - 1), 1e3)
    return is_inside and abs(value - number) <= max(0.6 * digit, rel * size)


def sign(match: Match) -> int:
    return 1 if match["way"] in ("rises", "higher", "grown") else -1


def slope(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    step = float(match["step"] or 1)
    return says(match, sign(match) * step * np.polyfit(*reader.curve(x, **fixed), 1)[0])


def slope_on_view(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    places, y = reader.curve(x, **fixed)
    to_view = np.sqrt if "root" in match["view"] else np.log2
    along = to_view(places)
    if reader.period:  # of averages over a cycle
        cycle = (np.arange(16) + 0.5) / 16 * reader.period - reader.period / 2
        along = to_view(np.add.outer(places, cycle)).mean(axis=1)
    is_line = np.corrcoef(along, y)[0, 1] ** 2 > 0.99
    return is_line and says(match, sign(match) * np.polyfit(along, y, 1)[0])


def change(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    places, y = reader.curve(x, **fixed)
    total = (y[-1] - y[0]) * np.ptp(reader.X[x]) / np.ptp(places)  # as if levels went on to the end
    if match["jump"]:
        at = SCALES[reader.view(x)]
        near = np.abs(at(places) - at(float(match["jump"]))) <= 0.12 * np.ptp(at(places))
        if np.ptp(y[near]) < 0.5 * abs(total):
            return False
    if match["near"]:
        along = np.sqrt(places) if "root" in match["near"] else np.log(places)
        if np.corrcoef(along, y)[0, 1] ** 2 < 0.93:
            return False
    if match["half"]:
        at = SCALES[reader.view(x)]
        away = np.interp(at(float(match["half"])), at(places), y) - (y[0] + y[-1]) / 2
        if abs(away) > 0.15 * abs(y[-1] - y[0]):
            return False
    is_part = reader.text.startswith(("Until", "From"))  # whose ends are known roughly
    return says(match, sign(match) * total, 0.25 if reader.period or is_part else 0.05)


def turn(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    places, y = reader.curve(x, **fixed)
    top, at = places[np.argmax(sign(match) * y)], SCALES[reader.view(x)]
    away = at(top) - at(float(match["n"]))
    return says(match, top, 0) or abs(away) < 0.05 * np.ptp(at(places))


def wiggles(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    return says(match, np.ptp(reader.curve(x, **fixed)[1]), 0.15 if reader.period else 0.05)


def is_open(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    return True


def difference(reader: Reader, match: Match, x: str, fixed: Mapping[str, float]) -> bool:
    low, high = reader.along(x, np.array([float(match["b"]), float(match["a"])]), **fixed)
    if match.groupdict().get("times"):
        return says(match, np.exp(high - low))
    return says(match, sign(match) * (high - low))


WAY = "(?P<way>rises|falls)"
CLAUSES: Mapping[str, Callable[[Reader, Match, str, Mapping[str, float]], bool]] = {
    rf"{WAY}(?: exponentially,)? by {AMOUNT} per (?P<step>\d\S*)?[^(]*?{RANGE}{PERHAPS}": slope,
    rf"{WAY} (?:in proportion to the|exponentially with the|as a) (?P<view>[\w ]+) of .+, by "
    rf"{AMOUNT}{RANGE} (?:with each doubling of .+?|per unit of this root){PERHAPS}": slope_on_view,
    rf"{WAY} by {AMOUNT}{RANGE}{PERHAPS}"
    r"(?:, most of it around (?P<jump>-?[\d.]+).*|, nearly (?P<near>[\w ]+) of .+"
    r"|, half of it until (?P<half>-?[\d.]+)(?:\D.*)?)?": change,
    rf"{WAY} until {N}{UNIT}{RANGE} and (?:rises|falls) from there on{PERHAPS}": turn,
    rf"goes up and down by {AMOUNT}{RANGE}{PERHAPS}": wiggles,
    rf"where .+ is (?P<a>\S+), .+ is {N} (?P<times>times as high){RANGE} as where it is "
    rf"(?P<b>[^,]+){PERHAPS}": difference,
    r"direction is uncertain": is_open,
    rf"where .+ is (?P<a>\S+), .+ is (?P<way>higher|lower) by {N}{UNIT}{RANGE} than where it is "
    rf"(?P<b>[^,]+){PERHAPS}": difference,
}
"""What a curve does along a column."""


def does(reader: Reader, clause: str, x: str, fixed: Mapping[str, float]) -> bool:
    """Whether a curve does what a clause says; False for a clause that is not known."""
    found = ((re.fullmatch(pattern, clause), check) for pattern, check in CLAUSES.items())
    match, check = next(((m, c) for m, c in found if m), (None, is_open))
    return match is not None and check(reader, match, x, fixed)


def curve(reader: Reader, match: Match) -> bool:
    return does(reader, match["does"], match["x"], {})


def level(reader: Reader, match: Match) -> bool:
    return does(reader, match["does"], reader.column, {})


def several(reader: Reader, match: Match) -> bool:
    """Check effects along several columns, or along one at two values of another."""
    x, found = "", []
    for effect in match["effects"].split("; "):
        along = r"(?:along (?P<x>.+?),? (?=where|it))?(?:where (?P<z>.+?) is (?P<at>\S+), )?"
        parts = re.fullmatch(along + r"(?=its? |where )(?:its? )?(?P<does>.+)", effect)
        if parts is None:
            return False
        x = parts["x"] or x
        fixed = {parts["z"]: float(parts["at"])} if parts["z"] else {}
        found.append(does(reader, parts["does"], x, fixed))
    return all(found)


def season(reader: Reader, match: Match) -> bool:
    """Whether the last cycle, less a line through its ends, has the swing."""
    end = reader.X[match["x"]].max()
    places = np.linspace(end - reader.period, end, 33)
    y = reader.along(match["x"], places)
    if reader.scale == "log":
        wave = y[:-1] - np.linspace(0, y[-1] - y[0], len(y))[:-1]
        ends = np.array([wave.min(), wave.max()]) - wave.mean()
        written = np.log([float(match["least"]), float(match["most"])])
        return bool(np.all(np.abs(ends - written) < 0.1 * np.ptp(written)))
    written = float(match["swing"])
    return abs(np.ptp(y - np.linspace(0, y[-1] - y[0], len(y))) - written) < 0.1 * written


def growth(reader: Reader, match: Match) -> bool:
    """Whether the wave around averages has grown or shrunk from the first cycle to the last."""
    x = reader.X[reader.column]
    cycle = np.linspace(0, reader.period, 33)
    swings = []
    for begin in (x.min(), x.max() - reader.period):
        y = reader.along(reader.column, begin + cycle)
        swings.append(np.ptp(y - np.linspace(0, y[-1] - y[0], len(y))))
    return (swings[1] > swings[0]) == (match["way"] == "grown")


def beyond(reader: Reader, match: Match) -> bool:
    x = reader.X[reader.column]
    ahead = AHEAD * np.ptp(x)
    cycle = (np.arange(16) + 0.5) / 16 * reader.period - reader.period  # averages over the last
    places = np.add.outer(x.max() + ahead * np.array([-1, 0, 1]), cycle if reader.period else [0])
    values = reader.means(reader.column, places.ravel()).sum(axis=0).reshape(places.shape)
    before, last, later = values.mean(axis=1)
    goes_on = "continues" not in match[0] or (later - last) * (last - before) > 0
    return goes_on and says(match, sign(match) * (later - last))


def repeats(reader: Reader, match: Match) -> bool:
    """Whether half of the swing is left half the extent of the data later, or where it is said."""
    x = reader.X[reader.column]
    far = float(match["n"]) if match["n"] else 0.5 * np.ptp(x)
    cycle = np.linspace(0, reader.period, 17)
    before, after = (
        np.ptp(reader.along(reader.column, begin + cycle))
        for begin in (x.max() - reader.period, x.max() + far)
    )
    return after < 0.6 * before if match["n"] else after > 0.4 * before


def share(reader: Reader, match: Match) -> bool:
    means = reader.on_scale(np.array([one.mean for one in reader.components]))
    means -= means.mean(axis=1, keepdims=True)
    shares = means @ means.sum(axis=0) / np.sum(means.sum(axis=0) ** 2)
    return abs(100 * shares[reader.numbers[0]] - float(match["p"])) < 0.6


def small(reader: Reader, match: Match) -> bool:
    shares = [one.share for one in reader.components[reader.n_shown :]]
    return abs(100 * sum(shares) - float(match["p"])) < 0.6


def noise(reader: Reader, match: Match) -> bool:
    return says(match, np.sqrt(reader.model.noise_variance_))


def left_out(reader: Reader) -> float:
    """Compute the mean square error of rows in fifths that the best kernel has not seen."""
    fitted = reader.model._fitted
    data, best, errors = fitted.mixture.data, fitted.evaluation, np.empty(len(fitted.rows))
    for rows in np.array_split(np.random.default_rng(0).permutation(len(errors)), 5):
        others = np.setdiff1d(np.arange(len(errors)), rows)
        only = [MixtureComponent(best.expression, best.theta, 1.0)]
        mixture = MixturePredictor(only, data.take(others), ExactPredictor)
        errors[rows] = data.y[rows] - mixture.mean(data.X[rows])
    return float(np.mean(errors**2)) * fitted.target.width**2


def explains(reader: Reader, match: Match) -> bool:
    y = reader.y[reader.model._fitted.rows]
    share = max(0.0, 1 - left_out(reader) / y.var())
    return abs(share - float(match["p"]) / 100) < 0.2  # more rows are left out at once


def missed(reader: Reader, match: Match) -> bool:
    return says(match, left_out(reader) ** 0.5, 0.5)


def matters(reader: Reader, match: Match) -> bool:
    table = reader.model.inclusion_probabilities_
    p = dict(zip(table["column"], table["depends"], strict=True))
    low, high = (0.045, 0.955)  # as two digits are written
    if "uncertain" not in match[0]:
        low, high = (0.0, 0.055) if "not matter" in match[0] else (0.945, 1.0)
    names = re.split(r", | and ", re.sub(r" \([\d.]+\)", "", match["names"]))
    return all(low <= p[name] <= high + 1e-9 for name in names)


def alike(reader: Reader, match: Match) -> bool:
    names = re.split(r", | and ", match["names"])
    return bool((reader.X[names].corr().abs().max() > 0.95).all())


def far_off(reader: Reader, match: Match) -> bool:
    size = np.abs(reader.residuals)
    rows = [int(row) for row in re.findall(r"\d+", match["rows"])]
    return bool(np.all(size[rows] > np.quantile(size, 0.8)))


def spread(reader: Reader, match: Match) -> bool:
    mean = reader.model.predict(reader.data)
    along = mean if match["x"] == "the prediction" else reader.X[match["x"]].to_numpy()
    left = reader.residuals[np.argsort(along, kind="stable")]
    low, _, high = (part.std() for part in np.array_split(left, 3))
    return bool((high > low) == (match["way"] == "grows"))


def skew(reader: Reader, match: Match) -> bool:
    return bool((np.mean(reader.residuals**3) > 0) == (match["way"] == "above"))


def mean(reader: Reader, match: Match) -> bool:
    is_log = match["what"] == "geometric mean"
    y = reader.y[reader.model._fitted.rows]  # without outliers
    return says(match, np.exp(np.log(y).mean()) if is_log else y.mean())


def scale(reader: Reader, match: Match) -> bool:
    """Whether the components make up the median on this scale, which has its probability."""
    name = match["scale"].replace("square root", "sqrt")
    found, table = reader.model.decompose(reader.data), reader.model.scales_
    whole = SCALES[name](reader.model.predict_quantiles(reader.data, [0.5])[:, 0])
    parts = [found.constant * np.ones(len(whole)), *(one.mean for one in found.components)]
    rows = zip(table["subject"], table["scale"], table["probability"], strict=True)
    (p,) = (p for subject, one, p in rows if (subject, one) == ("target", name))
    is_probable = abs(float(match["perhaps"] or max(p, 0.95)) - p) < 0.006
    return bool(
        is_probable
        and np.allclose(
            reader.on_scale(np.array(parts)).sum(axis=0), whole, atol=1e-8 * whole.std()
        )
    )


def kernels(reader: Reader, match: Match) -> bool:
    table = reader.model.posterior_
    p = dict(zip(table["kernel"], table["probability"], strict=True))
    return match["kernel"] == reader.model.best_expression_ and says(match, p[match["kernel"]])


def averaging(reader: Reader, match: Match) -> bool:
    (added,) = (c for c in reader.model.decompose(reader.data).components if not c.expression)
    return says(match, reader.on_scale(added.mean).std())


def is_said(reader: Reader, match: Match) -> bool:
    """Whether a sentence without a number may be said; its claim is tested elsewhere."""
    return True


P = r"(?:less than |more than )?(?P<p>-?[\d.]+) %"
SENTENCES: tuple[tuple[str, Callable[[Reader, Match], bool]], ...] = (
    (rf"The (?P<what>mean|geometric mean) of .+ is {N}{UNIT}\.", mean),
    (rf"Effects add up on the (?P<scale>.+?) scale{PERHAPS}\.", scale),
    (
        r"The effects multiply \((?P<scale>log) scale(?:; probability (?P<perhaps>[01]\.\d+))?\)\.",
        scale,
    ),
    (rf"\w+ components? explains? {P} of the variance of held-out rows\.", explains),
    (
        rf"(?:The noise|What is left) (?:has a standard deviation of|is typically) {AMOUNT}"
        rf"{RANGE}(?:, wid.+)?\.",
        noise,
    ),
    (rf"The leave-one-out error is {N}{UNIT}\.", missed),
    (r"Whether (?:it|the cycle) repeats beyond the data is uncertain\.", is_said),
    (r"No structure was found: .+ around its (?:geometric )?mean, .+\.", is_said),
    (r"It ends before the data do\.", is_said),
    (r"It is uncertain whether (?P<names>.+) matters?\.", matters),
    (
        r"(?P<names>.+?)(?: do| does| does not| do not)? matters? \(probability at least 0.95\)\.",
        matters,
    ),
    (r"(?P<names>.+?) (?:are one column in|can hardly be dist).+", alike),
    (rf"Predictions average .+ by {AMOUNT} \(root mean.+", averaging),
    (
        rf"What follows is the best kernel, (?P<kernel>.+?); its probability .+? is {N}"
        r"(?:, and that of .+)?\.",
        kernels,
    ),
    (r"The search was cut .+", is_said),
    (r"They mask the other rows; .+", is_said),
    (r"Its average (?P<does>.+)\.", level),
    (r"A cycle in .+ that is faster than the rows, or seems so\.", is_said),
    (r"(?:.*?a|A) (?:curve|straight line) in (?P<x>.+?) (?:that|whose) (?P<does>.+)\.", curve),
    (r"(?:.*?a|A) difference of (?P<x>.+?): (?P<does>.+)\.", curve),
    (
        r"(?:.*?a|A|Around it there is a) (?:\w+ season|cycle) in (?P<x>.+?) (?:that repeats every "
        rf"{N}{UNIT}{RANGE}, )?with a swing of (?P<swing>[\d.]+){UNIT} in its last cycle"
        rf"{PERHAPS}\.",
        season,
    ),
    (
        r"(?:.*?a|A|Around it there is a) (?:\w+ season|cycle) in (?P<x>.+?) (?:that repeats every "
        rf"{N}{UNIT}{RANGE} )?(?:that|and) changes .+ by a factor of (?P<least>[\d.]+) to "
        rf"(?P<most>[\d.]+) in its last cycle{PERHAPS}\.",
        season,
    ),
    (
        r"Its swing has (?P<way>grown|shrunk)"
        rf"(?: from .+ in the first cycle|: in the first cycle it was .+?){PERHAPS}\.",
        growth,
    ),
    (r"A (?:joint effect|sum of effects) of .+?: (?P<effects>along .+)\.", several),
    (rf"(?:.*?a|A) possible (?:effect of|cycle in) .+{PERHAPS}\.", is_said),
    (rf"It explains {P} of the variance of the fit\.", share),
    (rf"\w+ smaller components? of .+ explains? {P} of the variance of the fit\.", small),
    (rf"Beyond the data it (?:.+ and )?{WAY} by {AMOUNT}{RANGE} until .+{PERHAPS}\.", beyond),
    (r"(?:Its course beyond the data is uncertain:|The data cover less than two) .+", is_said),
    (r"Its level drifts by about .+ from one row to the next\.", is_said),
    (rf"(?P<n>)?(?:It|The cycle) repeats beyond the data{PERHAPS}\.", repeats),
    (rf"Beyond the data half of its swing is left after {N}{UNIT}{PERHAPS}\.", repeats),
    (r"Rows? (?P<rows>.+?) (?:is|are) (?:excluded as )?(?:an outlier|outliers): .+", far_off),
    (r"Rows? .+? (?:has a value|have values) where the target's scale ends, .+", is_said),
    (r"\d+ rows, of which the first are (?P<rows>.+?), are excluded as outliers: .+", far_off),
    (r"The noise (?P<way>grows|shrinks) with (?P<x>.+?): it is .+", spread),
    (r"Large residuals are more often (?P<way>above|below) the prediction than not.*", skew),
    (r"(?:The residuals still|Intervals are too|Residuals were not) .+", is_said),
)
"""What a description says, and how it is checked: the first pattern that a sentence has counts."""
