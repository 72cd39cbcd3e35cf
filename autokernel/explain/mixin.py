"""What a fitted estimator says of its function: effects, contributions, slopes, words, tables."""

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from autokernel.explain.decomposition import Decomposition
from autokernel.explain.description import Description
from autokernel.explain.questions import average_slopes, compared, contributions, slopes_at
from autokernel.explain.tables import Table, Text, leaderboard, parameter_table
from autokernel.model import FittedModel
from autokernel.search import CUT, MEANINGS
from autokernel.typing import FloatArray


class ExplainMixin:
    """The methods and attributes of a fitted estimator that explain its function."""

    _fitted: FittedModel
    _described: dict[object, Description]  # the last descriptions by their arguments
    _tried: list[str]  # canonical texts of the kernels of the last search
    _n_searched: int  # rows of that search
    _check_inputs: Callable[[npt.ArrayLike], FloatArray]  # as for predict
    X_train_: FloatArray
    target_name_: str | None
    stop_reason_: str
    search_history_: Table
    outcomes_: Table

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
            ``constant``, ``noise_std`` and ``components``: the effects of columns and their five
            largest interactions, those of the largest share first, each with ``name``,
            ``expression``, ``columns``, ``text``, ``mean`` and ``std`` (n_samples,) in the units of
            y, and ``share``, of the variance explained. A last component without columns is the
            rest: other interactions, and what averages over kernels and parameters add. The
            constant and the means add up to ``predict``, on another ``scale`` of the target to
            ``predict_quantiles(X, [0.5])`` on this scale. On the log scale they are factors of it.
        """
        check_is_fitted(self, "best_kernel_")
        inputs = self.X_train_ if X is None else self._check_inputs(X)
        return self.explanation(units).decompose(inputs)

    def explain(self, X: npt.ArrayLike) -> Table:
        """Split predictions into the contributions of the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs of one row or more, such as ``table.iloc[[7]]``.

        Returns
        -------
        Table
            ``row``, the place of a row in ``X``, if there are several; ``effect``: first the
            ``"constant"``, then columns and pairs of columns that interact, the largest first, then
            the ``"rest"``, if there is one, and last their sum, the ``"prediction"``; their
            ``contribution``, as in :meth:`decompose`, with the central 90 % interval from ``low``
            to ``high`` of the posterior, without noise. The rest has none. If the best kernel is on
            the log scale of the target, contributions are factors, whose product is the
            ``"median"``; on another scale they add up to the median on this scale.
        """
        inputs, description = self._check_inputs(X), self.explanation()
        found = description.decompose(inputs, has_words=False)
        return contributions(found, description.explained, self._fitted.scaled(inputs))

    def compare(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Table:
        """Compare the average predictions at two groups of rows.

        Parameters
        ----------
        A, B : array-like of shape (n_samples_A, n_features) and (n_samples_B, n_features)
            Inputs, one row or more in each; the two need not have the same number of rows.

        Returns
        -------
        Table
            The rows ``"A"`` and ``"B"`` have the means of ``predict``, ``"A - B"`` their
            difference, and ``"A / B"`` their ratio, if the best kernel is on the log scale. Besides
            the ``estimate`` there are the central 90 % interval from ``low`` to ``high``, in the
            unit of y, the one from ``new_low`` to ``new_high`` of averages of new observations at
            these rows, and the ``probability`` that the difference has the sign of the estimate, or
            that the ratio is on its side of one, nan if there is no difference. If each group has
            one value of some column, such as a gender, ``"A - B, only gender"`` is the difference
            all else equal: between all rows of both groups with the value of A, and with that of B.
            Intervals are those of the function by 2000 joint draws of at most 500 rows of each
            group; a row of both groups, with its missing values, is the same in both.
        """
        first, second = self._check_inputs(A), self._check_inputs(B)
        return compared(self._fitted, first, second)

    def slopes(
        self,
        column: str | int,
        X: npt.ArrayLike | None = None,
        *,
        by: str | int | None = None,
        at: npt.ArrayLike | None = None,
    ) -> Table:
        """Compute how the prediction changes per unit of a column of numbers or dates.

        Parameters
        ----------
        column : str or int
            The column, by its name or its zero-based index; ``"x0"`` is the first without names.
        X : array-like of shape (n_samples, n_features), default=None
            Rows to average over; None for those of ``fit``. Missing values count as medians.
        by : str or int, default=None
            A column, for each value or level of which the average is taken; None for all rows
            together.
        at : array-like of shape (n_samples, n_features), default=None
            Rows at each of which the derivative is computed, instead of averages.

        Returns
        -------
        Table
            ``rows``, the value or level of ``by``, ``"all"``, or the places of rows in ``at``; the
            ``estimate`` in the unit of y per unit of the column, per day for dates, between the
            values on both sides if the column has at most 20, the central 90 % interval from
            ``low`` to ``high``, and the ``probability`` of the sign of the estimate. A column that
            no kernel uses has zeros, and nan for it.

        Raises
        ------
        ValueError
            If the column holds categories, which have no slope: :meth:`compare` takes two groups of
            rows; or if ``at`` is given with ``X`` or ``by``.
        """
        check_is_fitted(self, "best_kernel_")
        if at is not None:
            if X is not None or by is not None:
                raise ValueError("slopes takes at=rows for derivatives, or X and by for averages")
            return slopes_at(self._fitted, self._check_inputs(at), column)
        inputs = self.X_train_ if X is None else self._check_inputs(X)
        return average_slopes(self._fitted, inputs, column, by)

    @property
    def claims_(self) -> Table:
        """What is said of the fitted function, with a row for each claim.

        The columns of the table are ``subject``: the target, a column, or a component by its
        kernel; ``predicate``, such as ``"rises"``; ``value``, with the central 90 % interval from
        ``low`` to ``high``, in the units of the columns and of ``y``, or a factor on the log scale
        of the target; ``probability``, the share of draws of kernel, parameters and function for
        which the claim holds; ``evidence``, how it was computed; and ``text``, the words of
        :meth:`describe`.
        """
        return self.explanation().table()

    def describe(self, units: Mapping[str, str] | None = None, *, short: bool = False) -> str:
        """Describe the fitted function in words.

        Parameters
        ----------
        units : mapping of str to str, default=None
            Units of the target, under its name or ``"y"``, and of columns by name, or by ``x0``,
            ``x1`` and so on, such as ``{"time": "years", "y": "passengers"}``. Dates have none.
        short : bool, default=False
            Whether to say only what is largest, in at most three lines.

        Returns
        -------
        str
            A paragraph about the whole, one for each component, and one about what does not fit.
            Each sentence is a row of :attr:`claims_`. A console and a notebook show the text
            without ``print``.
        """
        description = self.explanation(units)
        return Text(description.short() if short else str(description))

    @property
    def parameters_(self) -> Table:
        """The parameters of the best kernel, with a row for each parameter of each component.

        The columns of the table are ``component``, numbered from one in the order of the kernel,
        zero for the noise; ``leaf`` and ``column``, the base kernel and its column; ``parameter``
        with its ``value`` and the central 90 % interval from ``low`` to ``high``; and ``unit``,
        such as ``"age"``, ``"log(age)"`` or ``"variance of log(y)"``, or empty. The variance of the
        noise is that without rounding.
        """
        check_is_fitted(self, "best_kernel_")
        return parameter_table(self._fitted)

    def leaderboard(self, k: int = 10) -> Table:
        """Return the ``k`` best kernels of the search.

        The dict of arrays prints as a table, and ``pandas.DataFrame`` accepts it. Scores are those
        of the last ``row_set`` of ``search_history_``; a line below the table says what
        :meth:`refit` has fitted after it.

        Parameters
        ----------
        k : int, default=10
            Largest number of rows.

        Returns
        -------
        Table
            Columns ``rank``, ``chosen``, ``score`` and ``score_per_sample`` in nats, ``n_leaves``,
            ``n_params``, ``phase``, ``status`` and ``kernel``.

        Raises
        ------
        NotFittedError
            If there was no search.
        """
        check_is_fitted(self, "best_kernel_")
        if not hasattr(self, "search_history_"):
            raise NotFittedError(
                f"this {type(self).__name__} was fitted by refit, which does not search: call fit "
                "to have a search"
            )
        check_scalar(k, "k", Integral, min_val=1)
        n_added = int(np.sum(~self.outcomes_["outlier"]))
        return leaderboard(self.search_history_, self._tried, self._fitted, k=k, n_added=n_added)

    def explanation(self, units: Mapping[str, str] | None = None) -> Description:
        """Return the record that :meth:`describe`, displays and reports read.

        The last two are kept until the next fit, with the factorisations of their draws, as these
        take longer than predictions.

        Parameters
        ----------
        units : mapping of str to str, default=None
            Units, as for :meth:`describe`.

        Returns
        -------
        Description
            The fitted model, and its effects with their facts and sentences.
        """
        check_is_fitted(self, "best_kernel_")
        tried = getattr(self, "_tried", [])
        canonical = self._fitted.evaluation.expression.canonical
        is_of_search = canonical in (*tried, getattr(self, "_found", None))  # no later refit
        given: dict[str, Any] = {
            "target_name": self.target_name_,
            "cut": MEANINGS[self.stop_reason_] if is_of_search and self.stop_reason_ in CUT else "",
            "n_searched": self._n_searched if is_of_search else 0,
            "has_tried_log": any(text.startswith("log(y) ~") for text in tried),
        }
        key = self._fitted, repr(units), *given.values()  # models are equal only to themselves
        known = getattr(self, "_described", {})  # read once, as threads may share an estimator
        if key not in known:
            last = [*known.items()][-1:]
            self._described = known = dict(last) | {key: Description(self._fitted, units, **given)}
        return known[key]
