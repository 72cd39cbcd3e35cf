"""The examples in the documents run, in order, as a reader would run them."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import autokernel
import autokernel.datasets
import autokernel.displays
import autokernel.exceptions
import autokernel.kernels

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = {"_build", "generated", "auto_gallery"}
FENCE = re.compile(
    r"^```python\n(.*?)^```(?:\n\nprints\n\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL
)
NUMBER = re.compile(r"-?\d+(\.\d+)?")
ANY_FENCE = re.compile(r"^([^`~:\n]*)(?:`{3,}|~{3,}|:{3,}) *([^\s`~:]+)", re.MULTILINE)
LINK = re.compile(r"\]\(([\w./-]+\.\w+)(?:#[^)]*)?\)")
CLUSTER = "dask"  # examples with a cluster are those of benchmarks/cluster.py
DIRECTIVES = {"{toctree}", "{include}", "{eval-rst}", "{glossary}", "{grid}", "{grid-item-card}"}
KINDS = DIRECTIVES | {"python", "bash", "text", "json"}
PAGES = [path for path in DOCS.rglob("*.md") if GENERATED.isdisjoint(path.parts)]
DOCUMENTS = sorted([ROOT / "README.md", *PAGES])
# Searches are repeatable for one rounding alone, and the pages are written with this one.
ROUNDS_AS_WRITTEN = (
    sys.platform == "linux"
    and version("numpy").startswith("2.4.")
    and version("scipy").startswith("1.17.")
)
FOR_THE_PACKAGE = {  # functions of two modules that users have no need of
    "check_not_reserved",
    "check_priors",
    "name_of_period",
    "require_base_kernels",
    "require_operators",
    "with_own_kernels",
}
PUBLIC = (
    autokernel,
    autokernel.datasets,
    autokernel.displays,
    autokernel.exceptions,
    autokernel.kernels,
    autokernel.kernels,
)


def examples(path):
    """The blocks of Python with what they print, as far as the page shows it."""
    return [one for one in FENCE.findall(path.read_text("utf-8")) if CLUSTER not in one[0]]


def without_numbers(text):
    """The words of a text: numbers may differ in their last digits between machines."""
    return NUMBER.sub("0", text).split()


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if examples(path)], ids=name_of)
def test_the_examples_run_and_print_what_is_shown(path, tmp_path, monkeypatch, capsys):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    names, differing = {}, []
    for code, shown in examples(path):
        capsys.readouterr()
        exec(compile(code, str(path), "exec"), names)
        printed = capsys.readouterr().out
        assert printed or not shown
        if shown and without_numbers(shown) != without_numbers(printed):
            differing.append(printed)
    plt.close("all")
    if differing and not ROUNDS_AS_WRITTEN:
        pytest.skip("all examples ran; another rounding has led the search to another kernel")
    assert not differing


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_no_block_of_python_is_hidden_from_the_test_above(path):
    for before, kind in ANY_FENCE.findall(path.read_text("utf-8")):
        assert kind in KINDS
        assert not (kind == "python" and before), "a block of Python begins at the margin"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_and_pictures_exist(path):
    for target in LINK.findall(path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_the_reference_lists_every_public_name(module):
    public = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if isinstance(value, type)
    ]
    text = (DOCS / "api" / "index.md").read_text("utf-8")
    listed = set(re.findall(r"^   (\w+)$|`(\w+)`", text, re.MULTILINE))
    names = {name for pair in listed for name in pair} | FOR_THE_PACKAGE | {"__version__"}
    assert set(public) <= names


def test_a_link_of_the_site_that_leads_nowhere_is_reported(tmp_path):
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="other.html#there"></a>'
        '<a href="missing.html"></a><a href="other.html#here"></a><a href="https://x.y"></a>'
    )
    (tmp_path / "other.html").write_text('<p id="here"></p>')
    check = [sys.executable, str(DOCS / "check_links.py"), str(tmp_path)]
    ended = subprocess.run(check, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == [
        "index.html: other.html#there has no such anchor",
        "index.html: missing.html does not exist",
        "2 broken links",
    ]
