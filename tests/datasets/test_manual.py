from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autokernel.datasets import fetch_lgbb, fetch_power_plant, fetch_solar

Loader = Callable[..., Any]


def test_power_plant_predicts_the_last_column(data_folder: Path) -> None:
    bunch = fetch_power_plant()
    assert bunch.data[0].tolist() == [14.96, 41.76, 1024.07, 73.17]
    assert bunch.target.tolist() == [463.26, 444.37]


def test_solar_is_the_irradiance_of_each_year(data_folder: Path) -> None:
    bunch = fetch_solar()
    assert (bunch.feature_names, bunch.target_names) == (["time"], ["irradiance"])
    assert bunch.data.tolist() == [[1610.5], [1611.5]]
    assert bunch.target.tolist() == [1360.6728, 1360.6559]


def test_an_explicit_path_wins_over_the_data_folder(data_folder: Path) -> None:
    path = data_folder / "another.csv"
    path.write_text("AT,V,AP,RH,PE\n1,2,3,4,5\n", encoding="utf-8")
    assert fetch_power_plant(path=path).target.tolist() == [5]
    assert fetch_power_plant(path=str(path)).target.tolist() == [5]


def test_a_csv_saved_by_a_spreadsheet_with_a_byte_order_mark_is_read(data_folder: Path) -> None:
    path = data_folder / "power_plant.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("\n", "\r\n"), encoding="utf-8-sig", newline="")
    assert fetch_power_plant(path=path).target.tolist() == [463.26, 444.37]


def test_lgbb_keeps_the_runs_without_side_slip_below_the_99_percent_quantile_of_lift(
    data_folder: Path,
) -> None:
    bunch = fetch_lgbb()
    assert bunch.feature_names == ["mach", "alpha"]
    assert bunch.data.tolist() == [[0.5, -5], [1.1, 10]]
    assert bunch.target.tolist() == [0.1, 0.3]


def test_lgbb_takes_the_quantile_over_the_runs_without_side_slip_only(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    level = rng.permutation(200)
    rows = [f"1 2 0 {lift} 0 0 0 0 0" for lift in level]
    rows += [f"1 2 4 {lift} 0 0 0 0 0" for lift in level + 1000]
    header = "mach alpha beta lift drag pitch side yaw roll"
    path = tmp_path / "lgbb.txt"
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    # the 99 % quantile of 0, 1, ..., 199 is 0.99 * 199 = 197.01
    expected = level[level <= 197]
    np.testing.assert_array_equal(fetch_lgbb(path=path).target, expected)


def test_lgbb_without_a_run_without_side_slip_is_an_error(data_folder: Path) -> None:
    path = data_folder / "lgbb_original.txt"
    path.write_text(path.read_text(encoding="utf-8").replace(" 0 ", " 1 "), encoding="utf-8")
    with pytest.raises(ValueError, match=r"rows with beta == 0, got none"):
        fetch_lgbb(path=path)


@pytest.mark.parametrize(
    ("loader", "name", "origin"),
    [
        (fetch_power_plant, "power_plant.csv", "archive.ics.uci.edu/dataset/294"),
        (fetch_solar, "solar.csv", "jamesrobertlloyd/gpss-research"),
        (fetch_lgbb, "lgbb_original.txt", "bobby.gramacy.com/surrogates"),
    ],
)
@pytest.mark.parametrize("way", ["nothing", "empty folder", "wrong path"])
def test_a_missing_file_says_what_it_is_where_to_get_it_and_where_to_put_it(
    loader: Loader,
    name: str,
    origin: str,
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AUTOKERNEL_DATA", raising=False)
    if way == "empty folder":
        monkeypatch.setenv("AUTOKERNEL_DATA", str(tmp_path))
    path = tmp_path / "nowhere" if way == "wrong path" else None
    with pytest.raises(FileNotFoundError) as caught:
        loader(path=path)
    message = str(caught.value)
    for part in (loader.__name__, name, origin, "AUTOKERNEL_DATA", "path="):
        assert part in message
    searched = {"nothing": "is not set", "empty folder": str(tmp_path), "wrong path": "nowhere"}
    assert searched[way] in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"must have the 5 columns AT, V, AP, RH, PE, in this order, got 0"),
        ("AT,V,AP,PE\n1,2,3,4\n", r"got 4: AT, V, AP, PE"),
        ("PE,AT,V,AP,RH\n1,2,3,4,5\n", r"in this order, got 5: PE, AT, V, AP, RH"),
        ("AT;V;AP;RH;PE\n1;2;3;4;5\n", r"got 1: AT;V;AP;RH;PE"),
        ("AT,V,AP,RH,PE\n", r"must have rows of numbers below its header, got none"),
        ("AT,V,AP,RH,PE\n1,2,x,4,5\n", r"must hold only numbers below its header: .*'x'"),
        ("AT,V,AP,RH,PE\n1,2,3,4,5\n1,2,3,4\n", r"must hold only numbers .* from 5 to 4"),
        ("AT,V,AP,RH,PE\n1,2,3,4\n1,2,3,4\n", r"must hold 5 numbers in each row, got 4"),
    ],
)
def test_a_file_that_does_not_hold_the_set_is_an_error_that_names_the_file(
    content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"mine\.csv .*{message}"):
        fetch_power_plant(path=path)


def test_lgbb_with_wrong_columns_is_an_error_that_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "lgbb_as.txt"
    path.write_text("mach alpha beta lift\n1 2 0 3\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"9 columns mach, .*, roll, .* got 4: mach, alpha, beta"):
        fetch_lgbb(path=path)
