"""Results of a search, which another search reads instead of computing them again."""

import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from joblib import Memory
from joblib.memory import CacheWarning

from autokernel.evidence import Estimate, Evaluation
from autokernel.evidence.starts import WarmStart
from autokernel.exceptions import warn_user
from autokernel.expression import Expression
from autokernel.kernels import BaseKernel, Operator, definition, is_built_in
from autokernel.version import __version__

Result = TypeVar("Result")


class Store:
    """Results by digests of all that they depend on, in this object and, if there is one, a folder.

    A record of a result holds numbers, texts and arrays of numbers, in lists and dicts. It begins
    with those of ``known``, unless the code of one of the base kernels or operators has changed.
    The folder is not part of a pickle.
    """

    _can_write = True  # to the folder, as far as is known

    def __init__(
        self,
        known: "Store | None" = None,
        *,
        folder: Memory | None = None,
        parts: Iterable[BaseKernel | Operator] = (),
    ) -> None:
        self._parts = [part for part in parts if not is_built_in(part)]
        before = {definition(part): part for part in known._parts} if known else {}
        if any(before.get(definition(part), part) != part for part in self._parts):
            known = None
        self.seed: int | None = known.seed if known else None
        self._records: dict[str, Any] = dict(known._records) if known else {}
        self._used: set[str] = set()
        self._backend = None if folder is None else folder.store_backend

    def get(self, key: str, read: Callable[[Any], Result]) -> Result | None:
        """Return what ``read`` makes of the record of a key, None if there is none.

        A file that cannot be read counts as missing.
        """
        if key in self._records:
            self._used.add(key)
            return read(self._records[key])
        if self._backend is None or not self._backend.contains_item(_path(key)):
            return None
        try:
            record = self._backend.load_item(_path(key))
            found = read(record)
        except Exception:  # a damaged or foreign file may raise anything
            return None
        self._keep(key, record)
        return found

    def put(self, key: str, record: Any) -> None:
        """Keep a record; a file gets its name only when it is complete.

        If that fails, a warning says so, and the folder is only read from then on.
        """
        self._keep(key, record)
        if self._backend is None or not self._can_write:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("error", CacheWarning)  # how joblib reports any error
            try:
                self._backend.dump_item(_path(key), record)
                return
            except CacheWarning as warning:
                self._can_write, reason = False, warning.__context__
        warn_user(
            f"memory must be a folder that can be written to, got {self._backend.location!r} "
            f"({reason}): what it holds is read, and new results are not kept"
        )

    def forget_unused(self) -> None:
        """Forget the results that a search has not used, except those in the folder."""
        self._records = {key: self._records[key] for key in self._records if key in self._used}

    def _keep(self, key: str, record: Any) -> None:
        self._records[key] = record
        self._used.add(key)

    def __getstate__(self) -> dict[str, Any]:
        # one text, as files of skops need much room for each array
        records = json.dumps(self._records, default=lambda array: array.tolist())
        return {"seed": self.seed, "parts": self._parts, "records": records}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.seed, self._parts, self._backend = state["seed"], state["parts"], None
        self._records, self._used = json.loads(state["records"]), set()


def _path(key: str) -> list[str]:
    """Return the path in the folder, one for each version of the package."""
    return ["autokernel", __version__, key]


def record_of(evaluation: Evaluation) -> dict[str, Any]:
    """Return the record of an evaluation."""
    names = [field.name for field in fields(evaluation)]
    return {name: getattr(evaluation, name) for name in names if name != "expression"}


def read_evaluation(record: dict[str, Any], expression: Expression) -> Evaluation:
    """Return the evaluation of an expression that has this record."""
    values: dict[str, Any] = {
        name: np.array(one) if isinstance(one, list) else one for name, one in record.items()
    }
    return Evaluation(expression=expression, **values)


def record_of_estimate(estimate: Estimate) -> dict[str, Any]:
    """Return the record of an estimate."""
    start = estimate.start
    nodes = start and list(map(int, start.nodes))
    return {
        "kernel": str(estimate.expression),
        "score": estimate.score,
        "start": start and [nodes, start.theta, start.hessian],
    }


def read_estimate(record: dict[str, Any], parse: Callable[[str], Expression]) -> Estimate:
    """Return the estimate that has this record."""
    start = None
    if record["start"] is not None:
        nodes, theta, hessian = record["start"]
        start = WarmStart(
            nodes, np.asarray(theta), None if hessian is None else np.asarray(hessian)
        )
    return Estimate(parse(record["kernel"]), record["score"], start)
