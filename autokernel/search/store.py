"""Results of a search, which another search reads instead of computing them again."""

import json
import warnings
from collections.abc import Iterable
from typing import Any

from joblib import Memory
from joblib.memory import CacheWarning

from autokernel.data.plain import Parse, as_plain, read
from autokernel.exceptions import warn_user
from autokernel.expression import parse_expression
from autokernel.kernels import BaseKernel, Operator, definition, is_built_in
from autokernel.version import __version__

PATH = ("autokernel", __version__)  # in the folder, one for each version of the package


class Store:
    """Results by digests of all that they depend on, in this object and, if there is one, a folder.

    Results are kept as plain data. They begin with those of ``known``, unless the code of one of
    the base kernels or operators has changed. The folder is not part of a pickle.
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

    def get(self, key: str, kind: Any, *, parse: Parse = parse_expression) -> Any:
        """Return the result of a key, of a kind as for :func:`read`, None if none can be read."""
        if key in self._records:
            self._used.add(key)
            return read(kind, self._records[key], key, parse=parse)
        if self._backend is None or not self._backend.contains_item([*PATH, key]):
            return None
        try:
            record = self._backend.load_item([*PATH, key])
            found = read(kind, record, key, parse=parse)
        except Exception:  # a damaged or foreign file may raise anything
            return None
        self._keep(key, record)
        return found

    def put(self, key: str, result: Any) -> None:
        """Keep a result; after a warning that a file cannot be written, there are no more files."""
        self._keep(key, record := as_plain(result))
        if self._backend is None or not self._can_write:
            return
        with warnings.catch_warnings(action="error", category=CacheWarning):  # how joblib fails
            try:
                self._backend.dump_item([*PATH, key], record)
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
        # one text, as files of skops need much room for each list
        return {"seed": self.seed, "parts": self._parts, "records": json.dumps(self._records)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.seed, self._parts, self._backend = state["seed"], state["parts"], None
        self._records, self._used = json.loads(state["records"]), set()
