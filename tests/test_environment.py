"""Versions of dependencies, for reports of bugs and of fits."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

import autokernel
from autokernel import environment, show_versions
from autokernel.environment import OPTIONAL, REQUIRED, Environment
from autokernel.export import write_report


def rows_of(text):
    """Read the rows that were printed."""
    lines = [line for line in text.splitlines() if line.startswith("    ")]
    return dict(line.strip().split(maxsplit=1) for line in lines)


def test_every_dependency_is_printed_with_the_version_that_is_installed(capsys):
    assert show_versions() is None
    rows = rows_of(capsys.readouterr().out)
    assert rows["autokernel"] == autokernel.__version__
    for name in REQUIRED:
        assert rows[name] == version(name)
    assert set(OPTIONAL) <= set(rows)
    assert rows["Python"].startswith(platform.python_version())
    assert rows["platform"] == platform.platform()


def test_a_package_that_is_not_installed_is_printed_as_such(capsys, monkeypatch):
    def version_without_skops(name):
        if name == "skops":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(environment, "version", version_without_skops)
    show_versions()
    assert rows_of(capsys.readouterr().out)["skops"] == "not installed"


def test_blas_is_printed_with_its_version_and_number_of_threads(monkeypatch):
    libraries = Environment.of_this_process().libraries
    for library in threadpool_info():
        assert (library["version"] or "unknown") in libraries[library["internal_api"]]
    monkeypatch.setattr(
        environment,
        "threadpool_info",
        lambda: [{"internal_api": "mkl", "version": "2025.1", "num_threads": 3}] * 2,
    )
    assert Environment.of_this_process().libraries == {"mkl": "2025.1, threads: 3"}
    monkeypatch.setattr(environment, "threadpool_info", list)
    assert Environment.of_this_process().libraries == {"BLAS": "none that threadpoolctl knows"}


def test_nothing_that_is_printed_names_the_user_or_a_folder(capsys):
    show_versions()
    text = capsys.readouterr().out
    for secret in (str(Path.home()), sys.prefix, str(Path(autokernel.__file__).parent)):
        assert secret not in text


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_terminal_of_any_encoding_can_print_it(encoding):
    done = subprocess.run(
        [sys.executable, "-c", "import autokernel; autokernel.show_versions()"],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        cwd=Path(autokernel.__file__).parent.parent,  # where it finds the package under test
        capture_output=True,
        text=True,
        check=True,
    )
    assert "scikit-learn" in done.stdout


def test_a_report_has_the_same_versions_as_the_record(tmp_path):
    model = autokernel.AutoKernelGPRegressor(random_state=0)
    model.refit([[0.0], [0.5], [1.0]], [0.0, 1.0, 0.0], "SE[0]")
    page = write_report(model, tmp_path / "report.html").read_text(encoding="utf-8")
    record = Environment.of_this_process()
    for part in (record.required, record.system, record.libraries):
        for name, value in part.items():
            assert f'<td class="text">{name}</td><td class="text">{value}</td>' in page
