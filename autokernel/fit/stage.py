"""A stage of a search: rows that are kept, the noise, the kernels, and what was tried on them."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

import numpy as np

from autokernel.data import FitData, NoiseFunction
from autokernel.data.checks import text_of_rows
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Evaluator
from autokernel.fit.arguments import AUTO, Arguments
from autokernel.fit.rows import SHARE_OF_TIME, training_data
from autokernel.fit.space import Space, searched_columns
from autokernel.inference import TrainingData
from autokernel.many_rows import (
    BoundedEvaluator,
    ByStateSpace,
    approximation_for,
    latest_rows,
    n_held_out,
    no_gain_seen_by,
    rows_of_groups,
    rows_of_stages,
    shuffled_rows,
)
from autokernel.search import History, Task
from autokernel.search.columns import MAX_COLUMNS
from autokernel.typing import IntArray


class Stage:
    """The rows of a stage, and the kernels for them.

    Of the given rows, those but the ``outliers`` are kept: ``rows`` as the user counts them, and
    ``data``. The ``n_searched`` of this stage are in the evaluator, the ``last`` ones are those of
    the last stage, and rows held out for the choice of a predictor are in none. On the scales of
    the target of ``varying``, the noise varies. Columns that were ``periodic`` before stay so.
    """

    def __init__(
        self,
        given: FitData,
        arguments: Arguments,
        seed: int,
        *,
        outliers: IntArray,
        number: int = 0,
        varying: Mapping[str, NoiseFunction] = MappingProxyType({}),
        periodic: AbstractSet[int] = frozenset(),
        deadline: Deadline = NEVER,
    ) -> None:
        self.given, self.outliers, self._arguments, self._seed = given, outliers, arguments, seed
        kept = given.without(outliers)
        self.rows = kept.rows  # as the user counts them
        self.data = training_data(kept).with_varying(varying)
        self.columns = self.data.inputs.columns
        self._used = searched_columns(self.columns, arguments)
        name, n, strategy = arguments.approximation, len(kept.y), arguments.strategy
        self.approximation = approximation_for(name, n, arguments.n_inducing)
        is_series = self._column_of_series is not None
        self.is_long_series = is_series and self.approximation is not None  # by state space
        climbs = strategy.climbs(reduces=arguments.structure_prior is not None)
        by_bounds, goes_on = strategy.scores_by_bounds, 1 < len(self._used) <= MAX_COLUMNS
        n_of_stages = rows_of_stages(name, n, by_bounds=by_bounds, climbs=climbs and goes_on)
        self.number = min(number, len(n_of_stages) - 1)
        self.is_last = self.number == len(n_of_stages) - 1
        self.n_searched, order = n_of_stages[self.number], self._in_order(n_of_stages[0])
        self.last = self._some(order[: n_of_stages[-1]])
        searched = self._some(order[: self.n_searched])
        n_of_choice = n_held_out(n) if self.approximation else 0  # of a predictor
        others = order[self.n_searched : n - n_of_choice]
        shows_no_gain = None
        if climbs and arguments.tol and len(others):
            shows_no_gain = no_gain_seen_by(self.data.take(others), given=searched)
        until = deadline.share(SHARE_OF_TIME)
        self.space = Space(kept, searched, arguments, periodic=periodic, deadline=until)
        self.is_by_bounds = by_bounds and self.number == 0
        self.evaluator = self._evaluator_of(searched)
        self.task = Task(
            self.space.grammar,
            self.evaluator,
            start=self.space.start,
            tol=arguments.tol,
            series=given.series,
            shows_no_gain=shows_no_gain,
        )
        self.history = History(self.evaluator.n_samples)

    @property
    def is_exact_on_all(self) -> bool:
        """Whether scores are exact, and of all rows."""
        return self.n_searched == len(self.rows) and not self.is_by_bounds

    def _some(self, rows: IntArray) -> TrainingData:
        return self.data if len(rows) == len(self.data.y) else self.data.take(np.sort(rows))

    def _in_order(self, n_first: int) -> IntArray:
        """Order the rows to search on: at random, the latest of a series, or whole groups first."""
        inputs, (_, groups) = self.data.inputs, self.given.series
        order = shuffled_rows(len(inputs), self._seed)
        if self._column_of_series is not None:
            first = latest_rows(inputs, self._column_of_series, n_first)
        elif groups and self._arguments.strategy.is_of_series:
            first = rows_of_groups(inputs, groups, n_first, seed=self._seed)
        else:
            return order
        return np.concatenate([first, order[~np.isin(order, first)]])

    @property
    def _column_of_series(self) -> int | None:
        """The only column that is used, along which the rows are a series, None if they are not."""
        arguments, (time, _) = self._arguments, self.given.series
        is_series = time is not None and self._used == [time] and not self.columns[time].n_gaps
        is_series = is_series and arguments.strategy.is_of_series
        return time if is_series and arguments.approximation == AUTO else None

    def text_of_changes(self, before: "Stage | None") -> str:
        """Say what differs from the stage before, and which rows the first one has, in lines."""
        lines, n, rows = list[str](), self.n_searched, self.given.rows[self.outliers]
        if before is None and not (self.is_last and self.is_exact_on_all):
            how = "exactly" if self.approximation is None else self.approximation.text
            how = ByStateSpace.text if self.is_long_series else how
            more = ", by bounds" * self.is_by_bounds
            more += f", then on {len(self.last.y)}" * (n < len(self.last.y))
            of_search = f"{len(self.rows)} rows: kernels are searched on {n} of them{more}"
            lines.append(f"{of_search}, and the best are fitted to all, {how}")
        if before is not None and self.number != before.number:
            lines.append(f"the search continues on {n} rows: the best kernels are scored again")
        if before is not None and self.data.varying != before.data.varying:
            lines.append("the noise varies in another way: the best kernels are scored again")
        if not np.array_equal(self.outliers, () if before is None else before.outliers):
            do = "does not fit, and is" if len(rows) == 1 else "do not fit, and are"
            lines.append(f"{text_of_rows(rows)} {do} excluded" if len(rows) else "all rows fit")
        return "\n".join(lines)

    def _evaluator_of(self, data: TrainingData) -> Evaluator:
        arguments = self._arguments
        settings: dict[str, Any] = {
            "priors": arguments.priors,
            "seed": self._seed,
            "structure_prior": self.space.structure_prior,
        }
        if not self.is_by_bounds:
            return Evaluator(data, criterion=arguments.criterion, **settings)
        if (criterion := arguments.criterion.for_approximations()) is None:
            raise ValueError(
                f"strategy={arguments.strategy!r} bounds the log likelihood, and needs "
                f"criterion='laplace', 'importance' or 'bic', got {arguments.criterion!r}"
            )
        settings |= {"criterion": criterion, "n_inducing": arguments.n_inducing}
        return BoundedEvaluator(data, **settings)
