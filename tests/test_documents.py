"""The examples in the documents run, in order, as a reader would run them.

What they print is compared with the page in its structure: headings, words and the kinds of lines.
Numbers and kernels differ between machines that round differently.
"""

import importlib
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import autokernel
import autokernel.datasets
import autokernel.displays
import autokernel.export
from autokernel import parse_expression

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = {"_build", "generated", "auto_gallery"}
FENCE = re.compile(
    r"^```python\n(.*?)^```(?:\n\n(prints|prints, for example)\n\n```text\n(.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
LEAF = r"\(*(?:[A-Z]+\[\w+\]|NOISE)\)*"
KERNEL = re.compile(rf"{LEAF}(?:\s[+*]\s{LEAF})*")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?")
ANY_FENCE = re.compile(r"^([^`~:\n]*)(?:`{3,}|~{3,}|:{3,}) *([^\s`~:]+)", re.MULTILINE)
LINK = re.compile(r"\]\(([\w./-]+\.\w+)(?:#[^)]*)?\)")
SHORTER = ("Regressor(random_state=0)", "Regressor(n_iter=4, random_state=0)")  # for the same lines
CLUSTER = "dask"  # examples with a cluster are not run
DIRECTIVES = {"{toctree}", "{include}", "{eval-rst}", "{glossary}", "{grid}", "{grid-item-card}"}
KINDS = DIRECTIVES | {"python", "bash", "text", "json"}
PAGES = [path for path in DOCS.rglob("*.md") if GENERATED.isdisjoint(path.parts)]
DOCUMENTS = sorted([ROOT / "README.md", *PAGES])
# pages with whole searches run with the build of the site, and each week
LONG = {"README.md", "docs/index.md", "docs/quickstart.md", "docs/interpretation.md", "docs/faq.md"}
LONG |= {f"docs/guide/{name}.md" for name in ("scales", "categories", "rows", "searching")}
LONG |= {f"docs/guide/{name}.md" for name in ("evidence", "forecasts", "predicting", "kernels")}
LONG |= {"docs/guide/prior-knowledge.md", "docs/guide/counts.md"}
LISTED_WHOLE = (autokernel, autokernel.datasets, autokernel.displays, autokernel.export)


def examples(path):
    """Each block of Python, "prints" or "prints, for example" or nothing, and the text shown."""
    return [one for one in FENCE.findall(path.read_text("utf-8")) if CLUSTER not in one[0]]


def kernels(text):
    return KERNEL.findall(text)


def numbers(text):
    return [float(one[0]) for one in NUMBER.finditer(text)]


def structure(text):
    """Lines without the values in them; one line for several of the same kind, as in a table."""
    for pattern, kind in ((KERNEL, "KERNEL"), (NUMBER, "0"), (re.compile("True|False"), "FLAG")):
        text = pattern.sub(kind, text)
    return [line for line, _ in groupby(" ".join(line.split()) for line in text.splitlines())]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def pages_with_examples():
    """The pages, those with whole searches marked."""
    for path in DOCUMENTS:
        if examples(path):
            marks = [pytest.mark.slow] if name_of(path) in LONG else []
            yield pytest.param(path, id=name_of(path), marks=marks)


@pytest.mark.filterwarnings("ignore:to_dict leaves out memory")  # which the test adds
@pytest.mark.filterwarnings("ignore:1 of 2 rows have levels of column 'shop'")  # as the text says
@pytest.mark.parametrize("path", list(pages_with_examples()))
def test_the_examples_run_and_print_what_is_shown(path, kept, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, memory = {}, f"memory={str(kept)!r}"
    for code, prints, shown in examples(path):
        capsys.readouterr()
        run = code.replace(*SHORTER).replace('memory="evaluations"', memory)
        run = run.replace("random_state=0)", f"random_state=0, {memory})")
        exec(compile(run, str(path), "exec"), names)
        printed = capsys.readouterr().out
        for kernel in kernels(shown) + kernels(printed):
            columns = sorted(set(re.findall(r"\[([a-z]\w*)\]", kernel)))
            parse_expression(kernel, columns or None)
        if prints == "prints":
            assert structure(printed) == structure(shown)
            if "model" not in names:  # after a search, other kernels may be found
                found, expected = map(numbers, (printed, shown))
                # parameters at a maximum, in three digits or more
                np.testing.assert_allclose(found, expected, rtol=0.01, atol=1e-3)
        elif prints:  # in other sentences, but with the same names of columns
            assert bool(kernels(printed)) == bool(kernels(shown))
            (found, *_), (heading, *_) = map(structure, (printed, shown))
            assert found == heading or re.search("0|KERNEL", heading)
    plt.close("all")


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_no_block_of_python_is_hidden_from_the_test_above_and_no_link_is_broken(path):
    text = path.read_text("utf-8")
    for before, kind in ANY_FENCE.findall(text):
        assert kind in KINDS
        assert not (kind == "python" and before), "a block of Python begins at the margin"
    assert [target for target in LINK.findall(text) if not (path.parent / target).exists()] == []


def names_in_the_reference():
    """Names that the reference lists, by module."""
    text = (DOCS / "api" / "index.md").read_text("utf-8")
    _, *parts = re.split(r"currentmodule:: ([\w.]+)$", text, flags=re.MULTILINE)
    found = {}
    for module, part in zip(parts[::2], parts[1::2], strict=True):
        rows = "".join(re.findall(r"^\| (`.*?) \|", part, re.MULTILINE))
        listed = re.findall(r"^   (\w+)$", part, re.MULTILINE) + re.findall(r"`(\w+)`", rows)
        found.setdefault(module, set()).update(listed)
    return found


@pytest.mark.parametrize("module", LISTED_WHOLE, ids=lambda module: module.__name__)
def test_the_reference_lists_every_public_name(module):
    listed = set().union(*names_in_the_reference().values())
    assert set(module.__all__) - {"__version__"} <= listed


@pytest.mark.parametrize("module", names_in_the_reference())
def test_what_the_reference_lists_can_be_imported(module):
    for name in names_in_the_reference()[module]:
        assert hasattr(importlib.import_module(module), name), name


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
