"""Fitted estimators as plain data, which JSON can hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from autokernel.data import FitData, RowNoise
from autokernel.data.columns import Levels
from autokernel.data.gaps import mark_missing
from autokernel.data.scales import Scale
from autokernel.data.scaling import Scaling, TargetScaling
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.evidence import Evaluation
from autokernel.evidence.evaluation import name_parameters
from autokernel.explain import history_table
from autokernel.expression import (
    Expression,
    Leaf,
    gaps_of,
    parse_expression,
    scales_of,
    with_gaps,
    with_scales,
)
from autokernel.inference import TrainingData, one_blas_thread
from autokernel.inference.base import MakePredictor
from autokernel.inference.exact import ExactPredictor
from autokernel.inference.inducing import InducingPredictor
from autokernel.inference.neighbours import NeighbourPredictor
from autokernel.kernels import BASE_KERNELS, OPERATORS, Seasonal, of_known
from autokernel.model import (
    TAIL_SHARE,
    FittedModel,
    KernelPosterior,
    MixtureComponent,
    MixturePredictor,
    common_rounding,
    to_sklearn,
)
from autokernel.typing import FloatArray
from autokernel.version import __version__

FORMAT_VERSION = 5
"""Version of the records; it changes whenever an older reader would misread one."""

_VERSIONS = (2, 3, 4, FORMAT_VERSION)

_PREDICTORS = {
    "exact": ExactPredictor,
    "inducing": InducingPredictor,
    "neighbours": NeighbourPredictor,
}
_ARRAYS = ("theta", "hessian")  # of an evaluation
_FORMAT = "autokernel"
_OF_SEARCH = ("n_iter_", "stop_reason_")


def to_dict(model: AutoKernelGPRegressor) -> dict[str, Any]:
    """Write a fitted estimator as a dict that ``json.dumps`` accepts.

    :func:`from_dict` makes an estimator of it that predicts the same to the last bit. Unlike a
    pickle, the dict can be shared: reading it runs no foreign code. It holds the training data.
    Parameters that are objects, such as a strategy, are left out, and so is the state that a warm
    start needs.

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
    names = getattr(model, "feature_names_in_", None)
    search = None
    if hasattr(model, "search_history_"):
        history = {
            name: {"dtype": values.dtype.str, "values": _as_json(values)}
            for name, values in model.search_history_.items()
        }
        search = {"history": history, "tried": model._tried}
        search |= {name: _as_json(getattr(model, name)) for name in _OF_SEARCH}
    settings = model.get_params(deep=False).items()
    categories = {str(column): one._asdict() for column, one in model.categories_.items()}
    return {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "autokernel": __version__,
        "settings": {name: _as_json(value) for name, value in settings if _is_plain(value)},
        "feature_names_in": None if names is None else [str(name) for name in names],
        "date_columns": model.date_columns_,
        "categories": _as_json(categories),
        "target_name": model.target_name_,
        "X_train": _as_json(model.X_train_),
        "y_train": _as_json(model.y_train_),
        "end": _as_json(model._end),
        "resolution": model.resolution_,
        "model": _model_record(model._fitted, model.X_train_, model.y_train_),
        "search": search,
    }


def from_dict(record: Mapping[str, Any]) -> AutoKernelGPRegressor:
    """Make a fitted estimator of the dict that :func:`to_dict` has returned.

    Raises
    ------
    ValueError
        If the dict is of another format or version, or an entry is missing.
    """
    if not isinstance(record, Mapping):
        raise ValueError(
            f"record must be the dict that to_dict returns, got {type(record).__name__}: "
            "json.loads makes a dict of a text"
        )
    if record.get("format") != _FORMAT:
        raise ValueError(
            f"record must be the dict that to_dict returns, with the format {_FORMAT!r}, got "
            f"{record.get('format')!r}"
        )
    if record.get("version") not in _VERSIONS:
        raise ValueError(
            f"record must have a version out of {_VERSIONS}, got {record.get('version')!r}: "
            f"autokernel {record.get('autokernel')} has written it, and can read it"
        )
    try:
        return _estimator(record)
    except KeyError as error:
        raise ValueError(
            f"record must be the dict that to_dict returns, but has no {error}"
        ) from error
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(
            f"record must be the dict that to_dict returns, but cannot be read: {error}"
        ) from error


def _estimator(record: Mapping[str, Any]) -> AutoKernelGPRegressor:
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record["settings"].items()
    }
    model = AutoKernelGPRegressor(**settings)
    X, y = _array(record["X_train"]), _array(record["y_train"])
    names, dates = record["feature_names_in"], list(record["date_columns"])
    categories = {
        int(column): Levels(tuple(one["values"]), one["is_ordered"])
        for column, one in record.get("categories", {}).items()
    }
    resolution = float(record.get("resolution", 0.0))
    data = FitData(
        X,
        y,
        RowNoise.equal(len(y)),
        feature_names=names,
        date_columns=dates,
        target_name=record["target_name"],
        categories=categories,
        resolution=resolution,
    )
    model._set_fitted(_model(record["model"], X, y), data)
    model._end = float(record.get("end", model._end))  # that of a row which is excluded
    search = record["search"]
    if search is not None:
        model._tried = search["tried"]
        history = {
            name: np.array(column["values"], dtype=column["dtype"])
            for name, column in search["history"].items()
        }
        model.search_history_ = history_table(history)
        for name in _OF_SEARCH:
            setattr(model, name, search[name])
    return model


def _is_plain(value: object) -> bool:
    """Whether JSON can hold a value of a parameter."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
    return value is None or isinstance(value, (bool, int, float, str, np.integer, np.floating))


def _model_record(model: FittedModel, X: FloatArray, y: FloatArray) -> dict[str, Any]:
    """Write a model; its rows only if they are not all rows of the estimator."""
    best = next(n for n, one in enumerate(model.kernels) if one.evaluation is model.evaluation)
    mixture = model.mixture
    data = mixture.data
    has_all = np.array_equal(data.X, mark_missing(model.scaling.apply(X))) and np.array_equal(
        data.y, model.target_scaling.apply(y)
    )
    places = gaps_of(_expressions(model))
    noise = {"row_noise": [_as_json(_common(values)) for values in _row_noise(data)]}
    return {
        "scaling": _fields(model.scaling),
        "target_scaling": _fields(model.target_scaling),
        "feature_names": model.feature_names,
        "noise": _as_json(model.scaled_noise_variance),
        "way": model.approximation,
        "seasons": _seasons(model),
        "scales": {text: asdict(scale) for text, scale in scales_of(_expressions(model)).items()},
        **(
            {"places": {str(c): _as_json(values) for c, values in places.items()}} if places else {}
        ),
        "kernels": [_kernel_record(one) for one in model.kernels],
        "best": best,
        "outliers": [_as_json(values) for values in model.outliers],
        "numbers": _as_json(model.rows),
        "predictor": _predictor_record(mixture.make_predictor),
        "components": [_fields(one) for one in mixture.components],
        "tail_share": mixture.tail_share,
        "rows": None if has_all else {"X": _as_json(data.X), "y": _as_json(data.y)},
        **(noise if data.noise.differs else {}),
    }


def _model(record: Mapping[str, Any], X: FloatArray, y: FloatArray) -> FittedModel:
    scaling = Scaling(*(_array(record["scaling"][name]) for name in ("shift", "scale")))
    target = record["target_scaling"]
    target_scaling = TargetScaling(float(target["shift"]), float(target["scale"]))
    seasons = [Seasonal.from_record(one) for one in record["seasons"]]
    scales = {text: Scale(**one) for text, one in record["scales"].items()}
    places = {int(column): tuple(one) for column, one in record.get("places", {}).items()}

    def expression_of(text: str) -> Expression:
        parsed = parse_expression(text, base_kernels=seasons)
        return with_gaps(with_scales(parsed, scales), places)

    kernels = [_kernel(one, expression_of) for one in record["kernels"]]
    evaluation = kernels[record["best"]].evaluation
    components = [
        MixtureComponent(
            expression_of(one["expression"]),
            _array(one["theta"]),
            float(one["weight"]),
        )
        for one in record["components"]
    ]
    had_tails = TAIL_SHARE * record["components"][0].get("has_heavy_tails", False)
    rows = record["rows"]
    n = len(y) if rows is None else len(rows["y"])
    row_noise = (np.broadcast_to(_array(one), n) for one in record.get("row_noise", [1.0]))
    noise_of_rows = RowNoise(*row_noise)
    if rows is None:
        data = TrainingData(mark_missing(scaling.apply(X)), target_scaling.apply(y), noise_of_rows)
    else:
        data = TrainingData(
            _array(rows["X"]).reshape(-1, X.shape[1]), _array(rows["y"]), noise_of_rows
        )
    with one_blas_thread():  # as in the fit, for bit-identical results
        mixture = MixturePredictor(
            components,
            data,
            _make_predictor(record["predictor"]),
            tail_share=float(record.get("tail_share", had_tails)),
        )
    noise = float(record["noise"])
    names = record["feature_names"]
    kernel = to_sklearn(
        evaluation.expression,
        evaluation.theta,
        scaling=scaling,
        noise_variance=noise + common_rounding(evaluation.expression, data),
        feature_names=names,
    )
    rows, deviations = record.get("outliers", ([], []))
    return FittedModel(
        evaluation,
        noise,
        mixture,
        kernel,
        scaling,
        target_scaling,
        names,
        kernels,
        record["way"],
        (np.array(rows, dtype=int), _array(deviations)),
        np.array(record.get("numbers", np.arange(len(y))), dtype=int),
    )


def _as_json(value: Any) -> Any:
    """Write numbers and arrays as JSON holds them; numbers that are not finite become texts."""
    if isinstance(value, Expression):
        return _parseable(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_as_json(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _as_json(one) for name, one in value.items()}
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else str(float(value))
    return value


def _row_noise(data: TrainingData) -> tuple[FloatArray, ...]:
    noise = data.noise
    return noise.weights, noise.errors, noise.rounding


def _common(values: FloatArray) -> FloatArray:
    """Return the one number that all values are, or else the values."""
    return values[0] if (values == values[0]).all() else values


def _array(values: Sequence[Any]) -> FloatArray:
    return np.array(values, dtype=float)


def _fields(record: Any) -> dict[str, Any]:
    """Write a record; the parameters of an evaluation follow from its theta."""
    names = [field.name for field in fields(record) if field.name != "parameters"]
    return {name: _as_json(getattr(record, name)) for name in names}


def _kernel_record(kernel: KernelPosterior) -> dict[str, Any]:
    evaluation = _fields(kernel.evaluation)
    expression = evaluation.pop("expression")
    return {"expression": expression, **_fields(kernel), "evaluation": evaluation}


def _expressions(model: FittedModel) -> list[Expression]:
    expressions = [one.expression for one in model.mixture.components]
    return expressions + [one.evaluation.expression for one in model.kernels]


def _seasons(model: FittedModel) -> list[dict[str, float]]:
    """Write the known periods of the kernels, one of each name."""
    seasons = {
        kernel.name: kernel
        for expression in _expressions(model)
        for kernel in (of_known(leaf.kernel) for leaf in expression.leaves)
        if isinstance(kernel, Seasonal)
    }
    return [one.record for one in seasons.values()]


def _kernel(
    record: Mapping[str, Any], expression_of: Callable[[str], Expression]
) -> KernelPosterior:
    expression = expression_of(record["expression"])
    entries = dict(record["evaluation"])
    for name, value in entries.items():
        if name in _ARRAYS:
            entries[name] = _array(value)
        elif name not in ("status", "n_params", "n_evaluations"):
            entries[name] = float(value)
    parameters = name_parameters(expression, entries["theta"])
    evaluation = Evaluation(expression=expression, parameters=parameters, **entries)
    return KernelPosterior(
        evaluation,
        float(record["probability"]),
        float(record["log_score"]),
        _array(record["draws"]),
        float(record["pareto_k"]),
    )


def _parseable(expression: Expression) -> str:
    """Write an expression; one with a custom base kernel or operator cannot be read again."""
    known = {*BASE_KERNELS.values(), *OPERATORS.values()}
    for tree in expression.body.subtrees():
        own = of_known(tree.kernel) if isinstance(tree, Leaf) else tree.declared
        is_known = own in known or isinstance(own, Seasonal)
        if tree.n_leaves and not is_known:
            raise ValueError(
                f"to_dict can hold the base kernels and operators that are built in, got "
                f"{tree.declared!r} in {expression}: pickle the model, as joblib.dump does"
            )
    return str(expression)


def _predictor_record(make: MakePredictor) -> dict[str, Any]:
    function, settings = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    (name,) = (name for name, known in _PREDICTORS.items() if known is function)
    return {"name": name, **settings}


def _make_predictor(record: Mapping[str, Any]) -> MakePredictor:
    settings = {name: value for name, value in record.items() if name != "name"}
    known = _PREDICTORS[record["name"]]
    return partial(known, **settings) if settings else known
