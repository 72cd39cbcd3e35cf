"""The examples in the documents run, in order, as a reader would run them."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([\w./-]+\.\w+)(?:#[^)]*)?\)")
CLUSTER = "dask"  # examples with a cluster are those of benchmarks/cluster.py
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def examples(path):
    return [code for code in FENCE.findall(path.read_text("utf-8")) if CLUSTER not in code]


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if examples(path)], ids=lambda path: path.name
)
def test_the_examples_run(path, tmp_path, monkeypatch):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in examples(path):
        exec(compile(code, str(path), "exec"), names)
    plt.close("all")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_pictures_exist(path):
    for target in LINK.findall(path.read_text("utf-8")):
        assert (path.parent / target).exists(), target
