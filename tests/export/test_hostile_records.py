"""Records with faults are refused with the key, or the model works; no code of a file runs."""

import json
import pickle
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autokernel.exceptions import AutoKernelError
from autokernel.export import from_dict, to_dict
from tests.export.mutants import mutant, nested, records, set_at
from tests.fits import tiny, wave

MODEL, COLUMN = ("model",), ("model", "columns", "every", 0)
FITTED = ("model", "kernels", 0, "evaluation")
FAULTS = [
    (("format",), "other", "'autokernel', as to_dict writes it, got 'other'"),
    (("version",), 7, "record.version must be 20, the version that"),
    (("version",), nested(5000), "record.version must be 20, the version that"),
    (("model",), None, "record.model must be an object, got None"),
    (("model",), {}, "record.model must have the keys "),
    (("code",), "import os", "but has an unknown 'code'"),
    ((*MODEL, "X"), [], "record.model.X must be rows of columns, got (0,)"),
    ((*MODEL, "X"), [[1.0, 0.0], [2.0]], "numbers in lists of one length"),
    ((*MODEL, "X", 1), [float("inf"), 0.0], "numbers from -1e+100 to 1e+100"),
    ((*MODEL, "y", 3), float("nan"), "numbers from -1e+100 to 1e+100, got nan"),
    ((*MODEL, "y"), 10**400, "numbers in lists of one length, got int"),
    ((*MODEL, "resolution"), True, "a number, got True"),
    (("settings", "n_iter"), -3, "'n_iter' parameter"),
    (("settings", "periods"), {"items": [[[0], 1]]}, "an object with items"),
    (("settings", "start_kernel"), nested(5000), "at most 4 lists in each other"),
    (("settings", "callbacks"), [], "record.settings.callbacks must be one of the parameters"),
    ((*MODEL, "evaluation"), 99, "the index of a kernel, got 99"),
    ((*MODEL, "predictor", "name"), "os.system", "one of exact, inducing, neighbours"),
    ((*MODEL, "predictor"), {"name": "inducing", "number": 0}, "a whole number from 1, got 0"),
    ((*MODEL, "law", "wild"), 2, "numbers from 0 to 1, got 2.0"),
    ((*MODEL, "law", "shares"), [0.5, 0.4], "one to 3 numbers that sum to one"),
    ((*MODEL, "left_out"), [[0], [1.0], [0, 0], [0.0], [1.0], [0.5]], "an array of the shape"),
    (
        (*MODEL, "left_out"),
        [[999], [1.0], [0], [0.0], [1.0], [0.5]],
        "numbers of rows of the model",
    ),
    ((*MODEL, "noise", "weights"), [1.0, 1.0], "an array of the shape ("),
    ((*MODEL, "rows"), [0.5] * 29, "whole numbers"),
    ((*MODEL, "given_rows"), [0] * 28, "record.model.given_rows must be an array of the shape"),
    ((*COLUMN, "extent"), 0.0, "numbers from 1e-150 to 1e+150"),
    ((*COLUMN, "low"), -1e9, "the low and the extent of X"),
    ((*COLUMN, "is_date"), 1, "true or false, got 1"),
    (("model", "columns", "every", 1, "levels", 0), ["u"], "those of all numbers of X"),
    ((*FITTED, "expression"), "SE[9]", "a kernel of 2 columns"),
    ((*FITTED, "expression"), "SE[log(" + " " * 10**5, "a kernel: expected SE with a column"),
    ((*FITTED, "expression"), "+".join(["SE[0]"] * 9999), "a kernel: expected at most 1000 base"),
    ((*FITTED, "theta"), [0.0], "an array of the shape"),
    ((*FITTED, "theta", 0), 1e6, "numbers from -700 to 700"),
    (("search", "stop_reason_"), "__class__", "one of n_iter"),
    (("search", "history", "row_set"), ["V1000000000"], "numbers in lists of one length, got list"),
    (("search", "history", "score"), [0.0], "an array of the shape"),
    (("search", "tried"), ["SE[0]"], "an array of the shape"),
]


@pytest.mark.parametrize(("path", "value", "message"), FAULTS)
def test_a_fault_is_refused_with_its_key(path, value, message):
    record = deepcopy(records()[0][0])
    set_at(record, path, value)
    with pytest.raises(ValueError, match="record") as caught:
        from_dict(record)
    assert len(str(caught.value)) < 1000
    assert path[0] in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.filterwarnings("ignore")  # of models with odd parameters
@pytest.mark.parametrize(
    ("seeds", "least"), [(range(15), 1), pytest.param(range(15, 215), 31, marks=pytest.mark.slow)]
)
def test_records_with_random_faults_are_refused_or_work(seeds, least):
    n_read = 0
    for seed in seeds:
        record, X, y, faults = mutant(seed)
        try:
            model = from_dict(record)
        except ValueError as error:
            assert "record" in str(error), faults  # noqa: PT017 - some can be read
            continue
        n_read += 1
        new = pd.DataFrame(index=X.index) if isinstance(X, pd.Series) else X
        try:
            assert np.isfinite(model.predict(new, return_std=True)).all(), faults
        except ValueError as error:  # the names or levels are not those of the data any more
            assert "X must" in str(error) or "feature names" in str(error), faults  # noqa: PT017
        model.describe()
        try:
            model.set_params(n_iter=0, max_time=0.1).fit(X, y)
        except (ValueError, AutoKernelError) as error:
            assert "must" in str(error), faults  # noqa: PT017
    assert n_read >= least


class Code:
    """Leaves a file behind when its pickle is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("setting", ["memory", "n_jobs"])
def test_a_file_reaches_no_folder_and_no_process(tmp_path, setting, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = wave()
    model = tiny(**{setting: {"memory": "data", "n_jobs": 2}[setting]}).fit(X, y)
    for path in Path("data").rglob("*.pkl"):
        path.write_bytes(pickle.dumps(Code(tmp_path / "trace")))
    with pytest.warns(UserWarning, match=f"to_dict leaves out {setting}, which a file must not"):
        record = json.loads(json.dumps(to_dict(model)))
    assert setting not in record["settings"]
    record["settings"][setting] = "data" if setting == "memory" else -1
    with pytest.warns(UserWarning, match=f"from_dict does not read {setting}: set"):
        received = from_dict(record)
    assert getattr(received, setting) is None
    received.fit(X, y)
    assert not (tmp_path / "trace").exists()
