import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.utils import Bunch

from autokernel import datasets
from autokernel.datasets import _openml, fetch_airfoil, fetch_concrete, load_airline, load_mauna_loa

Loader = Callable[..., Any]

AIRFOIL_FEATURES = [
    "frequency",
    "angle_of_attack",
    "chord_length",
    "free_stream_velocity",
    "displacement_thickness",
]
CONCRETE_FEATURES = [
    "cement",
    "blast_furnace_slag",
    "fly_ash",
    "water",
    "superplasticizer",
    "coarse_aggregate",
    "fine_aggregate",
    "age",
]
ALL_LOADERS = [getattr(datasets, name) for name in datasets.__all__]
every_loader = pytest.mark.parametrize("loader", ALL_LOADERS, ids=datasets.__all__)


class FakeOpenML:
    """What ``fetch_openml`` answers for ``as_frame=False, parser="liac-arff"``."""

    def __init__(self, feature_names: list[str], target_name: str) -> None:
        self.feature_names = feature_names
        self.target_name = target_name
        self.arguments: dict[str, object] = {}

    def __call__(self, **arguments: object) -> Bunch:
        self.arguments = arguments
        n_features = len(self.feature_names)
        table = np.arange(3.0 * (n_features + 1)).reshape(3, n_features + 1)
        return Bunch(
            data=table[:, :-1],
            target=table[:, -1],
            frame=None,
            categories={},
            feature_names=self.feature_names,
            target_names=[self.target_name],
            DESCR="**Data Description**\n\nDownloaded from openml.org.",
            details={"id": str(arguments["data_id"]), "status": "active"},
            url=f"https://www.openml.org/d/{arguments['data_id']}",
        )


@every_loader
def test_every_loader_returns_a_bunch_with_the_keys_of_load_diabetes(
    loader: Loader, data_folder: Path
) -> None:
    bunch = loader()
    file_keys = {"data_filename", "target_filename", "data_module"}
    assert isinstance(bunch, Bunch)
    assert set(bunch) == (set(load_diabetes()) - file_keys) | {"target_names"}
    assert bunch.frame is None


@every_loader
def test_every_loader_returns_finite_float_arrays_that_match_their_names(
    loader: Loader, data_folder: Path
) -> None:
    bunch = loader()
    assert bunch.data.dtype == bunch.target.dtype == np.float64
    assert bunch.data.shape == (len(bunch.target), len(bunch.feature_names))
    assert bunch.target.ndim == len(bunch.target_names) == 1
    assert np.isfinite(bunch.data).all()
    assert np.isfinite(bunch.target).all()


@every_loader
def test_every_description_tells_the_source_and_the_target(
    loader: Loader, data_folder: Path
) -> None:
    bunch = loader()
    assert {"Source:", bunch.target_names[0], "(target)"} <= set(bunch.DESCR.split())


@every_loader
def test_return_x_y_gives_the_arrays_of_the_bunch(loader: Loader, data_folder: Path) -> None:
    bunch = loader()
    X, y = loader(return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


@every_loader
def test_as_frame_gives_the_same_numbers_in_named_columns(
    loader: Loader, data_folder: Path
) -> None:
    pandas = pytest.importorskip("pandas")
    arrays, bunch = loader(), loader(as_frame=True)
    assert isinstance(bunch.data, pandas.DataFrame)
    assert isinstance(bunch.target, pandas.Series)
    assert list(bunch.data.columns) == arrays.feature_names
    assert bunch.target.name == arrays.target_names[0]
    assert list(bunch.frame.columns) == arrays.feature_names + arrays.target_names
    np.testing.assert_array_equal(bunch.data, arrays.data)
    np.testing.assert_array_equal(bunch.target, arrays.target)


@every_loader
def test_as_frame_with_return_x_y_gives_a_data_frame_and_a_series(
    loader: Loader, data_folder: Path
) -> None:
    pandas = pytest.importorskip("pandas")
    bunch = loader(as_frame=True)
    X, y = loader(as_frame=True, return_X_y=True)
    pandas.testing.assert_frame_equal(X, bunch.data)
    pandas.testing.assert_series_equal(y, bunch.target)


@every_loader
def test_pandas_is_needed_only_for_as_frame(
    loader: Loader, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # makes the import fail
    loader()
    with pytest.raises(ImportError, match=rf"{loader.__name__} with as_frame=True requires pandas"):
        loader(as_frame=True)


@every_loader
def test_a_caller_may_change_what_it_got_without_changing_the_next_load(
    loader: Loader, data_folder: Path
) -> None:
    first = loader()
    expected = first.data.copy()
    first.data[:] = -1.0
    first.feature_names.clear()
    second = loader()
    np.testing.assert_array_equal(second.data, expected)
    assert len(second.feature_names) == expected.shape[1]


def test_airline_is_series_g_of_box_and_jenkins() -> None:
    y = load_airline().target
    assert y.shape == (144,)
    assert y[:12].tolist() == [112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118]
    assert y[-12:].tolist() == [417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432]


def test_airline_times_are_the_middles_of_all_months_from_1949_to_1960() -> None:
    months = np.arange(12) + 1
    expected = (np.arange(1949, 1961)[:, None] + (months - 0.5) / 12).ravel()
    np.testing.assert_array_equal(load_airline().data[:, 0], expected)


def test_mauna_loa_has_every_month_but_the_five_without_a_value() -> None:
    missing = {(1958, 6), (1958, 10), (1964, 2), (1964, 3), (1964, 4)}
    months = [(year, month) for year in range(1958, 2002) for month in range(1, 13)]
    expected = [
        year + (month - 0.5) / 12
        for year, month in months
        if (year, month) >= (1958, 3) and (year, month) not in missing
    ]
    assert len(expected) == 521
    np.testing.assert_array_equal(load_mauna_loa().data[:, 0], expected)


def test_mauna_loa_values_are_means_of_the_weekly_averages() -> None:
    y = load_mauna_loa().target
    # weekly averages of March, April and May 1958 and of December 2001, as Scripps gives them
    weeks = [[316.1], [317.3, 317.6, 317.5, 316.4], [316.9, 317.5, 317.9]]
    np.testing.assert_allclose(y[:3], [np.mean(week) for week in weeks], atol=5e-5)  # 4 decimals
    last = [370.3, 370.8, 371.2, 371.3, 371.5]
    np.testing.assert_allclose(y[-1], np.mean(last), atol=5e-5)


def test_every_bundled_file_is_documented_beside_it() -> None:
    folder = files("autokernel.datasets") / "data"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    tables = [file.name for file in folder.iterdir() if file.name.endswith(".csv")]
    assert sorted(tables) == ["airline.csv", "mauna_loa.csv"]
    assert all(f"## `{name}`" in readme for name in tables)


def test_airfoil_and_concrete_prefer_the_file_in_the_data_folder(data_folder: Path) -> None:
    airfoil, concrete = fetch_airfoil(), fetch_concrete()  # OpenML would raise
    assert airfoil.data[1].tolist() == [1000, 0, 0.3048, 71.3, 0.00266337]
    assert airfoil.target.tolist() == [126.201, 125.201]
    assert concrete.data[1].tolist() == [332.5, 142.5, 0, 228, 0, 932, 594, 270]
    assert concrete.target.tolist() == [79.98611076, 40.269535256]


@pytest.mark.parametrize(
    ("loader", "data_id", "features", "target"),
    [
        (fetch_airfoil, 44957, AIRFOIL_FEATURES, "sound_pressure"),
        (fetch_concrete, 44959, CONCRETE_FEATURES, "strength"),
    ],
)
@pytest.mark.parametrize("folder_is_set", [False, True])
def test_without_the_file_the_set_comes_from_openml(
    loader: Loader,
    data_id: int,
    features: list[str],
    target: str,
    folder_is_set: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AUTOKERNEL_DATA", raising=False)
    if folder_is_set:
        monkeypatch.setenv("AUTOKERNEL_DATA", str(tmp_path))
    openml = FakeOpenML(features, target)
    monkeypatch.setattr(_openml, "fetch_openml", openml)
    bunch = loader(data_home=tmp_path / "cache")
    assert (bunch.feature_names, bunch.target_names) == (features, [target])
    assert openml.arguments["data_id"] == data_id
    assert openml.arguments["data_home"] == tmp_path / "cache"
    assert bunch.data[:, 0].tolist() == [0, len(features) + 1, 2 * (len(features) + 1)]
    assert bunch.target.tolist() == [len(features) * k + k - 1 for k in (1, 2, 3)]
    assert bunch.data.flags.c_contiguous


def test_columns_have_the_names_of_openml_also_if_they_come_from_a_file(data_folder: Path) -> None:
    assert fetch_airfoil().feature_names == AIRFOIL_FEATURES
    assert fetch_airfoil().target_names == ["sound_pressure"]
    assert fetch_concrete().target_names == ["strength"]


def test_openml_columns_that_changed_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUTOKERNEL_DATA", raising=False)
    monkeypatch.setattr(_openml, "fetch_openml", FakeOpenML(AIRFOIL_FEATURES[::-1], "V6"))
    with pytest.raises(ValueError, match=r"OpenML data set 44957 must have the 6 columns freq.*V6"):
        fetch_airfoil()


def test_an_unreachable_openml_says_which_file_would_do(
    no_openml: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUTOKERNEL_DATA", raising=False)
    with pytest.raises(URLError) as caught:
        fetch_concrete()
    (note,) = caught.value.__notes__
    assert "concrete.csv" in note
    assert "AUTOKERNEL_DATA" in note
