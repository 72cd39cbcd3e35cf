"""What can be said of the examples without running them; the build of the site runs them."""

import ast
import importlib
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "docs" / "gallery").glob("plot_*.py"))
every_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=path.name)


def opening(path: Path) -> str:
    text = ast.get_docstring(parsed(path))
    assert text is not None, f"{path.name} must begin with a docstring, which is its text"
    return text


def test_there_are_sixteen_examples_with_different_titles():
    assert len({opening(path).splitlines()[0] for path in EXAMPLES}) == 16


@every_example
def test_an_example_asks_a_question_and_ends_by_showing_its_picture(path):
    title, line, *_ = opening(path).splitlines()
    assert title.endswith("?")
    assert line == "=" * len(title)
    assert ast.unparse(parsed(path).body[-1]) == "plt.show()"
    if "AUTOKERNEL_DATA" in path.read_text(encoding="utf-8"):  # whose data they are
        assert "AUTOKERNEL_DATA" in opening(path)


@every_example
def test_names_that_an_example_imports_from_the_package_are_public(path):
    imported = [
        (node.module, alias.name)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("autokernel")
        for alias in node.names
    ]
    assert imported
    for module, name in imported:
        assert name in importlib.import_module(str(module)).__all__
