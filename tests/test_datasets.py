"""The bundled series: objects as of scikit-learn's loaders, numbers as in the sources."""

import sys
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

from autokernel.datasets import load_airline, load_mauna_loa


@pytest.mark.parametrize("loader", [load_airline, load_mauna_loa])
def test_a_loader_returns_what_those_of_scikit_learn_return(loader):
    bunch = loader()
    file_keys = {"data_filename", "target_filename", "data_module"}
    assert set(bunch) == (set(load_diabetes()) - file_keys) | {"target_names"}
    assert bunch.data.dtype == bunch.target.dtype == np.float64
    assert bunch.data.shape == (len(bunch.target), len(bunch.feature_names))
    assert {"Source:", *bunch.feature_names, *bunch.target_names} <= set(bunch.DESCR.split())
    X, y = loader(return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    with_frame = loader(as_frame=True)
    assert list(with_frame.frame.columns) == bunch.feature_names + bunch.target_names
    np.testing.assert_array_equal(with_frame.frame, np.c_[bunch.data, bunch.target])
    X, y = loader(as_frame=True, return_X_y=True)
    pd.testing.assert_frame_equal(X, with_frame.data)
    pd.testing.assert_series_equal(y, with_frame.target)


def test_pandas_is_needed_only_for_as_frame(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # makes the import fail
    load_airline()
    with pytest.raises(ImportError, match="pip install pandas"):
        load_airline(as_frame=True)


def test_airline_is_series_g_of_box_and_jenkins():
    bunch = load_airline()
    y = bunch.target
    assert y.shape == (144,)
    assert y[:12].tolist() == [112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118]
    assert y[-12:].tolist() == [417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432]
    expected = (np.arange(1949, 1961)[:, None] + (np.arange(12) + 0.5) / 12).ravel()
    np.testing.assert_array_equal(bunch.data[:, 0], expected)


def test_mauna_loa_has_the_monthly_means_of_all_months_but_five():
    missing = {(1958, 6), (1958, 10), (1964, 2), (1964, 3), (1964, 4)}
    months = [(year, month) for year in range(1958, 2002) for month in range(1, 13)]
    expected = [
        year + (month - 0.5) / 12
        for year, month in months
        if (year, month) >= (1958, 3) and (year, month) not in missing
    ]
    X, y = load_mauna_loa(return_X_y=True)
    np.testing.assert_array_equal(X[:, 0], expected)
    # weekly averages of March, April and May 1958 and of December 2001, as Scripps gives them
    weeks = [[316.1], [317.3, 317.6, 317.5, 316.4], [316.9, 317.5, 317.9]]
    np.testing.assert_allclose(y[:3], [np.mean(week) for week in weeks], atol=5e-5)  # 4 decimals
    last = [370.3, 370.8, 371.2, 371.3, 371.5]
    np.testing.assert_allclose(y[-1], np.mean(last), atol=5e-5)


def test_every_bundled_file_has_its_source_in_the_readme():
    folder = files("autokernel") / "bundled"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    tables = [file.name for file in folder.iterdir() if file.name.endswith(".csv")]
    assert sorted(tables) == ["airline.csv", "mauna_loa.csv"]
    assert all(f"## `{name}`" in readme for name in tables)
