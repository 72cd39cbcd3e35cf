"""Whether effects, shares, comparisons and slopes are right, on functions that are known.

The kinds are functions of simulated columns; the tables are columns of real data with a known
function as the target. The true effect of a column is the average of the true function over the
training rows with the column set to a value, less its average over the rows as they are. Counted
are the points at which the 90 % bands of ``decompose`` hold it, and the intervals of ``compare``
and ``slopes`` that hold the true value. On the tables, the errors of the effects are those of the
methods

- ``autokernel``: ``n_iter=5``, a fit of some seconds;
- ``ebm``: the explainable boosting machine of interpret-core, if it is installed, by its defaults;
- ``ebm_additive``: the same without interactions.

The effects of these machines are averages of their predictions too. The noise has 0.2, 0.5 or 1
standard deviations of the function, by the seed.

Rows go to results/effects.csv; those of the current commit are not measured again, nor are those of
other packages by any commit.

    AUTOKERNEL_DATA=folder python benchmarks/effects.py --jobs 2    # half an hour of CPU time
    AUTOKERNEL_DATA=folder python benchmarks/effects.py --small
"""

import importlib.util
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common import (  # isort: skip
    Row,
    collect,
    group,
    make_parser,
    numbers,
    parse,
    print_table,
    read_rows,
    rounded,
)
from tables import load_table  # isort: skip

import numpy as np
import pandas as pd
from scipy.stats import norm

from autokernel import AutoKernelGPRegressor
from autokernel.explain import Decomposition

NAME = "effects"  # of the CSV file
OWN, OTHERS = "autokernel", ("ebm", "ebm_additive")
N_ITER = 5  # kernels after the design
NOISES = (0.2, 0.5, 1.0)  # standard deviations of the function
LOG_SPREAD = 0.5  # standard deviation of a function on the log scale
SEEDS_OF_TABLES, ROWS_OF_TABLES = 3, 150
N_POINTS = 20  # quantiles of each column at which bands are compared
N_SLOPES = 60  # rows over which slopes are averaged
N_PAIRS = 4  # of single rows that are compared
N_YEARS = 3  # of the columns of dates
STEP = 1e-4  # of a column for a true slope, in its extent
HALF_WIDTH = float(norm.ppf(0.95))  # of a 90 % interval, in standard deviations
ROUNDING = 1e-9  # of an effect that is exact

Function = Callable[[pd.DataFrame], np.ndarray]

SMOOTH: Mapping[str, Callable[[np.ndarray, float, float], np.ndarray]] = {
    # of values in the unit interval, a random number in it, and a value in the middle
    "line": lambda u, _, middle: u - middle,
    "bend": lambda u, _, middle: (u - middle) ** 2,
    "saturation": lambda u, a, _: np.exp(-(3 + 4 * a) * u),
    "wave": lambda u, a, _: np.sin(2 * np.pi * (u + a)),
}
KINKED: Mapping[str, Callable[[np.ndarray, float, float], np.ndarray]] = {
    "step": lambda u, _, middle: (u > middle).astype(float),
    "hinge": lambda u, _, middle: np.maximum(u - middle, 0.0),
}
SEASON = {"season": lambda u, a, _: np.sin(2 * np.pi * (N_YEARS * u + a))}
CHOICES = {"smooth": list(SMOOTH), "any": [*SMOOTH, *KINKED]}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How data are simulated: the shapes along each column, joined by plus, empty for none."""

    n_rows: int
    shapes: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    correlation: float = 0.0
    scale: str = "identity"


KINDS: Mapping[str, Recipe] = {
    "two curves": Recipe(100, ("smooth",) * 2),
    "three lines": Recipe(80, ("line",) * 3),
    "six columns": Recipe(200, (*("smooth",) * 4, "", "")),
    "many rows": Recipe(300, ("smooth",) * 3),
    "kinks": Recipe(150, ("step", "hinge", "line")),
    "pair": Recipe(150, ("smooth",) * 3, pairs=((0, 1),)),
    "correlated": Recipe(150, ("smooth",) * 3, correlation=0.8),
    "correlated pair": Recipe(150, ("smooth",) * 3, pairs=((0, 1),), correlation=0.7),
    "levels": Recipe(150, ("smooth", "smooth", "levels")),
    "slopes by level": Recipe(150, ("line", "levels"), pairs=((0, 1),)),
    "log": Recipe(120, ("smooth",) * 3, scale="log"),
    "log pair": Recipe(150, ("smooth",) * 2, pairs=((0, 1),), scale="log"),
    "dates": Recipe(150, ("dates: line + season",)),
    "dates and a curve": Recipe(150, ("dates: line + season", "smooth")),
}
TABLES: Mapping[str, tuple[str, ...]] = {
    "carseats": ("CompPrice", "Income", "Advertising", "Price", "ShelveLoc", "Age"),
    "auto": ("displacement", "horsepower", "weight", "acceleration", "year", "origin"),
    "power_plant": ("AT", "V", "AP", "RH"),
    "concrete": ("cement", "blast_furnace_slag", "water", "superplasticizer", "age"),
    "diabetes": ("age", "bmi", "bp", "s1", "s5", "s6"),
    "athletes": ("rcc", "bmi", "ht", "wt", "sex"),
    "diamonds": ("Carat", "Color", "Clarity", "Depth"),
    "hitters": ("AtBat", "Hits", "Years", "CHits", "League"),
}


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    dataset: str
    seed: int
    method: str


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Case:
    """Data whose target is a sum of known terms and noise, on its scale."""

    X: pd.DataFrame
    y: np.ndarray
    terms: Sequence[Function]
    pairs: Sequence[tuple[str, str]]
    scale: str
    noise: float

    def function(self, X: pd.DataFrame) -> np.ndarray:
        """Compute the function (n,) on its scale."""
        return np.sum([term(X) for term in self.terms], axis=0)

    def mean(self, X: pd.DataFrame) -> np.ndarray:
        """Compute the mean of the target (n,)."""
        if self.scale == "log":
            return np.exp(self.function(X) + self.noise**2 / 2)
        return self.function(X)

    def terms_on(self, scale: str) -> Sequence[Function]:
        """Return terms whose sum is the function on a scale, a single one on another scale."""
        if scale == self.scale:
            return self.terms
        inverse = np.exp if self.scale == "log" else np.asarray
        return [lambda X: on_scale(inverse(self.function(X)), scale)]


def case_of(dataset: str, seed: int) -> Case:
    """Simulate a kind, or give the columns of a table a target."""
    rng = np.random.default_rng([seed, *dataset.encode()])
    recipe = KINDS.get(dataset) or recipe_of_table(dataset, seed)
    X = simulated(recipe, rng) if dataset in KINDS else columns_of_table(dataset, rng)
    terms = []
    for column, shapes in zip(X.columns, recipe.shapes, strict=True):
        for shape in shapes.removeprefix("dates: ").split(" + ") if shapes else []:
            size = rng.uniform(0.5, 1.5) * rng.choice([-1, 1])
            terms.append(times(size, term(X[column], shape, rng)))
    pairs = [(X.columns[first], X.columns[second]) for first, second in recipe.pairs]
    for first, second in pairs:
        sides = [
            term(X[one], "line" if is_number(X[one]) else "levels", rng) for one in (first, second)
        ]
        terms.append(product(*sides))
    if recipe.scale == "log":
        spread = np.sum([one(X) for one in terms], axis=0).std()
        terms = [times(LOG_SPREAD / spread, one) for one in terms]
    values = np.sum([one(X) for one in terms], axis=0)
    noise = float(NOISES[seed % len(NOISES)] * values.std())
    y = values + noise * rng.normal(size=len(X))
    return Case(X, np.exp(y) if recipe.scale == "log" else y, terms, pairs, recipe.scale, noise)


def simulated(recipe: Recipe, rng: np.random.Generator) -> pd.DataFrame:
    """Draw columns whose normal scores are correlated."""
    n_columns = len(recipe.shapes)
    covariance = np.full((n_columns, n_columns), recipe.correlation)
    np.fill_diagonal(covariance, 1.0)
    scores = rng.multivariate_normal(np.zeros(n_columns), covariance, recipe.n_rows)
    columns: dict[str, object] = {}
    for number, (shape, values) in enumerate(zip(recipe.shapes, norm.cdf(scores).T, strict=True)):
        if shape.startswith("dates"):
            days = np.linspace(0, round(N_YEARS * 365.25), recipe.n_rows).round()
            columns["date"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")
        elif shape == "levels":
            columns["level"] = np.array(list("abcde"), dtype=object)[(5 * values).astype(int)]
        else:
            columns[f"x{number}"] = 10 * values
    return pd.DataFrame(columns)


def recipe_of_table(dataset: str, seed: int) -> Recipe:
    """Return how the target of a table is made, with a pair of columns for odd seeds."""
    is_category = [
        not is_number(one) for _, one in load_table(dataset)[0][[*TABLES[dataset]]].items()
    ]
    shapes = tuple("levels" if one else "any" for one in is_category)
    return Recipe(ROWS_OF_TABLES, shapes, ((0, 1),) if seed % 2 else ())


def columns_of_table(dataset: str, rng: np.random.Generator) -> pd.DataFrame:
    """Draw rows of a table."""
    X = load_table(dataset)[0][[*TABLES[dataset]]]
    rows = np.sort(rng.permutation(len(X))[:ROWS_OF_TABLES])
    X = X.iloc[rows].reset_index(drop=True)
    return X.astype(dict.fromkeys(X.select_dtypes(exclude="number").columns, object))


def term(x: pd.Series, shape: str, rng: np.random.Generator) -> Function:
    """Return a function of a column with mean zero and standard deviation one at its rows."""
    name, shape = x.name, str(rng.choice(CHOICES.get(shape, [shape])))
    if shape == "levels":
        level = {one: rng.normal() for one in sorted(x.unique())}

        def raw(x: pd.Series) -> np.ndarray:
            return x.map(level).to_numpy(float)
    else:
        low, high, a = x.min(), x.max(), rng.uniform()
        middle = float(np.quantile((x - low) / (high - low), 0.3 + 0.4 * a))
        of_unit = {**SMOOTH, **KINKED, **SEASON}[shape]

        def raw(x: pd.Series) -> np.ndarray:
            return of_unit(((x - low) / (high - low)).to_numpy(float), a, middle)

    centre, spread = raw(x).mean(), raw(x).std()
    return lambda X: (raw(X[name]) - centre) / spread


def times(factor: float, one: Function) -> Function:
    """Multiply a function by a number."""
    return lambda X: factor * one(X)


def product(one: Function, other: Function) -> Function:
    """Multiply two functions."""
    return lambda X: one(X) * other(X)


def is_number(x: pd.Series) -> bool:
    """Whether a column holds numbers."""
    return pd.api.types.is_numeric_dtype(x)


def has_order(x: pd.Series) -> bool:
    """Whether a column holds numbers or dates."""
    return is_number(x) or pd.api.types.is_datetime64_any_dtype(x)


def on_scale(values: np.ndarray, scale: str) -> np.ndarray:
    """Return values of the target on its scale."""
    if scale == "logit":
        return np.log(values / (1 - values))
    return {"identity": np.asarray, "log": np.log, "sqrt": np.sqrt}[scale](values)


def effect(
    function: Function, X: pd.DataFrame, names: Sequence[str], points: pd.DataFrame
) -> np.ndarray:
    """Average a function over rows X with columns set to each of m points, less its mean: (m,)."""
    n, m = len(X), len(points)
    many = X.iloc[np.tile(np.arange(n), m)].reset_index(drop=True)
    many = many.assign(**{name: points[name].to_numpy().repeat(n) for name in names})
    return function(many).reshape(m, n).mean(axis=1) - function(X).mean()


def pair_effect(
    function: Function, X: pd.DataFrame, names: Sequence[str], points: pd.DataFrame
) -> np.ndarray:
    """Compute what the common effect (m,) of two columns has besides the effects of each."""
    each = [effect(function, X, [name], points) for name in names]
    return effect(function, X, names, points) - each[0] - each[1]


def measure(unit: Fit) -> Row:
    """Fit one method to one data set."""
    case, began = case_of(unit.dataset, unit.seed), time.process_time()
    if unit.method == OWN:
        return measured(case, unit.seed)
    predict = fit_ebm(case, unit)
    fitted = time.process_time()
    effects = {name: effect(predict, case.X, [name], case.X) for name in case.X}
    row = dict.fromkeys(
        ("kernel", "scale", "bands", "unseen", "shares", "compared", "widths", "slopes"), ""
    )
    return {
        "noise": NOISES[unit.seed % len(NOISES)],
        "error": error_of(effects, case),
        **row,
        "adds_up": np.nan,
        "fit_seconds": rounded(fitted - began),
        "explain_seconds": rounded(time.process_time() - fitted),
    }


def fit_ebm(case: Case, unit: Fit) -> Function:
    """Fit an explainable boosting machine."""
    from interpret.glassbox import ExplainableBoostingRegressor

    options = {"interactions": 0} if unit.method == "ebm_additive" else {}
    model = ExplainableBoostingRegressor(random_state=unit.seed, n_jobs=1, **options)
    with warnings.catch_warnings(action="ignore"):  # of few rows for pairs
        return model.fit(case.X, case.y).predict


def error_of(effects: Mapping[str, np.ndarray], case: Case) -> float:
    """Compute the RMS error of main effects at the rows, relative to the true function."""
    errors = [
        found - effect(case.function, case.X, [name], case.X) for name, found in effects.items()
    ]
    return rounded(float(np.sqrt(np.mean(np.square(errors))) / case.function(case.X).std()))


def measured(case: Case, seed: int) -> Row:
    """Fit the estimator, and compare what it says with what is true."""
    began = time.process_time()
    model = AutoKernelGPRegressor(n_iter=N_ITER, random_state=seed).fit(case.X, case.y)
    fitted = time.process_time()
    grid = pd.DataFrame({name: quantiles(case.X[name]) for name in case.X})
    at_rows, at_grid = model.decompose(case.X), model.decompose(grid)
    bands, unseen = bands_of(at_grid, case, grid)
    compared, widths = comparisons(model, case, np.random.default_rng(seed))
    row = {
        "noise": NOISES[seed % len(NOISES)],
        "error": np.nan,
        "kernel": model.best_expression_,
        "scale": at_rows.scale,
        "bands": bands,
        "unseen": unseen,
        "shares": shares_of(at_rows, case),
        "compared": compared,
        "widths": widths,
        "slopes": slopes_of(model, case),
        "adds_up": adds_up(model, at_rows, case.X),
        "fit_seconds": rounded(fitted - began),
        "explain_seconds": rounded(time.process_time() - fitted),
    }
    if at_rows.scale == case.scale:
        effects = {name: main_effect(at_rows, name) for name in case.X}
        row["error"] = error_of(effects, case)
    return row


def quantiles(x: pd.Series) -> np.ndarray:
    """Return evenly spaced quantiles (N_POINTS,) of a column, which are among its values."""
    places = (np.arange(N_POINTS) + 0.5) / N_POINTS * len(x)
    return x.sort_values().to_numpy()[places.astype(int)]


def means_of(found: Decomposition, name: str) -> np.ndarray:
    """Return the components (n_components, n) along a column, on the scale of the target."""
    own = [one.mean for one in found.components if one.columns == (name,)]
    means = np.reshape(own, (len(own), len(found.components[0].mean) if own else 1))
    return np.log(means) if found.scale == "log" else means


def main_effect(found: Decomposition, name: str) -> np.ndarray:
    """Return the main effect (n,) of a column, or zero."""
    return means_of(found, name).sum(axis=0)


def bands_of(found: Decomposition, case: Case, grid: pd.DataFrame) -> tuple[str, str]:
    """Count the points at which bands hold the truth, by column; and list columns without a band.

    Of several components along a column, each term of the truth belongs to the one with which it
    varies most.
    """
    bands, unseen = [], []
    for name in case.X:
        true = np.array([effect(one, case.X, [name], grid) for one in case.terms_on(found.scale)])
        means = means_of(found, name)
        if not len(means):
            if np.ptp(true.sum(axis=0)) > ROUNDING:
                share = share_of(case, found.scale, [name], effect)
                unseen.append(f"{name}:{share:.4f}")
            continue
        stds = [one.std for one in found.components if one.columns == (name,)]
        centred = means - means.mean(axis=1, keepdims=True)
        owners = np.argmax(centred @ true.T, axis=0)
        truths = [true[owners == number].sum(axis=0) for number in range(len(means))]
        held = np.abs(means - truths) <= HALF_WIDTH * np.array(stds) + ROUNDING
        bands.append(f"{name}:{held.sum()}/{held.size}")
    return " ".join(bands), " ".join(unseen)


def share_of(case: Case, scale: str, names: Sequence[str], of: Callable[..., np.ndarray]) -> float:
    """Compute the true share of an effect in the variance of the function."""
    terms = case.terms_on(scale)

    def function(X: pd.DataFrame) -> np.ndarray:
        return np.sum([one(X) for one in terms], axis=0)

    whole = function(case.X)
    return float(np.cov(of(function, case.X, names, case.X), whole)[0, 1] / whole.var(ddof=1))


def shares_of(found: Decomposition, case: Case) -> str:
    """Write shares of columns and pairs, with the true ones."""
    pairs = {one.columns for one in found.components if len(one.columns) == 2}
    effects = [((name,), effect) for name in case.X]
    effects += [(names, pair_effect) for names in sorted({*pairs, *case.pairs})]
    texts = []
    for names, of in effects:
        own = sum(one.share for one in found.components if one.columns == names)
        texts.append(f"{'*'.join(names)}:{own:.4f}:{share_of(case, found.scale, names, of):.4f}")
    return " ".join(texts)


def adds_up(model: AutoKernelGPRegressor, found: Decomposition, X: pd.DataFrame) -> float:
    """Compute the largest error of what adds up, relative to the spread of predictions."""
    scale = found.scale
    if scale == "identity":
        whole = model.predict(X)
    else:
        whole = on_scale(model.predict_quantiles(X, [0.5])[:, 0], scale)
    as_terms = np.log if scale == "log" else np.asarray
    parts = [as_terms(found.constant), *(as_terms(one.mean) for one in found.components)]
    errors = [np.sum([np.broadcast_to(one, len(X)) for one in parts], axis=0) - whole]
    for row in (0, len(X) // 2):
        table = model.explain(X.iloc[[row]])
        every = as_terms(np.array(table["contribution"]))
        errors.append(np.array([every[:-1].sum() - every[-1], every[-1] - whole[row]]))
    return rounded(float(np.abs(np.concatenate(errors)).max() / max(whole.std(), 1e-12)))


def comparisons(
    model: AutoKernelGPRegressor, case: Case, rng: np.random.Generator
) -> tuple[str, str]:
    """Compare halves of the rows, and single rows: whether intervals hold the true difference.

    The widths of the intervals are relative to those by the joint covariance of predictions.
    """
    x = next(case.X[name] for name in case.X if has_order(case.X[name]))
    low, high = case.X[x <= x.median()], case.X[x > x.median()]
    sides = [(high, low)]
    for _ in range(N_PAIRS):
        first, second = rng.permutation(len(case.X))[:2]
        sides.append((case.X.iloc[[first]], case.X.iloc[[second]]))
    held, widths = [], []
    for A, B in sides:
        table = model.compare(A, B)
        row = list(table["quantity"]).index("A - B")
        ends = table["low"][row], table["high"][row]
        held.append(int(ends[0] <= case.mean(A).mean() - case.mean(B).mean() <= ends[1]))
        both = pd.concat([A, B])
        _, K = model.predict(both, return_cov=True)
        _, std = model.predict(both, return_std="function")
        np.fill_diagonal(K, std**2)
        contrast = np.append(np.full(len(A), 1 / len(A)), np.full(len(B), -1 / len(B)))
        width = 2 * HALF_WIDTH * np.sqrt(max(contrast @ K @ contrast, 0.0))
        if width > ROUNDING:
            widths.append((ends[1] - ends[0]) / width)
    return " ".join(map(str, held)), " ".join(f"{one:.4f}" for one in widths)


def slopes_of(model: AutoKernelGPRegressor, case: Case) -> str:
    """Say which intervals of average slopes hold the true ones, where these are not zero."""
    X, found = case.X.iloc[:N_SLOPES], []
    for name in filter(lambda one: has_order(X[one]), X):
        step = STEP * (X[name].max() - X[name].min())
        upper, lower = (case.mean(X.assign(**{name: X[name] + by})) for by in (step, -step))
        unit = step if is_number(X[name]) else step / pd.Timedelta(days=1)
        true = float(np.mean(upper - lower) / (2 * unit))
        if true != 0.0:
            table = model.slopes(name, X)
            found.append(f"{name}:{int(table['low'][0] <= true <= table['high'][0])}")
    return " ".join(found)


def counts(rows: Sequence[Mapping[str, str]], column: str) -> np.ndarray:
    """Return how many of how many points hold, for each entry of a column."""
    texts = [text.rpartition(":")[2] for row in rows for text in row[column].split()]
    pairs = [text.split("/") if "/" in text else (text, "1") for text in texts]
    return np.array(pairs, dtype=float).reshape(-1, 2)


def holding(rows: Sequence[Mapping[str, str]], column: str) -> float:
    """Compute the share of points that hold."""
    held = counts(rows, column).sum(axis=0)
    return float(held[0] / held[1]) if held[1] else np.nan


def share_errors(rows: Sequence[Mapping[str, str]]) -> np.ndarray:
    """Return the errors of shares, of columns and of pairs."""
    pairs = [text.split(":")[1:] for row in rows for text in row["shares"].split()]
    own, true = np.array(pairs, dtype=float).reshape(-1, 2).T
    return own - true


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print what holds by kind of data and by noise, and the errors of effects side by side."""
    own = [row for row in rows if row["method"] == OWN]
    groups = group(own, lambda row: row["dataset"] if row["dataset"] in KINDS else "tables")
    groups |= group(own, lambda row: f"noise {row['noise']}")
    table: list[Mapping[str, object]] = []
    for name, some in {**groups, "all": own}.items() if own else ():
        errors = np.abs(share_errors(some))
        unseen = [float(one.split(":")[1]) for row in some for one in row["unseen"].split()]
        widths = [float(one) for row in some for one in row["widths"].split()]
        table.append(
            {
                "data": name,
                "fits": len(some),
                "bands": holding(some, "bands"),
                "unseen": len(unseen),
                "largest": max(unseen, default=0.0),
                "shares, mean error": float(errors.mean()),
                "in .03": float(np.mean(errors <= 0.03)),
                "compare": holding(some, "compared"),
                "width": float(np.mean(widths)),
                "slopes": holding(some, "slopes"),
                "adds up": float(numbers(some, "adds_up").max()),
                "error": float(np.nanmean(numbers(some, "error"))),
                "fit s": float(numbers(some, "fit_seconds").mean()),
                "explain s": float(numbers(some, "explain_seconds").mean()),
            }
        )
    if table:
        print_table(table)
    on_tables = [row for row in rows if row["dataset"] in TABLES]
    methods = [one for one in (OWN, *OTHERS) if any(row["method"] == one for row in on_tables)]
    by_table = group(on_tables, lambda row: row["dataset"])
    lines: list[Mapping[str, object]] = []
    for name, some in {**by_table, "all": on_tables}.items():
        of_methods = group(some, lambda row: row["method"])
        errors_of = {one: numbers(of_methods.get(one, []), "error") for one in methods}
        means = {one: float(np.mean(v)) if len(v) else np.nan for one, v in errors_of.items()}
        lines.append({"table": name} | means)
    if lines:
        print_table(lines)


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=[*KINDS, *TABLES], seeds=10)
    parser.add_argument("--methods", nargs="+", default=[OWN, *OTHERS], choices=[OWN, *OTHERS])
    few = ["two curves", "pair", "slopes by level", "log", "diamonds"]
    arguments = parse(parser, small={"datasets": few, "seeds": 1})
    others = [one for one in arguments.methods if one != OWN]
    if arguments.finished:
        others = [one for one in others if any(row["method"] == one for row in read_rows(NAME))]
    elif others and importlib.util.find_spec("interpret") is None:
        print(f"without {' and '.join(others)}, which need the package interpret-core")
        others = []
    rows = []
    own = [one for one in arguments.methods if one == OWN]
    for methods, any_commit in ((own, False), (others, True)):
        units = [
            Fit(dataset, seed, method)
            for seed in range(arguments.seeds)
            for dataset in arguments.datasets
            for method in methods
            if (seed < SEEDS_OF_TABLES if dataset in TABLES else method == OWN)
        ]
        if units:
            rows += collect(NAME, units, measure, arguments, any_commit=any_commit)
    summarise(rows)


if __name__ == "__main__":
    main()
