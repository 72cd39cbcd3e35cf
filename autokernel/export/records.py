"""Fitted estimators as plain data, which JSON can hold."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from autokernel.data import Columns, RowNoise, Target
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.exceptions import warn_user
from autokernel.explain import history_table
from autokernel.expression import custom_parts
from autokernel.inference import (
    ExactPredictor,
    InducingPredictor,
    MakePredictor,
    NeighbourPredictor,
    TrainingData,
    one_blas_thread,
)
from autokernel.model import (
    FittedModel,
    KernelPosterior,
    MixtureComponent,
    MixturePredictor,
    Outliers,
)
from autokernel.model.packing import as_columns, from_columns
from autokernel.typing import FloatArray
from autokernel.version import __version__

FORMAT_VERSION = 8
"""Version of the records; it changes whenever an older reader would misread one."""

_PREDICTORS = {
    "exact": ExactPredictor,
    "inducing": InducingPredictor,
    "neighbours": NeighbourPredictor,
}
_FORMAT = "autokernel"
_OF_SEARCH = ("n_iter_", "stop_reason_")


def to_dict(model: AutoKernelGPRegressor) -> dict[str, Any]:
    """Write a fitted estimator as a dict that ``json.dumps`` accepts.

    :func:`from_dict` makes an estimator of it that predicts the same to the last bit. Unlike a
    pickle, the dict can be shared: reading it runs no foreign code. It holds the training data.
    Parameters that are objects, such as a strategy, are left out with a warning, and so is the
    state that a warm start needs.

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
    record = _model_record(model._fitted, model.X_train_, model.y_train_)
    search = None
    if hasattr(model, "search_history_"):
        history = {
            name: {"dtype": values.dtype.str, "values": _as_json(values)}
            for name, values in model.search_history_.items()
        }
        search = {"history": history, "tried": model._tried}
        search |= {name: _as_json(getattr(model, name)) for name in _OF_SEARCH}
    settings, objects = {}, []
    for name, value in model.get_params(deep=False).items():
        try:
            settings[name] = _written_setting(value)
        except TypeError:
            objects.append(name)
    if objects:
        warn_user(
            f"to_dict leaves out what is no plain data, {', '.join(objects)}: the model that is "
            "read has the default instead, and predicts the same"
        )
    return {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "autokernel": __version__,
        "settings": settings,
        "target_name": model.target_name_,
        "X_train": _as_json(model.X_train_),
        "y_train": _as_json(model.y_train_),
        "end": _as_json(model._end),
        "resolution": model.resolution_,
        "model": record,
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
    if record.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"record must have the version {FORMAT_VERSION}, got {record.get('version')!r}: "
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
    settings = {name: _read_setting(value) for name, value in record["settings"].items()}
    model = AutoKernelGPRegressor(**settings)
    X, y = _array(record["X_train"]), _array(record["y_train"])
    model._set_fitted(_fitted_model(record["model"], X, y), X, y)
    model.target_name_, model.resolution_ = record["target_name"], float(record["resolution"])
    model._end = float(record["end"])
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


def _written_setting(value: Any) -> Any:
    """Write a parameter; a mapping, whose keys may be numbers, becomes a list of its items."""
    if isinstance(value, Mapping):
        return {"items": [[_as_json(key), _written_setting(one)] for key, one in value.items()]}
    return _as_json(value)


def _read_setting(value: Any) -> Any:
    """Read a parameter that :func:`_written_setting` has written; lists become tuples."""
    if isinstance(value, Mapping):
        return {key: _read_setting(one) for key, one in value["items"]}
    return tuple(map(_read_setting, value)) if isinstance(value, list) else value


def _model_record(model: FittedModel, X: FloatArray, y: FloatArray) -> dict[str, Any]:
    """Write a model; its rows only if they are not all rows of the estimator."""
    mixture, data = model.mixture, model.mixture.data
    custom = custom_parts([one.expression for one in mixture.components])
    custom += custom_parts([one.evaluation.expression for one in model.kernels])
    if custom:
        raise ValueError(
            f"to_dict can hold the base kernels and operators that are built in, got {custom[0]!r}"
            ": pickle the model, as joblib.dump does"
        )
    has_all = np.array_equal(data.X, model.columns.inputs(X).values, equal_nan=True)
    has_all = has_all and np.array_equal(data.u, model.target.forward(y))
    state = model.__getstate__()
    del state["mixture"]
    return {
        **_as_json(state),
        "columns": _as_json(model.columns.record),
        "target": _as_json(model.target.record),
        "noise": _as_json(data.noise.record),
        "rows_of_model": None if has_all else {"X": _as_json(data.X), "y": _as_json(data.u)},
        "predictor": _predictor_record(mixture.make_predictor),
        "components": _as_json(as_columns(mixture.components)),
        "tail_share": mixture.tail_share,
    }


def _fitted_model(record: Mapping[str, Any], X: FloatArray, y: FloatArray) -> FittedModel:
    columns, target = Columns.of_record(record["columns"]), Target.of_record(record["target"])
    inputs, targets = columns.inputs(X, first_row=0), target.forward(y)
    rows = record["rows_of_model"]
    if rows is not None:
        values = _array(rows["X"]).reshape(-1, X.shape[1])
        inputs, targets = columns.scaled(values, first_row=0), _array(rows["y"])
    noise = RowNoise.of_record(targets.shape, record["noise"])
    with one_blas_thread():  # as in the fit, for bit-identical results
        mixture = MixturePredictor(
            from_columns(MixtureComponent, record["components"]),
            TrainingData(inputs, targets, noise, target),
            _make_predictor(record["predictor"]),
            tail_share=float(record["tail_share"]),
        )
    kernels = from_columns(KernelPosterior, record["kernels"])
    numbers, deviations, X_excluded, y_excluded = record["outliers"]
    return FittedModel(
        evaluation=kernels[record["evaluation"]].evaluation,
        scaled_noise_variance=float(record["scaled_noise_variance"]),
        mixture=mixture,
        kernels=kernels,
        approximation=record["approximation"],
        outliers=Outliers(
            np.array(numbers, dtype=int),
            _array(deviations),
            _array(X_excluded).reshape(-1, X.shape[1]),
            _array(y_excluded),
        ),
        rows=np.array(record["rows"], dtype=int),
    )


def _as_json(value: Any) -> Any:
    """Write numbers and arrays as JSON holds them; numbers that are not finite become texts."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_as_json(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _as_json(one) for name, one in value.items()}
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else str(float(value))
    if value is None or isinstance(value, str):
        return value if value is None else str(value)  # not that of an enumeration
    raise TypeError(f"{value!r} is no plain data")


def _array(values: Any) -> FloatArray:
    return np.array(values, dtype=float)


def _predictor_record(make: MakePredictor) -> dict[str, Any]:
    function, settings = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    (name,) = (name for name, known in _PREDICTORS.items() if known is function)
    return {"name": name, **settings}


def _make_predictor(record: Mapping[str, Any]) -> MakePredictor:
    settings = {name: value for name, value in record.items() if name != "name"}
    known = _PREDICTORS[record["name"]]
    return partial(known, **settings) if settings else known
