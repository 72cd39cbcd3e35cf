"""Fits that find in a folder what has been evaluated before, whatever happened to who did that."""

import json
import pickle
import signal
import sys
import warnings
from pathlib import Path

import joblib
import pytest

from autokernel import SOT
from autokernel.evidence import Importance
from tests.fits import TIMES, count_evaluations, kernels, rows, run_together, running, small, wave

FIT_AND_PRINT = """
import json, sys
from tests.fits import rows, small, wave
settings = json.loads(sys.argv[2])
print(json.dumps(rows(small(memory=sys.argv[1], **settings).fit(*wave()))))
"""

FIT_AND_TELL = """
import sys
from tests.fits import small, wave
print("begun", flush=True)
small(memory=sys.argv[1], max_leaves=6, n_iter=60, verbose=2).fit(*wave())
"""


@pytest.fixture(scope="module")
def undisturbed():
    """A search that keeps nothing."""
    return small().fit(*wave())


@pytest.fixture
def evaluated():
    """Texts of the kernels that are evaluated here."""
    return count_evaluations()


@pytest.mark.parametrize(("form", "batch_size"), [(str, 1), (Path, 3), (joblib.Memory, 1)])
def test_the_same_fit_again_evaluates_nothing_and_gives_the_same_history(
    tmp_path, evaluated, capfd, form, batch_size
):
    X, y = wave()
    first = small(memory=form(tmp_path / "new" / "kept"), batch_size=batch_size).fit(X, y)
    assert evaluated == kernels(first)
    evaluated.clear()
    again = small(memory=form(tmp_path / "new" / "kept"), batch_size=batch_size).fit(X, y)
    assert evaluated == []
    # seconds of the fits too, which are those of the evaluations that are kept
    without = TIMES[1:]
    assert rows(again, without=without) == rows(first, without=without)
    assert again.predict(X).tolist() == first.predict(X).tolist()
    assert capfd.readouterr() == ("", "")


def test_keeping_changes_nothing(tmp_path, undisturbed):
    assert rows(small(memory=tmp_path).fit(*wave())) == rows(undisturbed)


def test_a_longer_search_evaluates_only_what_is_new(tmp_path, evaluated, undisturbed):
    X, y = wave()
    n_known = len(small(n_iter=2, memory=tmp_path).fit(X, y).search_history_["kernel"])
    evaluated.clear()
    longer = small(memory=tmp_path).fit(X, y)
    assert evaluated == kernels(undisturbed)[n_known:]
    assert len(evaluated) == 2
    assert rows(longer) == rows(undisturbed)


def test_what_workers_have_kept_is_found_without_them(tmp_path, evaluated, undisturbed):
    X, y = wave()
    assert rows(small(memory=tmp_path, n_jobs=2).fit(X, y)) == rows(undisturbed)
    assert rows(small(memory=tmp_path).fit(X, y)) == rows(undisturbed)
    assert evaluated == []


@pytest.mark.parametrize(
    "settings",
    [
        {"base_kernels": ["SE"]},
        {"max_leaves": 2},
        {"strategy": SOT(population_size=20)},
    ],
)
def test_settings_that_a_score_does_not_depend_on_share_what_is_kept(tmp_path, evaluated, settings):
    X, y = wave()
    history = small(memory=tmp_path).fit(X, y).search_history_
    evaluated.clear()
    other = small(memory=tmp_path, n_iter=0, **settings).fit(X, y)
    alone = (history["phase"] == "initial") & (history["n_leaves"] == 1)
    known = set(history["kernel"][alone])  # the others had warm starts
    assert not known & set(evaluated)
    assert known & set(other.search_history_["kernel"])


OTHERS = {
    "seed": {"random_state": 1},
    "priors": {"priors": "paper"},
    "one prior": {"priors": {"noise_variance": (2, 9)}},
    "criterion": {"criterion": "importance"},
    "draws": {"criterion": Importance(max_draws=101)},
    "standard error": {"criterion": Importance(max_draws=100, standard_error=0.2)},
}


@pytest.mark.parametrize("settings", OTHERS.values(), ids=OTHERS.keys())
def test_settings_that_a_score_depends_on_do_not_share_what_is_kept(tmp_path, settings):
    X, y = wave()
    base = {"base_kernels": ["SE"], "max_leaves": 1, "criterion": Importance(max_draws=100)}
    small(memory=tmp_path, **base).fit(X, y)
    other = {**base, **settings}
    found = rows(small(memory=tmp_path, **other).fit(X, y))
    assert found == rows(small(**other).fit(X, y))


@pytest.mark.parametrize("change", ["X", "y", "order", "fewer"])
def test_other_data_do_not_share_what_is_kept(tmp_path, evaluated, change):
    X, y = wave()
    one = {"base_kernels": ["SE"], "max_leaves": 1}
    small(memory=tmp_path, **one).fit(X, y)
    if change == "X":
        X[3] += 1e-9
    elif change == "y":
        y[3] += 1e-9
    X, y = {"order": (X[::-1], y[::-1]), "fewer": (X[1:], y[1:])}.get(change, (X, y))
    small(memory=tmp_path, **one).fit(X, y)
    assert evaluated == ["SE[0]", "NOISE"] * 2


def test_other_units_share_what_is_kept(tmp_path, evaluated):
    X, y = wave()
    # halves and doubles are exact, so that what is scaled inside is the same to the last bit
    for unit in (0.5, 2.0):
        small(memory=tmp_path, base_kernels=["SE"], max_leaves=1).fit(unit * X, unit * y)
    assert evaluated == ["SE[0]", "NOISE"]


def test_entries_that_cannot_be_read_are_evaluated_again_without_a_word(
    tmp_path, evaluated, undisturbed, capfd
):
    X, y = wave()
    small(memory=tmp_path).fit(X, y)
    files = sorted(tmp_path.rglob("output.pkl"))
    assert len(files) == len(evaluated)
    half = files[4].read_bytes()[:300]
    corrupt = [b"", b"\x80\x04garbage", pickle.dumps([1.0]), half]
    for file, left in zip(files[1:5], corrupt, strict=True):
        file.write_bytes(left)
    evaluated.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        again = small(memory=tmp_path).fit(X, y)
    assert len(evaluated) == 4
    assert rows(again) == rows(undisturbed)
    assert [str(warning.message) for warning in caught] == []
    assert capfd.readouterr() == ("", "")
    evaluated.clear()
    small(memory=tmp_path).fit(X, y)
    assert evaluated == []


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")
def test_a_fit_that_is_killed_again_and_again_repeats_no_evaluation_that_has_ended(
    tmp_path, evaluated
):
    undisturbed = small(max_leaves=6).fit(*wave())
    evaluated.clear()
    for n_ended in (3, 7):
        with running(FIT_AND_TELL, tmp_path) as process:
            lines = [process.stdout.readline() for _ in range(1 + n_ended)]
            process.send_signal(signal.SIGKILL)
            assert process.wait(timeout=60) == -signal.SIGKILL
        assert lines[0] == "begun\n"
        assert all(" s " in line for line in lines[1:])
    again = small(max_leaves=6, memory=tmp_path).fit(*wave())
    known = kernels(undisturbed)
    assert len(known) > 7
    assert set(evaluated) <= set(known[7:])
    assert rows(again) == rows(undisturbed)


def test_two_processes_at_once_may_share_a_folder(tmp_path, evaluated, undisturbed):
    found = run_together(FIT_AND_PRINT, tmp_path, json.dumps({}), n_processes=2)
    assert found == [rows(undisturbed)] * 2
    assert rows(small(memory=tmp_path).fit(*wave())) == rows(undisturbed)
    assert evaluated == []
