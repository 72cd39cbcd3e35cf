"""What is built for PyPI: names, links, contents, and the requirements that are declared."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import autokernel

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
EXTRAS = PROJECT["optional-dependencies"]
# targets of links and pictures, in Markdown and in HTML
TARGET = re.compile(
    r"\]\(\s*<?([^)\s>]+)|^\s*\[[^\]]+\]:\s*(\S+)|(?:src|href)=\"([^\"]+)", re.MULTILINE
)
PROSE_AND_CODE = {".py", ".md", ".rst", ".toml", ".yml", ".yaml", ".cff", ".cfg", ".txt"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist and the wheel of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """The contents of the wheel, by name."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def sdist(built):
    """The sizes of the files of the sdist, by name within its folder."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2]: member.size for member in archive.getmembers()}


@pytest.fixture(scope="module")
def metadata(wheel):
    """What PyPI shows of the wheel."""
    (name,) = (name for name in wheel if name.endswith("dist-info/METADATA"))
    return message_from_bytes(wheel[name])


def targets(text):
    """Targets of all links and pictures of a text."""
    return ["".join(found) for found in TARGET.findall(text)]


def texts(*names):
    """Prose and code in folders, by path."""
    paths = (path for name in names for path in (ROOT / name).rglob("*"))
    for path in (ROOT / "README.md", *paths):
        if path.suffix in PROSE_AND_CODE and "_build" not in path.parts:
            yield path, path.read_text(encoding="utf-8")


def test_the_distribution_has_a_name_of_its_own_and_the_version_of_the_package(metadata, wheel):
    assert metadata["Name"] == "autokernel-gp"
    assert metadata["Version"] == autokernel.__version__
    assert {name.partition("/")[0] for name in wheel} == {
        "autokernel",
        f"autokernel_gp-{autokernel.__version__}.dist-info",
    }


def test_the_long_description_is_the_readme_without_a_relative_link(metadata):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    relative = [t for t in targets(readme) if not t.startswith(("https://", "#"))]
    assert relative, "the README has relative links, or this test sees none of them"
    description = metadata.get_payload(decode=True).decode("utf-8")
    assert description.splitlines()[0] == "# autokernel"
    assert [t for t in targets(description) if not t.startswith(("https://", "#"))] == []
    # each ends as the link of the README does, which another test follows
    found = targets(description)
    assert all(any(t.endswith(f"/{end}") for t in found) for end in relative)
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", description)
    assert pictures
    assert [picture for picture in pictures if "/blob/" in picture] == []  # files and not pages


def test_the_address_of_the_project_stands_in_one_file():
    urls = PROJECT["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    owner, name = urls["Source"].split("/")[-2:]
    hook = SETTINGS["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    given = [*urls.values(), *(s["replacement"] for s in hook["substitutions"])]
    assert all(owner in url and name in url for url in given)
    for path, text in texts("autokernel", "tests", "benchmarks", "docs", ".github", ".ci"):
        assert f"{owner}/{name}" not in text, f"{path}: take the address from the metadata"
        assert f"{owner}.github.io" not in text, f"{path}: take the address from the metadata"


def test_the_wheel_has_types_data_and_the_command(wheel):
    assert "autokernel/py.typed" in wheel
    for data in (
        "bundled/airline.csv",
        "bundled/airline.txt",
        "export/report.css",
        "export/report.js",
    ):
        assert f"autokernel/{data}" in wheel
    (entries,) = (text for name, text in wheel.items() if name.endswith("entry_points.txt"))
    assert "autokernel = autokernel.__main__:main" in entries.decode().splitlines()
    modules = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("autokernel/**/*.py")}
    assert modules == {name for name in wheel if name.endswith(".py")}


def test_the_sdist_has_what_is_needed_to_test_it_and_no_more(sdist):
    for needed in ("pyproject.toml", "README.md", "LICENSE", "docs/theory.md"):
        assert needed in sdist
    unwanted = re.compile(
        r"(^|/)(__pycache__|\.[a-z]+_cache|\.venv|\.git|_build|results)/|\.(pyc|whl|so|gz|joblib)$"
    )
    assert [name for name in sdist if unwanted.search(name)] == []
    assert [name for name, size in sdist.items() if size > 500_000] == []
    assert sum(sdist.values()) < 10_000_000


def test_every_requirement_has_one_lower_bound_everywhere_and_tests_can_build_the_package():
    bounds = {}
    for text in [*PROJECT["dependencies"], *(text for texts in EXTRAS.values() for text in texts)]:
        if "[" not in text:
            assert ">=" in text, text
            name = re.match(r"[A-Za-z0-9._-]+", text)[0]
            assert bounds.setdefault(name, text) == text
    assert set(SETTINGS["build-system"]["requires"]) <= set(EXTRAS["test"])


def test_messages_and_documents_name_packages_and_extras_that_exist():
    declared = [*PROJECT["dependencies"], *(text for texts in EXTRAS.values() for text in texts)]
    known = {re.match(r"[A-Za-z0-9._-]+", text)[0] for text in declared} | {"autokernel-gp"}
    # in two parts, so that this line is not found
    wrong = "autokernel" + "["
    named, extras = set(), set()
    for path, text in texts("autokernel", "docs"):
        assert f"install '{wrong}" not in text, path
        assert f"install {wrong}" not in text, path
        extras |= set(re.findall(r"autokernel-gp\[([a-z,]+)\]", text))
        if not path.is_relative_to(ROOT / "docs"):
            named |= set(re.findall(r"pip install '?([A-Za-z][\w.-]*)", text))
    assert {"autokernel-gp", "pandas"} <= named <= known
    assert "plot" in extras
    assert {extra for names in extras for extra in names.split(",")} <= set(EXTRAS)
