"""Fitted estimators as plain data, which JSON can hold."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.utils.validation import check_is_fitted

from autokernel.data import Columns, NoiseFunction, NoiseTerm, RowNoise, Series, Target
from autokernel.data.noise import FORMS, GAP, LEVELS, MAX_TERMS
from autokernel.data.plain import as_plain, read, refusal
from autokernel.data.scales import Scale
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.evidence import Evaluation
from autokernel.exceptions import warn_user
from autokernel.explain.tables import history_table
from autokernel.expression import (
    COLUMN_SCALES,
    COUNT_SCALES,
    IDENTITY,
    TARGET_SCALES,
    custom_parts,
    n_kernel_params,
)
from autokernel.fit.arguments import Arguments
from autokernel.inference import (
    ExactPredictor,
    InducingPredictor,
    MakePredictor,
    NeighbourPredictor,
    Predictor,
    StateSpacePredictor,
    TrainingData,
    one_blas_thread,
)
from autokernel.model import (
    FACTORS,
    NO_OUTCOMES,
    ErrorLaw,
    FittedModel,
    KernelPosterior,
    LeftOut,
    MixtureComponent,
    MixturePredictor,
    Outliers,
)
from autokernel.search import MEANINGS
from autokernel.typing import FloatArray, IntArray
from autokernel.version import __version__

FORMAT_VERSION = 20
"""Version of the records; it changes whenever an older reader would misread one."""

MAX_DEPTH = 4  # of lists in the parameters of an estimator

_PREDICTORS: Mapping[str, tuple[Callable[..., Predictor], str | None]] = {
    "exact": (ExactPredictor, None),
    "inducing": (InducingPredictor, "n_inducing"),
    "neighbours": (NeighbourPredictor, "n_neighbours"),
    "state_space": (StateSpacePredictor, None),
}
"""The predictors, and what they count."""
_FORMAT = "autokernel"
_NEVER_READ = ("memory", "n_jobs")  # parameters that reach files and processes
_HISTORY = (
    dict.fromkeys(("kernel", "phase", "status"), tuple[str, ...])
    | dict.fromkeys(("n_leaves", "n_params", "row_set"), IntArray)
    | dict.fromkeys(("score", "log_prior", "score_per_sample", "best_score"), FloatArray)
    | dict.fromkeys(("fit_seconds", "proposal_seconds", "elapsed", "estimate"), FloatArray)
    | dict.fromkeys(("expected_improvement", "standard_error", "pareto_k"), FloatArray)
    | {"upper_bound": FloatArray}
)
_FIELDS = {  # of a model that are written as they are
    "X": FloatArray,
    "y": FloatArray,
    "weightless": FloatArray,
    "n_given": int,
    "outcomes": dict.fromkeys(NO_OUTCOMES, FloatArray) | {"row": IntArray},
    "resolution": float,
    "scaled_noise_variance": float,
    "kernels": tuple[KernelPosterior, ...],
    "approximation": str,
    "outliers": Outliers,
    "rows": IntArray,
    "given_rows": IntArray,
    "unjudged": tuple[int, ...],
}
_MIXTURE = {"components": tuple[MixtureComponent, ...], "law": ErrorLaw}
_MODEL = {
    "evaluation": int,  # the index of the best kernel
    **_FIELDS,
    "series": tuple[int, ...],
    "columns": Columns,
    "target": Target,
    "noise": dict.fromkeys(("weights", "errors", "rounding", "log_slopes", "counts"), FloatArray),
    "varying": Mapping[str, NoiseFunction],
    "rows_of_model": ({"X": FloatArray, "y": FloatArray}, None),
    "predictor": {"name": str, "number": (int, None)},
    **_MIXTURE,
    "ahead": (_MIXTURE, None),
    "left_out": (LeftOut, None),
}
_OF_SEARCH = {
    "n_iter_": int,
    "stop_reason_": str,
    "expected_improvement_": float,
    "_found": str,
    "_n_searched": int,
}
_RECORD = {
    "format": str,
    "version": int,
    "autokernel": str,
    "settings": Mapping[str, object],
    "target_name": (str, None),
    "model": _MODEL,
    "search": ({"history": _HISTORY, "tried": tuple[str, ...], **_OF_SEARCH}, None),
}
"""The kinds of all entries, for :func:`read`."""


def to_dict(model: AutoKernelGPRegressor) -> dict[str, Any]:
    """Write a fitted estimator as a dict that ``json.dumps`` accepts.

    :func:`from_dict` makes an estimator of it that predicts the same to the last bit, or after
    ``update`` up to rounding. Unlike a pickle, the dict can be shared: reading it runs no foreign
    code. It holds the training data. Callbacks, parameters that are objects, such as a strategy,
    and ``memory`` and ``n_jobs``, which reach files and processes, are left out with a warning.
    What a warm start needs is left out too.

    Parameters
    ----------
    model : AutoKernelGPRegressor
        A fitted estimator.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If a kernel holds a custom base kernel or operator.
    """
    check_is_fitted(model, "best_kernel_")
    of_model, search = _model_record(model._fitted), None
    if hasattr(model, "search_history_"):
        search = {"history": model.search_history_, "tried": model._tried}
        search |= {name: getattr(model, name) for name in _OF_SEARCH}
    given = model.get_params(deep=False)
    left_out = [name for name in _NEVER_READ if given.pop(name) is not None]
    left_out += ["callbacks"] * bool(getattr(model, "_skl_callbacks", ()))
    settings = {}
    for name, value in given.items():
        try:
            settings[name] = _written_setting(value)
        except TypeError:
            left_out.append(name)
    if left_out:
        what = "which a file must not choose or cannot hold: defaults replace them in the copy"
        warn_user(f"to_dict leaves out {', '.join(left_out)}, {what}")
    record = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "autokernel": __version__,
        "settings": settings,
        "target_name": model.target_name_,
        "model": of_model,
        "search": search,
    }
    return as_plain(record)


def from_dict(record: Mapping[str, Any]) -> AutoKernelGPRegressor:
    """Make a fitted estimator of the dict that :func:`to_dict` has returned.

    All types, sizes and numbers are checked. ``memory`` and ``n_jobs`` are never read.

    Raises
    ------
    ValueError
        If the dict is of another format or version, or a value is not valid: the message says its
        key, what is expected, and what is got.
    """
    what = "the dict that to_dict returns: json.loads makes a dict of a text"
    _require(isinstance(record, Mapping), "record", what, record)
    written, version = record.get("format"), record.get("version")
    _require(written == _FORMAT, "record.format", f"{_FORMAT!r}, as to_dict writes it", written)
    what = f"{FORMAT_VERSION}, the version that autokernel {__version__} writes and reads"
    _require(version == FORMAT_VERSION, "record.version", what, version)
    record = read(_RECORD, record, "record")
    model = _with_settings(record["settings"])
    model._set_fitted(_fitted_model(record["model"]), target_name_=record["target_name"])
    if (search := record["search"]) is not None:
        reason, what = search["stop_reason_"], f"one of {', '.join(MEANINGS)}"
        _require(reason in MEANINGS, "record.search.stop_reason_", what, reason)
        model._tried = list(search["tried"])
        for name, values in search["history"].items():
            _check_shape(values, (len(model._tried),), f"record.search.history.{name}")
        model.search_history_ = history_table(search["history"])
        for name in _OF_SEARCH:
            setattr(model, name, search[name])
    return model


def _with_settings(settings: Mapping[str, object]) -> AutoKernelGPRegressor:
    """Return an estimator with the parameters of a record, which must be valid."""
    if unread := [name for name in _NEVER_READ if settings.get(name) is not None]:
        warn_user(f"from_dict does not read {', '.join(unread)}: set them yourself")
    model, known = AutoKernelGPRegressor(), AutoKernelGPRegressor().get_params(deep=False)
    for name, value in settings.items():
        key = f"record.settings.{name}"
        _require(name in known, key, f"one of the parameters {', '.join(known)}", value)
        if name not in _NEVER_READ:
            model.set_params(**{name: _read_setting(value, key)})
    try:
        model._validate_params()
        Arguments.of(model)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"record.settings must be parameters of a fit: {error}") from error
    return model


def _written_setting(value: Any) -> Any:
    """Write a parameter; a mapping, whose keys may be numbers, becomes a list of its items."""
    if isinstance(value, Mapping):
        return {"items": [[as_plain(key), _written_setting(one)] for key, one in value.items()]}
    return as_plain(value)


def _read_setting(value: Any, key: str, depth: int = 0) -> Any:
    """Read a parameter that :func:`_written_setting` has written; lists become tuples."""
    _require(depth <= MAX_DEPTH, key, f"at most {MAX_DEPTH} lists in each other", value)
    if isinstance(value, Mapping):
        items = _read_setting(value.get("items"), f"{key}.items", depth + 1)
        is_valid = isinstance(items, tuple) and all(
            isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], (str, int))
            for one in items
        )
        _require(is_valid, key, "an object with items, pairs of a column and a value", value)
        return dict(items)
    if isinstance(value, list):
        return tuple(_read_setting(one, key, depth + 1) for one in value)
    return read(Any, value, key)


def _model_record(model: FittedModel) -> dict[str, Any]:
    """Return what a model consists of; its rows only if they are not all rows of the estimator."""
    mixture, data = model.mixture, model.mixture.data
    mixtures = [one for one in (mixture, model.ahead) if one is not None]
    every = [{name: getattr(one, name) for name in _MIXTURE} for one in mixtures]
    custom = custom_parts([part.expression for one in every for part in one["components"]])
    custom += custom_parts([one.evaluation.expression for one in model.kernels])
    if custom:
        what = "to_dict can hold the base kernels and operators that are built in"
        raise ValueError(f"{what}, got {custom[0]!r}: use joblib.dump")
    has_all = np.array_equal(data.X, model.columns.inputs(model.X).values, equal_nan=True)
    has_all = has_all and np.array_equal(data.u, model.target.forward(model.y))
    make = mixture.make_predictor
    function, counts = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    (name,) = (name for name, (known, _) in _PREDICTORS.items() if known is function)
    return {
        "evaluation": model.best,
        **{name: getattr(model, name) for name in _FIELDS},
        "series": model.series.columns,
        "columns": model.columns,
        "target": model.target,
        "noise": data.known_noise.record,
        "varying": data.varying,
        "rows_of_model": None if has_all else {"X": data.X, "y": data.u},
        "predictor": {"name": name, "number": next(iter(counts.values()), None)},
        **every[0],
        "ahead": every[1] if every[1:] else None,
        "left_out": model.left_out,
    }


def _fitted_model(record: Mapping[str, Any]) -> FittedModel:
    X, y, kernels, outliers = (record[name] for name in ("X", "y", "kernels", "outliers"))
    best, key = record["evaluation"], "record.model"
    _require(X.ndim == 2 and X.size > 0, f"{key}.X", "rows of columns", X.shape)
    _check_shape(y, (len(X),), f"{key}.y")
    n_of_fit = len(y) - _n_joined(record, key)
    _require(n_of_fit > 0, f"{key}.X", "rows of the fit before those of outcomes", len(y))
    _require(0 <= best < len(kernels), f"{key}.evaluation", "the index of a kernel", best)
    n_rows = min(len(record["rows"]), len(y))  # of equal ones, the first
    _check_shape(record["rows"], (n_rows,), f"{key}.rows")
    for values, field in zip(outliers, Outliers._fields, strict=True):
        shape = (len(outliers.rows), X.shape[1])[: 1 + (field == "X" and len(outliers.rows) > 0)]
        _check_shape(values, shape, f"{key}.outliers.{field}")
    _check_ascending(outliers.rows, f"{key}.outliers.rows")
    for name in ("unjudged", "series"):
        for column in record[name]:
            _require(0 <= column < X.shape[1], f"{key}.{name}", "indices of columns", column)
    for n, one in enumerate(kernels):
        _check_kernel(one.evaluation, record, f"{key}.kernels[{n}].evaluation")
        n_params = one.evaluation.n_params
        _check_shape(one.draws, (len(one.draws), n_params), f"{key}.kernels[{n}].draws")
        _check_shape(one.evaluation.hessian, (n_params,) * 2, f"{key}.kernels[{n}].hessian")
    by_rows = {  # without any, these have no second dimension
        "outliers": outliers._replace(X=outliers.X.reshape(-1, X.shape[1])),
        "weightless": record["weightless"].reshape(-1, X.shape[1]),
    }
    _check_columns(record["columns"], X, X[:n_of_fit])
    mixture, ahead = _mixtures(record)
    n_given, left_out = len(mixture.data.y), record["left_out"]
    _check_shape(record["given_rows"], (n_given,), f"{key}.given_rows")
    for values, field in zip(left_out or (), LeftOut._fields, strict=left_out is not None):
        _check_shape(values, left_out.rows.shape, f"{key}.left_out.{field}")
    if left_out is not None:
        is_row = bool((left_out.rows < n_given).all())
        _require(is_row, f"{key}.left_out.rows", "numbers of rows of the model", left_out.rows)
    return FittedModel(
        best=best,
        mixture=mixture,
        ahead=ahead,
        left_out=left_out,
        series=Series(next(iter(record["series"]), None), record["series"][1:]),
        **{name: record[name] for name in _FIELDS} | by_rows,
    )


def _n_joined(record: Mapping[str, Any], key: str) -> int:
    """Check the outcomes of updates, and return how many of their rows have joined the model."""
    outcomes, rows = record["outcomes"], record["outcomes"]["row"]
    for name, values in outcomes.items():
        _check_shape(values, (len(rows),), f"{key}.outcomes.{name}")
    _check_ascending(rows, f"{key}.outcomes.row")
    what, least = "more than the numbers of outcomes", rows.max(initial=-1) + 1
    _require(record["n_given"] >= least, f"{key}.n_given", what, record["n_given"])
    return int(np.sum(~np.isin(rows, record["outliers"].rows)))


def _mixtures(record: Mapping[str, Any]) -> tuple[MixturePredictor, MixturePredictor | None]:
    columns, target, key = record["columns"], record["target"], "record.model"
    _require(IDENTITY in target.scales, f"{key}.target.scales", "scales with the identity", None)
    _check_scales(target.scales, (IDENTITY, *TARGET_SCALES, *COUNT_SCALES), f"{key}.target")
    is_column = target.exposure is None or 0 <= target.exposure < len(columns)
    _require(is_column, f"{key}.target.exposure", "the index of a column", target.exposure)
    given = {key: record} | ({f"{key}.ahead": record["ahead"]} if record["ahead"] else {})
    for name, of_mixture in given.items():
        for n, one in enumerate(of_mixture["components"]):
            _check_kernel(one, record, f"{name}.components[{n}]")
        shares = of_mixture["law"].shares
        is_right = 0 < len(shares) <= len(FACTORS) and np.isclose(sum(shares), 1)
        what = f"one to {len(FACTORS)} numbers that sum to one"
        _require(bool(is_right), f"{name}.law.shares", what, shares)
    inputs, targets = columns.inputs(record["X"], first_row=0), target.forward(record["y"])
    if (rows := record["rows_of_model"]) is not None:
        _check_shape(rows["X"], (len(rows["X"]), len(columns)), f"{key}.rows_of_model.X")
        _check_shape(rows["y"], (len(rows["X"]),), f"{key}.rows_of_model.y")
        inputs, targets = columns.scaled(rows["X"], first_row=0), rows["y"]
    for name, values in record["noise"].items():
        _check_shape(values, targets.shape[: values.ndim], f"{key}.noise.{name}")
    _check_varying(record, f"{key}.varying")
    noise = RowNoise.of_record(targets.shape, record["noise"])
    data = TrainingData(inputs, targets, noise, target, varying=record["varying"])
    make = _make_predictor(record["predictor"], f"{key}.predictor")
    try:
        with one_blas_thread(), np.errstate(all="ignore"):  # as in the fit, for identical bits
            mixture, *ahead = (
                MixturePredictor(one["components"], data, make, law=one["law"])
                for one in given.values()
            )
            moments = [one.moments(inputs.values[:1]) for one in (mixture, *ahead)]
    except (LinAlgError, ValueError) as error:
        raise ValueError(f"{key} must be a model that can predict: {error}") from error
    _require(bool(np.isfinite(moments).all()), key, "a model whose predictions are finite", "nan")
    return mixture, next(iter(ahead), None)


def _check_columns(columns: Columns, X: FloatArray, of_fit: FloatArray) -> None:
    key = "record.model.columns.every"
    _require(len(columns) == X.shape[1], key, f"the {X.shape[1]} columns of X", len(columns))
    for n, (column, x) in enumerate(zip(columns.every, X.T, strict=True)):
        known, scaled = x[~np.isnan(x)], of_fit[~np.isnan(of_fit[:, n]), n]
        if column.varies and len(scaled):
            ends, low = (scaled.min(), scaled.max()), column.low
            has_ends = np.allclose(ends, (low, low + column.extent), atol=0.01 * column.extent)
            what = f"a column from {ends[0]:g} to {ends[1]:g}, the low and the extent of X"
            _require(has_ends, f"{key}[{n}]", what, f"{low:g} and {column.extent:g}")
        if column.levels is not None:
            is_level = np.isin(known, np.arange(len(column.levels.values))).all()
            _require(bool(is_level), f"{key}[{n}].levels", "those of all numbers of X", "fewer")
        _require(len(column.places) > 0, f"{key}[{n}].places", "one number or more", ())
        _check_scales(column.scales, COLUMN_SCALES, f"{key}[{n}]")


def _check_varying(record: Mapping[str, Any], key: str) -> None:
    scales = record["target"].scales
    for scale, one in record["varying"].items():
        _require(scale in scales, f"{key}.{scale}", "that of a scale of the target", scale)
        is_right = len(one.terms) <= MAX_TERMS and bool(np.isfinite(one.log_prior))
        what = f"at most {MAX_TERMS} terms with a finite log_prior"
        _require(is_right, f"{key}.{scale}", what, one.log_prior)
        for n, term in enumerate(one.terms):
            _check_term(term, record["columns"], f"{key}.{scale}.terms[{n}]")


def _check_term(term: NoiseTerm, columns: Columns, key: str) -> None:
    _require(0 <= term.column < len(columns), f"{key}.column", "the index of a column", term.column)
    _require(term.form in FORMS, f"{key}.form", f"one of {', '.join(FORMS)}", term.form)
    has_levels, knots = columns[term.column].levels is not None, term.knots
    is_right = term.form == GAP or (term.form == LEVELS) == has_levels
    _require(is_right, f"{key}.form", "levels of a category, and no other of it", term.form)
    is_ascending = knots.ndim == 1 and bool((np.diff(knots) > 0).all())
    is_right = is_ascending and (len(knots) == 0 if term.form == GAP else len(knots) > 1)
    _require(is_right, f"{key}.knots", "none of a gap, else two or more, ascending", knots)
    k = FORMS[term.form](np.zeros(1), knots).shape[1]
    for name, shape in (("centre", (k,)), ("coefficients", (k,)), ("covariance", (k, k))):
        _check_shape(getattr(term, name), shape, f"{key}.{name}")


def _check_scales(scales: Mapping[str, Scale], known: Sequence[str], key: str) -> None:
    for name, scale in scales.items():
        is_known = name == scale.name and name in known
        _require(is_known, f"{key}.scales.{name}.name", f"one of {', '.join(known)}", scale.name)


def _check_kernel(one: Evaluation | MixtureComponent, record: Mapping[str, Any], key: str) -> None:
    """Check that a kernel has columns and a scale of the model, and a number for each parameter."""
    expression, n, text = one.expression, len(record["columns"]), str(one.expression)
    _require(max(expression.columns, default=0) < n, key, f"a kernel of {n} columns", text)
    is_known = expression.target in record["target"].scales
    _require(is_known, key, "a kernel on a scale of the target", text)
    _check_shape(one.theta, (n_kernel_params(expression) + 1,), f"{key}.theta")


def _make_predictor(record: Mapping[str, Any], key: str) -> MakePredictor:
    name, number = record["name"], record["number"]
    _require(name in _PREDICTORS, f"{key}.name", f"one of {', '.join(_PREDICTORS)}", name)
    known, counted = _PREDICTORS[name]
    if counted is None:
        return known
    _require(number is not None and number > 0, f"{key}.number", "a whole number from 1", number)
    return partial(known, **{counted: number})


def _require(is_valid: bool, key: str, expected: str, got: object) -> None:
    if not is_valid:
        raise refusal(key, expected, got)


def _check_ascending(numbers: IntArray, key: str) -> None:
    _require(bool((np.diff(numbers) > 0).all()), key, "numbers of rows, ascending", numbers)


def _check_shape(values: Any, shape: tuple[int, ...], key: str) -> None:
    found = np.shape(values)
    _require(found == shape, key, f"an array of the shape {shape}", found)
