"""A fitted estimator in other forms."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from autokernel.descriptions import DescriptionMixin
from autokernel.explain import Trials
from autokernel.explanations import ExplanationMixin
from autokernel.export import (
    FORMAT_VERSION,
    gpflow_source,
    gpytorch_source,
    latex_of,
    model_of,
    record_of,
    write_report,
)
from autokernel.export.records import numbers, plain
from autokernel.version import __version__

_FORMAT = "autokernel"
_OF_SEARCH = ("n_iter_", "stop_reason_")


class ExportMixin(ExplanationMixin, DescriptionMixin):
    """The model of ``fit`` as a dict for JSON, as a formula, or as a program."""

    def to_dict(self) -> dict[str, Any]:
        """Write the fitted estimator as a dict that ``json.dumps`` accepts.

        :meth:`from_dict` makes an estimator of it that predicts the same to the last bit. Unlike a
        pickle, the dict can be shared: to read it runs no code of others. It holds the training
        data. Parameters that are objects, such as a strategy, are left out, and so is what a warm
        start needs.

        Raises
        ------
        ValueError
            If a kernel holds a base kernel or an operator of yours.
        """
        check_is_fitted(self, "best_kernel_")
        names = getattr(self, "feature_names_in_", None)
        search = None
        if hasattr(self, "search_history_"):
            history = {
                name: {"dtype": values.dtype.str, "values": plain(values)}
                for name, values in self.search_history_.items()
            }
            search = {"history": history, "tried": self._tried}
            search |= {name: plain(getattr(self, name)) for name in _OF_SEARCH}
        return {
            "format": _FORMAT,
            "version": FORMAT_VERSION,
            "autokernel": __version__,
            "settings": {
                name: plain(value)
                for name, value in self.get_params(deep=False).items()
                if _is_plain(value)
            },
            "feature_names_in": None if names is None else [str(name) for name in names],
            "date_columns": self.date_columns_,
            "X_train": plain(self.X_train_),
            "y_train": plain(self.y_train_),
            "model": record_of(self._fitted),
            "search": search,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Make a fitted estimator of what :meth:`to_dict` has returned.

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
                f"record must be what to_dict returns, with the format {_FORMAT!r}, got "
                f"{record.get('format')!r}"
            )
        if record.get("version") != FORMAT_VERSION:
            raise ValueError(
                f"record must have version {FORMAT_VERSION}, got {record.get('version')!r}: "
                f"autokernel {record.get('autokernel')} has written it, and can read it"
            )
        try:
            return cls._read(record)
        except KeyError as error:
            raise ValueError(f"record must be what to_dict returns, but has no {error}") from error
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise ValueError(
                f"record must be what to_dict returns, but cannot be read: {error}"
            ) from error

    @classmethod
    def _read(cls, record: Mapping[str, Any]) -> Self:
        """Read a dict whose version is right."""
        settings = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in record["settings"].items()
        }
        self = cls(**settings)
        X = numbers(record["X_train"])
        self.n_features_in_ = X.shape[1]
        if record["feature_names_in"] is not None:
            self.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)
        self.date_columns_ = list(record["date_columns"])
        self._expose_refit(model_of(record["model"]), X, numbers(record["y_train"]))
        search = record["search"]
        if search is not None:
            self._tried = search["tried"]
            history = {
                name: np.array(column["values"], dtype=column["dtype"])
                for name, column in search["history"].items()
            }
            self.search_history_ = Trials(history)
            for name in _OF_SEARCH:
                setattr(self, name, search[name])
        return self

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        units: Mapping[str, str] | None = None,
        title: str | None = None,
    ) -> Path:
        """Write a report into one HTML file that needs no network, and return its path.

        It tells and shows each component, the kernels and columns with their probabilities, the
        parameters, the search, calibration by leave-one-out, settings and versions. It needs
        matplotlib: ``pip install 'autokernel-gp[plot]'``.

        Parameters
        ----------
        path : str or path-like
            File to write.
        units : mapping of str to str, default=None
            Units, as for :meth:`describe`.
        title : str, default=None
            Title of the page.
        """
        check_is_fitted(self, "best_kernel_")
        return write_report(self, Path(path), units=units, title=title)

    def to_latex(self) -> str:
        r"""Write the covariance function of the best kernel in LaTeX, with its fitted values.

        Inputs and target are in your units. ``\varsigma`` is the logistic function.
        """
        check_is_fitted(self, "best_kernel_")
        return latex_of(self._fitted)

    def to_gpytorch(self) -> str:
        """Write a program for GPyTorch whose model predicts as the best kernel does.

        ``make_model(X, y)`` returns the model and its likelihood for rows in your units, and
        ``predict(model, likelihood, X)`` mean and standard deviation.

        Raises
        ------
        ValueError
            If the kernel holds an operator of yours, or a base kernel that is not written for it.
        """
        check_is_fitted(self, "best_kernel_")
        return gpytorch_source(self._fitted)

    def to_gpflow(self) -> str:
        """Write a program for GPflow whose model predicts as the best kernel does.

        ``make_model(X, y)`` returns the model for rows in your units, and ``predict(model, X)``
        mean and standard deviation.

        Raises
        ------
        ValueError
            If the kernel holds an operator of yours, or a base kernel that is not written for it.
        """
        check_is_fitted(self, "best_kernel_")
        return gpflow_source(self._fitted)


def _is_plain(value: object) -> bool:
    """Whether JSON can hold a value of a parameter."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
    return value is None or isinstance(value, (bool, int, float, str, np.integer, np.floating))
