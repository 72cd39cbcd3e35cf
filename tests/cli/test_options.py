"""The arguments: their groups, their defaults, and messages for those that are wrong."""

import re
import sys

import numpy as np
import pytest
from autokernel.cli.options import parse
from autokernel.cli.run import main

from autokernel import __version__
from tests.cli.files import lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n-iter", "abc"], "argument --n-iter: invalid int value: 'abc'"),
        (["--max-time", "soon"], "argument --max-time: invalid float value: 'soon'"),
        (["--strategy", "best"], "--strategy: invalid choice: 'best' (choose from"),
        (["--sep", "ab"], "--sep: must be auto, ',', ';', tab or another single character"),
        (["--sep", ""], "--sep: must be auto"),
        (["--missing", "mean"], "--missing: invalid choice: 'mean'"),
        (["--target", "y"], "--target needs a file"),
        (["--drop", "y"], "--drop needs a file"),
        (["--decimal", ","], "--decimal needs a file"),
        (["--category", "y"], "--category needs a file"),
        (["--weights", "y"], "--weights needs a file"),
        (["--predictions", "p.csv"], "--predictions needs --predict FILE"),
        (["--predict", "p.csv", "--horizon", "2"], "--predict and --horizon exclude each other"),
        (["--horizon", "0"], "--horizon must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_refused_in_plain_words(capsys, arguments, message):
    with pytest.raises(SystemExit) as info:
        main(arguments)
    assert info.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert not re.search(r"\b_\w+", error), "the name of a function of ours"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n-iter", "-3"], r": --n-iter must be an int in the range \[0, inf\)\. Got -3 instead"),
        (["--random-state", "-1"], ": --random-state must be an int in the range .* Got -1"),
        (["--max-time", "0"], ": --max-time must be a float in the range .* Got 0.0"),
        (["--max-time", "nan"], ": --max-time must be a float in the range .* Got nan"),
        (["--n-jobs", "0"], ": --n-jobs must be an int in the range .* Got 0"),
        (["--operators", "+,x"], r"operators must be a selection of .* got \['\+', 'x'\]"),
    ],
)
def test_values_out_of_range_are_refused_before_the_search(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert re.search(message, lines(captured.err))
    assert captured.out == ""


def test_the_separator_and_operators_can_be_named():
    for text, separator in ((",", ","), ("tab", "\t"), (r"\t", "\t"), ("semicolon", ";")):
        assert parse(["a.csv", "--sep", text]).sep == separator
    assert parse(["--operators", "+,cp"]).operators == ["+", "cp"]


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as info:
        main(["--version"])
    assert info.value.code == 0
    out = lines(capsys.readouterr().out)
    assert out.startswith(f"autokernel {__version__} (Python ")
    assert f"numpy {np.__version__}" in out


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/bin/autokernel", "autokernel"),
        ("/lib/autokernel/__main__.py", "python -m autokernel"),
    ],
)
def test_help_groups_the_options_and_names_the_command_by_how_it_was_started(capsys, program, name):
    before = sys.argv[0]
    try:
        sys.argv[0] = program
        with pytest.raises(SystemExit):
            main(["--help"])
    finally:
        sys.argv[0] = before
    text = capsys.readouterr().out
    assert text.startswith(f"usage: {name} [FILE] [options]")
    data, search, results = re.split(r"\n(?:search|results):\n", text.partition("\ndata:\n")[2])
    assert "--sep" in data
    assert "{keep,drop,error}" in data
    assert "--max-time" in search
    assert "--predict" in results
    assert "monthly airline passengers" in lines(results)
    assert lines(results).endswith(
        "Ctrl-C ends the search early: the best kernel so far is described and tested."
    )
