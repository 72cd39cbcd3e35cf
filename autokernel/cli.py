"""The command line. Rows in messages are counted from 1, below the line of names."""

import argparse
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from autokernel import AutoKernelError, AutoKernelGPRegressor, __version__
from autokernel.data.dates import read_dates
from autokernel.data.periodogram import SEASONS
from autokernel.data.texts import CATEGORY, DATE, NUMBER, is_numeric
from autokernel.datasets import load_airline
from autokernel.displays import EffectsDisplay, ForecastDisplay
from autokernel.explain import Table
from autokernel.export import write_report
from autokernel.typing import FloatArray, IntArray
from autokernel.validation import did_you_mean

REFUSED, INTERRUPTED = 2, 130  # exit statuses; the second is that of the shell for Ctrl-C
MARKS = {"tab": "\t", "\\t": "\t", "space": r"\s+"}  # pandas takes longer ones as patterns
MIN_ROWS = 4  # of a fit and its test
REPORTED_ROWS = 1000  # of predictions in a report
PREDICTED = ("mean", "std", "lower_95", "upper_95")  # columns of predictions
OF_FILE = (  # options that need one
    "target", "weights", "exposure", "trials", "drop", "category", "date_format", "predict",
    "future",
)  # fmt: skip
PARAMETERS = (
    "strategy", "criterion", "operators", "n_iter", "max_time", "n_jobs", "random_state",
    "exposure",
)  # fmt: skip
RESULTS = {  # the module that each file to write needs, by its ending
    "predictions": {"": "pandas"},
    "output": {".skops": "skops.io", ".joblib": "joblib"},
    "plot": dict.fromkeys((".png", ".svg", ".pdf"), "matplotlib"),
    "report": {"": "matplotlib"},
}
say = partial(print, flush=True)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: frames have no truth value
class FitRows:
    """Rows to fit, all of which have a target and a weight."""

    title: str
    X: Any  # data frame, whose gaps are missing; array of the bundled series without pandas
    y: Any  # series or array (n_samples,)
    weights: FloatArray  # (n_samples,)
    target: str
    kinds: dict[str, str]  # of each column of X: NUMBER, CATEGORY, DATE or a form of dates
    units: dict[str, str]  # as for describe
    notes: list[str]  # how the file was read
    time: FloatArray | None  # the first column of dates, in days, or the only one, of numbers
    seasons: Mapping[str, float]  # in the unit of time
    table: Any  # inputs of all rows of the file
    sep: str = ","  # separator of the file
    results: dict[str, list[str | Table]] = field(default_factory=dict)  # by headings of a report

    @property
    def is_series(self) -> bool:
        """Whether a single column is the time."""
        return self.time is not None and len(self.kinds) == 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 0 if there is a model, 2 after a refusal, 130 after Ctrl-C."""
    options = parse(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda text, *_, **__: _say_aside(f"Note: {text}")
            return _run(options)
    except KeyboardInterrupt:
        print("\nautokernel: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads has seen enough, as head has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, AutoKernelError) as error:
        text = re.sub(r"^The '(\w+)_(\w+)' parameter of \w+", r"--\1-\2", str(error))
        _say_aside(f"autokernel: {text}")
        return REFUSED


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments; ends the program with status 2 and a message if they are not valid."""
    parser = argparse.ArgumentParser(
        prog="python -m autokernel" if Path(sys.argv[0]).name == "__main__.py" else "autokernel",
        usage="%(prog)s [FILE] [options]",
        description="Find, describe and test a Gaussian process for a table, and predict with it.",
        epilog="Options with * may be given several times. Without a file, the data are monthly "
        "airline passengers, 1949 to 1960. Ctrl-C ends the search with the best kernel so far.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"autokernel {__version__}")
    _add_options(parser.add_argument_group)
    options = parser.parse_args(arguments)
    for name in OF_FILE:
        if options.file is None and getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} needs a file: name it before the options")
    if options.predictions and bool(options.predict) == bool(options.horizon):
        parser.error("--predictions needs --predict FILE, the rows to predict, or --horizon N")
    if options.future and not options.horizon:
        parser.error("--future needs --horizon N, the number of rows to forecast")
    return options


def _add_options(group: Callable[[str], Any]) -> None:
    data, search, result = (group(one).add_argument for one in ("data", "search", "results"))
    path, star = {"type": Path, "metavar": "FILE"}, {"action": "append", "default": []}
    mark = {"type": lambda text: MARKS.get(text, text), "metavar": "MARK"}
    data("file", nargs="?", **path, help="CSV file with a line of column names")
    data("--target", metavar="NAME", help="column to predict (default: the last, without weights)")
    data("--weights", metavar="NAME", help="column of weights, of which only the ratios count")
    data("--exposure", metavar="NAME", help="column of exposures of counts, such as a population")
    data("--trials", metavar="NAME", help="column of numbers of trials; the target is successes")
    data("--drop", **star, metavar="NAME*", help="column to leave out")
    data("--category", **star, metavar="NAME*", help="column of categories, as texts always are")
    data("--unit", **star, metavar="NAME=TEXT*", help="unit of a column or of the target")
    data("--sep", **mark, help="column separator (default: tab, ';' or ',')")
    data("--decimal", choices=".,", default=".", metavar="MARK", help="decimal mark (default: .)")
    data("--thousands", **mark, help="separator of thousands (default: none)")
    data("--date-format", metavar="FORMAT", help="how dates are written, such as %%d/%%m/%%Y")
    data("--na-values", **star, metavar="TEXT*", help="missing value, besides those of pandas")
    data("--missing", choices=["keep", "drop"], default="keep", help="rows with missing inputs")
    data("--comment", metavar="MARK", help="mark at which comments begin, such as '#'")
    data("--encoding", default="utf-8", metavar="NAME", help="encoding (default: utf-8)")
    search("--n-iter", type=int, default=20, metavar="N", help="number of kernels (default: 20)")
    search("--max-time", type=float, metavar="SECONDS", help="longest time of the search")
    search("--strategy", default="sot", metavar="NAME", help="such as series (default: sot)")
    search("--criterion", default="laplace", metavar="NAME", help="such as bic (default: laplace)")
    search("--operators", default="+,*", metavar="LIST", help="out of +,*,cp,cw (default: +,*)")
    search("--n-jobs", type=int, metavar="N", help="workers, -1 for one on each core (default: 1)")
    search("--random-state", type=int, default=0, metavar="N", help="seed (default: 0)")
    result("--horizon", type=int, metavar="N", help="number of rows to forecast after the last one")
    result("--explain", type=int, metavar="ROW", help="row to explain, the first is 0")
    files = {
        "future": "CSV file with the next rows of other columns, for --horizon",
        "predict": "CSV file with rows to predict, whose columns have names",
        "predictions": "CSV file for predictions (default: they are printed)",
        "output": "file for the model: .skops or .joblib",
        "plot": "picture of the forecast of one column, of components of several",
        "report": "HTML file for a report",
    }
    for name, text in files.items():
        result(f"--{name}", **path, help=text)


def _check_outputs(options: argparse.Namespace) -> None:
    read = (options.file, options.predict, options.future)
    taken = [*map(Path.resolve, filter(None, read))]
    for name, packages in RESULTS.items():
        if path := getattr(options, name):
            module = packages.get(path.suffix.lower(), packages.get(""))
            can_be_written = os.access(path.absolute().parent, os.W_OK) and not path.is_dir()
            if module is None or not can_be_written or path.resolve() in taken:
                kind = " or ".join(packages) or "new"
                raise ValueError(f"--{name} must be a {kind} file that can be written, got {path}")
            package = module.partition(".")[0]
            if find_spec(package) is None:
                raise ValueError(f"--{name} {path} needs {package}: pip install {package}")
            taken.append(path.resolve())


def _airline() -> FitRows:
    title, target, note = "monthly airline passengers, 1949 to 1960", "passengers", "time: years."
    try:
        X, y = load_airline(return_X_y=True, as_frame=True)
        units, y = {"time": "years", target: "thousand"}, y.rename(target)
    except ImportError:  # pandas is missing
        X, y = load_airline(return_X_y=True)
        units, note = {"x0": "years", "y": "thousand"}, "x0, or [0], is the time: years."
    kinds, weights, time = {next(iter(units)): NUMBER}, np.ones(len(y)), np.asarray(X)[:, 0]
    return FitRows(title, X, y, weights, target, kinds, units, [note], time, {"year": 1.0}, X)


def read_fit_rows(path: Path, options: argparse.Namespace) -> FitRows:
    """Read a file with the target among its columns."""
    with _errors_named(path):
        cells, sep = _read_cells(path, options)
        cells, target = _chosen(cells, options)
        kinds = {name: _kind(cells[name], target, options) for name in cells}
        if options.date_format not in {None, *kinds.values()}:
            raise ValueError(f"--date-format {options.date_format} fits no column")
        values = _read_columns(cells, kinds, options)
        kept = values[target].notna() & (values.notna().all(axis=1) | (options.missing == "keep"))
        weights = values.pop(options.weights).fillna(0) if options.weights else kept.astype(float)
        kept &= weights != 0
        y, X = values.pop(target)[kept], values[kept].dropna(axis="columns", how="all")
        if len(y) < MIN_ROWS or X.empty:
            raise ValueError(f"{MIN_ROWS} rows with an input are needed, got {len(y)}")
    notes = [f"{len(y)} of {len(kept)} rows are used, with the inputs\n\n{_summary(X)}\n"]
    kinds, weights = {name: kinds[name] for name in X}, weights[kept].to_numpy(float)
    weights = weights / weights.mean()  # the noise is that of a typical row
    X, y = X.reset_index(drop=True), y.reset_index(drop=True)
    time = X.iloc[:, 0].to_numpy() if list(kinds.values()) == [NUMBER] else None
    if len(dates := X.select_dtypes("datetime").columns):
        time = ((X[dates[0]] - X[dates[0]].min()) / np.timedelta64(1, "D")).to_numpy(float)
    seasons = {name: SEASONS[name] for name in ("day", "week", "year") if len(dates)}
    table = values[[*kinds]]
    return FitRows(path.name, X, y, weights, target, kinds, {}, notes, time, seasons, table, sep)


def _read_new_rows(path: Path, rows: FitRows, options: argparse.Namespace) -> tuple[Any, Any, str]:
    """Read inputs of new rows, all of those to predict, with the cells and the separator."""
    with _errors_named(path):
        cells, sep = _read_cells(path, options)
        names = [name for name in rows.kinds if name in cells]
        lacks = len(names) < len(rows.kinds) or bool(set(PREDICTED) & set(cells))
        if path is options.predict and lacks:
            raise ValueError(f"--predict needs {[*rows.kinds]}, not {PREDICTED}, got {[*cells]}")
        if not names:
            raise ValueError(f"--future needs columns out of {[*rows.kinds]}, got {[*cells]}")
        X = _read_columns(cells[names], rows.kinds, options)
    rows.notes.append(f"{path.name} has the inputs\n\n{_summary(X)}\n")
    for name in X:
        is_category = rows.kinds[name] == CATEGORY
        if is_category and (new := sorted({*X[name].dropna()} - {*rows.X[name]})):
            rows.notes.append(f"New levels of {name}: {', '.join(new)}.")
    return X, cells, sep


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ValueError(f"{path.name} needs pandas: pip install 'autokernel-gp[cli]'") from error
    except (ValueError, LookupError, EOFError, Warning) as error:  # of pandas, but for ValueError
        advice = "; check the line of names, quotation marks, --sep, --comment and --encoding"
        text = f"{path.name}: {error}{advice * (type(error) is not ValueError)}"
        raise ValueError(text) from error


def _read_cells(path: Path, options: argparse.Namespace) -> tuple[Any, str]:
    import pandas as pd

    how = {"dtype": str, "index_col": False, "skipinitialspace": True, "encoding": options.encoding}
    how |= {"comment": options.comment, "na_values": options.na_values}
    header = "".join(pd.read_csv(path, sep="\0", quoting=3, nrows=0, **how))
    plain = re.sub(r'"[^"]*"', "", header)  # names in quotation marks hold any mark
    sep = options.sep or next((one for one in "\t;," if one in plain), ",")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # more cells than names
        cells = pd.read_csv(path, sep=sep, **how)
    has_index = bool(re.match(rf'(""|\ufeff)?({sep if len(sep) > 1 else re.escape(sep)})', header))
    if cells.empty or not (has_index or re.search(r"[^\W\d_]", header)):
        raise ValueError(f"rows below a line of names such as x,y are expected, got {list(cells)}")
    cells = cells.apply(lambda column: column.str.strip())
    names = cells.columns.str.strip()
    cells.columns = names if names.is_unique else cells.columns
    if has_index and (name := _name_of_index(cells.iloc[:, 0], cells.columns[1:])):
        cells = cells.rename(columns={cells.columns[0]: name})
    cells = cells.loc[:, ~cells.columns.str.startswith("Unnamed: ")]
    return cells, " " if len(sep) > 1 else sep


def _name_of_index(cells: Any, others: Sequence[str]) -> str | None:
    """Name an index of dates or numbers, as data frames write it, None if it is of no use."""
    known = cells.dropna()
    are_dates = not (known.empty or np.isnat(read_dates(known.tolist(), any_order=True)).any())
    are_numbers = all(map(is_numeric, known))
    are_rows = known.str.fullmatch(r"\d+").all() and len(others) > 1  # else it is the only input
    names = ["time"] * are_dates + ["index"] * (are_dates or are_numbers)
    return next((one for one in names if one not in others and not are_rows), None)


def _chosen(cells: Any, options: argparse.Namespace) -> tuple[Any, str]:
    """Leave out the columns of ``--drop``, and return the name of the target with the others."""
    for option in ("target", "weights", "drop", "category"):
        for name in {*np.atleast_1d(getattr(options, option)).tolist()} - {None, *cells}:
            longer = {name.casefold(): one for one in cells if name.casefold() in one.casefold()}
            meant = did_you_mean(name, cells, aliases=longer)
            raise ValueError(f"--{option} must be one of {list(cells)}, got {name!r}{meant}")
    cells = cells.drop(columns=options.drop)
    names = [name for name in cells if name != options.weights]
    target = options.target or names[-1]
    if target not in names or len(names) < 2:
        raise ValueError(f"need a target and another column, got {names}; see --sep and --drop")
    return cells, target


def _kind(cells: Any, target: str, options: argparse.Namespace) -> str:
    if cells.name in (target, options.weights):
        return NUMBER
    known, form = cells.dropna().drop_duplicates(), options.date_format
    read = {one: _read(known, one, options).notna() for one in (form, DATE, NUMBER) if one}
    best = max(read, key=lambda one: read[one].sum())
    is_like = read[best] | known.str.match(r"[^\w\s]*\s*\d")  # a number or a date
    is_text = not read[best].all() and is_like.mean() < 0.1
    return CATEGORY if is_text or cells.name in options.category else best


def _read(cells: Any, kind: str, options: argparse.Namespace) -> Any:
    """Read a column of some kind; what cannot be read is missing, as are dates of two readings."""
    import pandas as pd

    if kind == CATEGORY:
        return cells.astype(object)
    if kind == NUMBER:
        mark = r"\s" if options.thousands == r"\s+" else re.escape(options.thousands or "\0")
        text = cells.str.replace(rf"(?<=\d){mark}(?=\d\d\d)", "", regex=True)
        marks = str.maketrans(f"{options.decimal}.\u2212", f".{options.decimal}-")
        text = text.str.translate(marks)
        return pd.to_numeric(text, errors="coerce").astype(float).replace([-np.inf, np.inf], np.nan)
    if kind != DATE:
        return pd.to_datetime(cells, format=kind, errors="coerce", utc=True).dt.tz_localize(None)
    return pd.Series(read_dates(cells.tolist(), any_order=True), cells.index)


def _read_columns(cells: Any, kinds: Mapping[str, str], options: argparse.Namespace) -> Any:
    values = cells.apply(lambda column: _read(column, kinds[column.name], options))
    bad = values.isna() & cells.notna()
    if bad.any(axis=None):
        first = bad.idxmax()[bad.any()].items()
        wrong = [f"column {name!r}, row {row + 1}: {cells.at[row, name]!r}" for name, row in first]
        raise ValueError(
            f"cells without a number or date: {bad.sum().sum()}, such as {'; '.join(wrong)}. "
            "Name the marks of numbers by --decimal and --thousands, the form of dates by "
            "--date-format, such as %d.%m.%Y, and missing values by --na-values; or take columns "
            "as categories by --category NAME, or leave them out by --drop NAME"
        )
    return values


def _summary(X: Any) -> str:
    table = X.describe(include="all").T.reindex(columns=["count", "unique", "min", "max"])
    return textwrap.indent(table.to_string(na_rep="", float_format="{:.6g}".format), "    ")


def _run(options: argparse.Namespace) -> int:
    _check_outputs(options)
    rows = read_fit_rows(options.file, options) if options.file else _airline()
    rows.units.update(text.partition("=")[::2] for text in options.unit)
    new = _read_new_rows(options.predict, rows, options) if options.predict else None
    future = _read_new_rows(options.future, rows, options)[0] if options.future else None
    are_categories = [kind == CATEGORY for kind in rows.kinds.values()]
    given = {name: getattr(options, name) for name in PARAMETERS}
    given |= {"operators": options.operators.split(","), "n_trials": options.trials}
    model = AutoKernelGPRegressor(categorical_features=are_categories, outliers=None, **given)
    model.refit(rows.X, rows.y, "NOISE", sample_weight=rows.weights)
    model.describe(rows.units)  # refuses units, parameters and unequal steps before the search
    if options.horizon is not None:
        _check_future(model, rows, future)
        model.forecast(options.horizon, X=future)
    row, n = options.explain, len(rows.table)
    if row is not None and not 0 <= row < n:
        raise ValueError(f"--explain must be a row of the table, 0 to {n - 1}, got {row}")
    train, test = _split(rows, options.random_state)
    say("\n".join([f"autokernel {__version__}: {rows.title}", *rows.notes]))
    model = clone(model).set_params(outliers="auto", verbose=1)
    _find_kernel(model, rows, train)
    steps: dict[str, Callable[[], None]] = {
        "test": lambda: _test(model, rows, train, test),
        "fit to all rows": lambda: _fit_all_rows(model, rows),
        "description": lambda: _describe(model, rows, row),
        "rest of the files": lambda: _write(model, rows, new, future, options),
    }
    status = 0
    for name, step in steps.items():
        try:
            step()
        except KeyboardInterrupt:
            say(f"\nInterrupted: the {name} is left out.")
            status = INTERRUPTED if name == "rest of the files" else 0
    return status


def _check_future(model: AutoKernelGPRegressor, rows: FitRows, future: Any) -> None:
    """Refuse a forecast for which the next rows of a column may be needed, before the search."""
    series, names = model.explanation().model.series.columns, [*rows.kinds]
    if not series:
        need = "a column of dates (name their --date-format), or of numbers at equal steps"
        raise ValueError(f"--horizon needs {need}, got {rows.kinds}")
    known = {names[number] for number in series}.union([] if future is None else future)
    if missing := [name for name in names if name not in known]:
        raise ValueError(
            f"--horizon needs --future FILE with the next rows of {', '.join(missing)}; or leave "
            "columns out by --drop NAME, or take numbers of groups as levels by --category NAME"
        )


def _split(rows: FitRows, random_state: int) -> list[IntArray]:
    """Hold out a tenth for the test: the last rows if there is a time, random rows otherwise."""
    time, how = rows.time, "the last"
    if time is None:
        time, how = np.random.default_rng(random_state).random(len(rows.y)), "drawn at random"
    n_test = max(1, round(0.1 * np.isfinite(time).sum()))
    order = np.argsort(np.nan_to_num(time, nan=-np.inf), kind="stable")  # without a time: first
    train, test = np.split(order, [-n_test])
    rows.notes.append(f"{len(train)} rows to train on, {n_test}, {how}, to predict: {rows.target}.")
    return [train, test]


def _find_kernel(model: AutoKernelGPRegressor, rows: FitRows, train: IntArray) -> None:
    say("")
    X, y = _safe_indexing(rows.X, train), rows.y[train]
    try:
        model.fit(X, y, sample_weight=rows.weights[train])
    except KeyboardInterrupt:
        if not hasattr(model, "stop_reason_"):
            raise  # there is no kernel yet
        say("the search ended: it was interrupted")


def _describe(model: AutoKernelGPRegressor, rows: FitRows, row: int | None) -> None:
    words = model.describe(rows.units)
    if len(rows.y) < len(rows.table):
        words = words.replace("from 0)", f"from 0 among the {len(rows.y)} that are used)")
    say(f"\nBest kernel\n\n{_paragraph(model.best_expression_, 4)}")
    paragraphs = [_paragraph(text, 4) for text in words.split("\n\n")]
    say("\n\n".join([f"\nWhat it says about {rows.target}", *paragraphs]))
    if row is not None:
        say(f"\nWhat makes up the prediction of row {row}\n")
        say(textwrap.indent(str(model.explain(_safe_indexing(rows.table, [row]))), "    "))
    if n := len(model.search_history_["score"]):
        say(f"\nBest {min(n, 5)} of {n} kernels; scores are in nats\n\n{model.leaderboard(5)}")


def _test(model: AutoKernelGPRegressor, rows: FitRows, train: IntArray, test: IntArray) -> None:
    X, y, weights = _safe_indexing(rows.X, test), rows.y[test], rows.weights[test]
    low, high = model.predict_interval(X, 0.95).T
    held = f"Intervals of 95 % hold {sum((low <= y) & (y <= high))} of {len(test)} test values."
    title = f"Test RMSE of {rows.target}{', weighted' * bool(np.ptp(rows.weights))}"
    say(f"\n{held}\n\n{title}\n")
    errors: dict[str, float] = {}
    for name, forecast in _forecasts(model, rows, train, X):
        errors[name] = float(np.sqrt(np.average((forecast - y) ** 2, weights=weights)))
        say(f"    {errors[name]:10.4g}  {name}")
    what = f"Fitted to {len(train)} of {len(rows.y)} rows, the kernel predicts the others. {held}"
    rows.results["Test"] = [what, Table({"forecast": [*errors], title: [*errors.values()]})]


def _forecasts(model: Any, rows: FitRows, train: IntArray, X: Any) -> Iterator[tuple[str, Any]]:
    y, weights = np.asarray(rows.y)[train], rows.weights[train]
    yield "this model", model.predict(X)
    yield "the mean", np.average(y, weights=weights)
    if rows.time is not None:
        yield "the last value", y[-1]
        time = rows.time[train]
        spacing, extent = np.nanmedian(np.diff(time)), np.nanmax(time) - np.nanmin(time)
        fit = [name for name, one in rows.seasons.items() if 0 < 3.5 * spacing < one < extent]
        for name in fit[:1]:  # the shortest of four rows or more
            last = y[time > time[-1] - rows.seasons[name] + spacing / 2]
            yield f"the last {name} repeated (seasonal-naive)", np.resize(last, len(X))
    at = np.random.default_rng(0).permutation(train)[:200]  # rows, to be fitted in seconds
    plain = dict.fromkeys(("column_scales", "target_scale", "outliers", "averaging"))
    other = clone(model).set_params(**plain, strategy="sot", verbose=0)
    for name, base, sign in (("straight lines", "LIN", " + "), ("an RBF kernel", "SE", " * ")):
        bases = (("CAT" if kind == CATEGORY else base, one) for one, kind in rows.kinds.items())
        of_counts = model.exposure, model.n_trials
        every = [f"{base}[{i}]" for i, (base, one) in enumerate(bases) if one not in of_counts]
        kernel = sign.join(every) or "NOISE"
        other.refit(_safe_indexing(rows.X, at), rows.y[at], kernel, sample_weight=rows.weights[at])
        yield name, other.predict(X)


def _fit_all_rows(model: AutoKernelGPRegressor, rows: FitRows) -> None:
    say(f"\nFitting the kernel to all {len(rows.y)} rows. Ctrl-C leaves this out.")
    model.set_params(verbose="auto")
    fit = model.fit if model.strategy == "series" else model.refit  # a series averages kernels
    fit(rows.X, rows.y, sample_weight=rows.weights)


def _write(model: Any, rows: FitRows, new: Any, future: Any, options: argparse.Namespace) -> None:
    if new:
        X, cells, sep = new
        columns = *model.predict(X, return_std=True), *model.predict_interval(X, 0.95).T
        cells = cells.assign(**dict(zip(PREDICTED, columns, strict=True)))
        first = dict(cells.fillna("")[:REPORTED_ROWS].items())
        more = f"The first {REPORTED_ROWS} of {len(cells)} rows" * (len(cells) > REPORTED_ROWS)
        rows.results["Predictions"] = [Table(first, note=more)]
        _put("Predictions", options, sep, cells)
    if options.horizon:
        forecast = model.forecast(options.horizon, (0.025, 0.5, 0.975), X=future)
        rows.results["Forecast"] = [forecast]
        _put("Forecast", options, rows.sep, forecast, str(forecast))
    if path := options.output:
        import_module(RESULTS["output"][path.suffix.lower()]).dump(model, path)
        say(f"Model: {path}")
    if path := options.report:
        write_report(model, path, units=rows.units, title=rows.title, results=rows.results)
        say(f"Report: {path}")
    if options.plot and not rows.is_series and model.best_expression_.endswith("NOISE"):
        say("Picture: none, because noise alone is best")
    elif path := options.plot:
        draw = (ForecastDisplay if rows.is_series else EffectsDisplay).from_estimator
        draw(model, units=rows.units).figure_.savefig(path, dpi=150)
        say(f"Picture: {path}")


def _put(name: str, options: argparse.Namespace, sep: str, table: Any, text: str = "") -> None:
    """Write a table to the file for predictions, or print it, as CSV without a ``text``."""
    path = options.predictions
    form = {"sep": sep, "decimal": options.decimal, "index": False, "float_format": "%.8g"}
    if path or not text:
        frame = import_module("pandas").DataFrame(table)
        text = frame.to_csv(path, encoding=options.encoding, **form)
    say(f"{name}: {path}" if path else f"{name}\n\n{text}")


def _say_aside(text: str) -> None:
    print(_paragraph(text), file=sys.stderr, flush=True)


def _paragraph(text: str, indent: int = 0) -> str:
    whole = textwrap.fill(text, 100 - indent, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent(whole, " " * indent)
