"""Lines that a verbose fit prints, and the warning of a search that will take long."""

import re
import time

import numpy as np
import pytest

from autokernel import Laplace
from autokernel.exceptions import NotAMaximumError
from tests.fits import At, interrupt, small, wave

LINE = re.compile(r"^ *(\d+) +(\d+\.\d) s +(-?\d+\.\d\d|-inf) ([* ]) (\S.*)$")


class Unfittable(Laplace):
    """A criterion that has no score for sums."""

    def __call__(self, fit):
        if "+" in str(fit.expression):
            raise NotAMaximumError("no factor")
        return super().__call__(fit)


def verbose_fit(capsys, verbose):
    """Fit, and return the model and the fields of each line that was printed before the last."""
    pandas = pytest.importorskip("pandas")
    x, y = wave()
    frame = pandas.DataFrame({"time": x[:, 0], "a_column_of_noise": np.cos(99 * x[:, 0])})
    model = small(verbose=verbose, n_iter=0, criterion=Unfittable()).fit(frame, y)
    captured = capsys.readouterr()
    assert captured.err == ""
    _, _, lines = captured.out.partition("best kernel so far, in nats; Ctrl-C ends the search\n\n")
    lines = lines.splitlines()
    if verbose:
        assert lines.pop() == "the search ended: as many kernels as n_iter allows were evaluated"
    return model, [LINE.match(line).groups() for line in lines]


@pytest.mark.parametrize("verbose", [0, True, 2])
def test_verbose_prints_nothing_or_improvements_or_all_kernels(verbose, capsys):
    model, lines = verbose_fit(capsys, verbose)
    history = model.search_history_
    is_better = np.diff(history["best_score"], prepend=-np.inf) > 0
    shown = {0: False, 1: is_better, 2: True}[int(verbose)] & np.full(len(is_better), True)
    reasons = [f"  ({s})" if s != "ok" else "" for s in history["status"]]
    marks = np.where(is_better, "*", " ")
    expected = [
        (str(n + 1), f"{elapsed:.1f}", f"{score:.2f}", marks[n], kernel + reasons[n])
        for n, (elapsed, score, kernel) in enumerate(
            zip(history["elapsed"], history["score"], history["kernel"], strict=True)
        )
        if shown[n]
    ]
    assert lines == expected
    assert verbose < 2 or any(reasons)


def test_long_kernels_are_wrapped_below_each_other(capsys):
    long = "a_column_whose_name_is_long_enough_to_fill_a_line"
    pandas = pytest.importorskip("pandas")
    x, y = wave()
    kernel = f"SE[{long}] + LIN[{long}]"
    model = small(start_kernel=kernel, n_iter=0, verbose=1)
    model.set_callbacks(At(interrupt, ended=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(pandas.DataFrame({long: x[:, 0]}), y)
    *_, first, second = capsys.readouterr().out.splitlines()
    assert second.lstrip().split()[-1] in kernel
    place = first.index("[") - first[: first.index("[")][::-1].index(" ")
    assert len(second) - len(second.lstrip()) == place


class Slow(Laplace):
    """A criterion that takes its time."""

    def __call__(self, fit):
        time.sleep(0.2)
        return super().__call__(fit)


def test_the_time_is_estimated_from_the_first_kernel(capsys):
    model = small(criterion=Slow(), n_iter=1000, verbose=1).set_callbacks(At(interrupt, ended=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*wave())
    n, unit = re.search(
        r"the search takes about (\d+) (\w+) by one worker", capsys.readouterr().out
    ).groups()
    assert unit == "minutes"
    assert 3 <= int(n) < 30  # 200 seconds and the time of the fits


def test_a_very_long_search_without_a_limit_warns_once():
    model = small(criterion=Slow(), n_iter=100_000).set_callbacks(At(interrupt, ended=2))
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="hours.*max_time") as w:
        model.fit(*wave())
    texts = [str(one.message) for one in w]
    assert len(texts) == 2
    assert texts[1].startswith("interrupted: the model is the best of 2 kernels so far, ")
    assert {one.filename for one in w} == {__file__}
    model.set_params(max_time=60.0, criterion=Slow(), random_state=1)
    with pytest.raises(KeyboardInterrupt):  # warnings are errors
        model.set_callbacks(At(interrupt, ended=2)).fit(*wave())


def test_a_search_that_ends_at_noise_says_so(capsys):
    """Noise has no kernels one operation away that could be counted."""
    rng = np.random.default_rng(1)
    X, y = rng.uniform(size=(40, 2)), rng.normal(size=40)
    model = small(verbose=1, n_iter=8, base_kernels=["LIN", "SE"]).fit(X, y)
    assert (model.best_expression_, model.stop_reason_) == ("NOISE", "local_maximum")
    assert capsys.readouterr().out.splitlines()[-1].startswith("the search ended: no kernel one")
