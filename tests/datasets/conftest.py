"""A small copy of every data set that is a file of the user."""

from pathlib import Path
from urllib.error import URLError

import pytest
from sklearn.utils import Bunch

from autokernel.datasets import _openml

AIRFOIL = """\
frequency_hz,angle_of_attack_deg,chord_length_m,free_stream_velocity_m_s,\
displacement_thickness_m,sound_pressure_level_db
800,0,0.3048,71.3,0.00266337,126.201
1000,0,0.3048,71.3,0.00266337,125.201
"""
CONCRETE = """\
cement,blast_furnace_slag,fly_ash,water,superplasticizer,coarse_aggregate,fine_aggregate,age,\
compressive_strength
540,0,0,162,2.5,1040,676,28,79.98611076
332.5,142.5,0,228,0,932,594,270,40.269535256
"""
POWER_PLANT = """\
AT,V,AP,RH,PE
14.96,41.76,1024.07,73.17,463.26
25.18,62.96,1020.04,59.08,444.37
"""
SOLAR = """\
time,value
1610.5,1360.6728
1611.5,1360.6559
"""
# beta is 0 in the first, third and fourth row; the third has the largest lift of those
LGBB = "# a comment\n" * 21 + (
    "mach alpha beta lift drag pitch side yaw roll\n"
    "0.5 -5 0 0.1 1 1 1 1 1\n"
    "0.5 30 4 0.2 1 1 1 1 1\n"
    "6.0 30 0 9.0 1 1 1 1 1\n"
    "1.1 10 0 0.3 1 1 1 1 1\n"
)


@pytest.fixture
def no_openml(monkeypatch: pytest.MonkeyPatch) -> None:
    """No way to OpenML."""
    monkeypatch.setattr(_openml, "fetch_openml", _unreachable)


@pytest.fixture
def data_folder(tmp_path: Path, no_openml: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a small copy of every set, and no way to OpenML."""
    (tmp_path / "airfoil.csv").write_text(AIRFOIL, encoding="utf-8")
    (tmp_path / "concrete.csv").write_text(CONCRETE, encoding="utf-8")
    (tmp_path / "power_plant.csv").write_text(POWER_PLANT, encoding="utf-8")
    (tmp_path / "solar.csv").write_text(SOLAR, encoding="utf-8")
    (tmp_path / "lgbb_original.txt").write_text(LGBB, encoding="utf-8")
    monkeypatch.setenv("AUTOKERNEL_DATA", str(tmp_path))
    return tmp_path


def _unreachable(**arguments: object) -> Bunch:
    raise URLError("Name or service not known")
