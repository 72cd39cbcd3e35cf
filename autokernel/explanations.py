"""Explanations by a fitted estimator."""

from collections.abc import Mapping

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from autokernel.data.dates import SINCE
from autokernel.explain import TARGET, Decomposition, Description, Table, parameter_table
from autokernel.predictions import PredictionMixin
from autokernel.typing import FloatArray
from autokernel.validation import did_you_mean


class ExplanationMixin(PredictionMixin):
    """Components and words for the best kernel of ``fit``.

    The best kernel at its best parameters is explained, not the average over kernels.
    """

    X_train_: FloatArray

    def decompose(
        self, X: npt.ArrayLike | None = None, *, units: Mapping[str, str] | None = None
    ) -> Decomposition:
        """Split the fitted function into components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Inputs; None for those of ``fit``.
        units : mapping of str to str, default=None
            Units for the texts, as for :meth:`describe`.

        Returns
        -------
        Decomposition
            ``constant``, ``noise_std`` and ``components``, those of the largest share first, each
            with ``expression``, ``text``, ``mean`` and ``std`` (n_samples,) in the units of y, and
            ``share``, of the variance explained. If predictions average over kernels or
            parameters, the last component is what averaging adds to the best kernel. The constant
            and the means add up to ``predict``.
        """
        check_is_fitted(self, "best_kernel_")
        inputs = self.X_train_ if X is None else self._check_inputs(X)
        return self._description(units).decompose(inputs)

    def describe(self, units: Mapping[str, str] | None = None) -> str:
        """Tell the fitted kernel in words.

        Parameters
        ----------
        units : mapping of str to str, default=None
            Units of columns by name, ``x0``, ``x1`` and so on where they have none, and of the
            target under ``"y"``, such as ``{"time": "years", "y": "thousand passengers"}``. Columns
            of dates are in days, and their places are told as dates.

        Returns
        -------
        str
            A paragraph about the whole, and one about each component.
        """
        check_is_fitted(self, "best_kernel_")
        return str(self._description(units))

    @property
    def parameters_(self) -> Table:
        """The parameters of the best kernel, a row for each parameter of each component.

        The table has the keys ``component``, from one on in the order of the kernel, zero for the
        noise; ``leaf`` and ``column``, the base kernel and its column; ``parameter`` with ``value``
        and the central 90 % interval from ``low`` to ``high``; and ``unit``: a column, in whose
        units the value is, ``"variance of y"``, or none.
        """
        check_is_fitted(self, "best_kernel_")
        return parameter_table(self._fitted)

    def _description(self, units: Mapping[str, str] | None) -> Description:
        """Check the units and begin to describe."""
        if units is not None and not isinstance(units, Mapping):
            raise ValueError(f"units must be a mapping such as {{'time': 'years'}}, got {units!r}")
        dates = [self._fitted.column_names[column] for column in self.date_columns_]
        units = {**dict.fromkeys(dates, SINCE), **(units or {})}
        known = {*self._fitted.column_names, TARGET}
        for name, unit in units.items():
            if name not in known or not isinstance(unit, str):
                raise ValueError(
                    f"units must map names out of {sorted(known)} to texts such as 'years', got "
                    f"{name!r}: {unit!r}{did_you_mean(name, known - {name})}"
                )
        if TARGET in units and TARGET in self._fitted.column_names:
            raise ValueError(
                f"units[{TARGET!r}] is that of the target, and a column has this name too: give "
                "the column another name"
            )
        return Description(self._fitted, units)
