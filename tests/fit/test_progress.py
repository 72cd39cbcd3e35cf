import numpy as np
import pytest

from autokernel.fit.progress import reporter
from autokernel.search import History

ROWS = [("LIN[0]", -20.0), ("SE[0]", -30.0), ("PER[0]", -np.inf), ("SE[0] + PER[1]", -7.25)]


def lines_of(make_history, verbose, *, feature_names=None, rows=ROWS):
    """Write what a reporter says of a history that grows row by row."""
    lines = []
    observe = reporter(verbose, feature_names, write=lines.append)
    complete = make_history(*rows)
    for length in range(1, len(rows) + 1):
        observe(History(complete.n_samples, complete.trials[:length]))
    return lines


@pytest.mark.parametrize("verbose", [0, False])
def test_there_is_no_reporter_where_nothing_is_to_be_said(verbose):
    assert reporter(verbose, None) is None


def test_verbose_1_writes_a_line_per_improvement(make_history):
    lines = lines_of(make_history, 1)
    assert [line.split()[0] for line in lines] == ["1", "4"]
    assert all("*" in line.split() for line in lines)


def test_verbose_2_writes_a_line_per_kernel_and_marks_improvements(make_history):
    lines = lines_of(make_history, 2)
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert ["*" in line.split() for line in lines] == [True, False, False, True]


def test_a_line_holds_place_seconds_score_and_kernel(make_history):
    words = lines_of(make_history, 1)[-1].split()
    assert words == ["4", "4.0", "s", "-7.25", "*", "SE[0]", "+", "PER[1]"]


def test_the_kernel_is_written_with_feature_names(make_history):
    lines = lines_of(make_history, 1, feature_names=["time", "load"])
    assert lines[-1].endswith("SE[time] + PER[load]")


def test_a_failure_is_written_with_its_reason(make_history):
    failure = lines_of(make_history, 2)[2]
    assert failure.endswith("PER[0]  (no factor)")
    assert "-inf" in failure
    assert not lines_of(make_history, 2)[0].endswith(")")


def test_lines_are_aligned(make_history):
    rows = [(text, 100.0**place) for place, (text, _) in enumerate(ROWS)]
    lines = lines_of(make_history, 2, rows=[*rows, ROWS[2]])
    # the kernel begins in the same place, whatever the score and whether it is an improvement
    places = {line.index(text) for line, (text, _) in zip(lines, [*rows, ROWS[2]], strict=True)}
    assert len(places) == 1


def test_lines_go_to_standard_output_by_default(make_history, capsys):
    reporter(1, None)(make_history(("LIN[0]", -20.0)))
    assert "LIN[0]" in capsys.readouterr().out


def test_a_first_kernel_that_failed_is_no_improvement(make_history):
    lines = lines_of(make_history, 1, rows=[("SE[0]", -np.inf), ("LIN[0]", -3.0)])
    assert [line.split()[0] for line in lines] == ["2"]
