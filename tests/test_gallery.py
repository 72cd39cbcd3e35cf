"""What can be said of the examples without running them; the build of the site runs them."""

import ast
import importlib
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "docs" / "gallery").glob("plot_*.py"))


def test_there_are_sixteen_examples_with_different_titles():
    texts = [ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in EXAMPLES]
    assert len({text.splitlines()[0] for text in texts}) == 16


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_asks_a_question_shows_its_picture_and_imports_public_names(path):
    text = path.read_text(encoding="utf-8")
    program = ast.parse(text, filename=path.name)
    opening = ast.get_docstring(program)
    title, line, *_ = opening.splitlines()
    assert title.endswith("?")
    assert line == "=" * len(title)
    assert ast.unparse(program.body[-1]) == "plt.show()"
    assert ("AUTOKERNEL_DATA" in text) == ("AUTOKERNEL_DATA" in opening)  # whose data they are
    imported = [
        (node.module, alias.name)
        for node in ast.walk(program)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("autokernel")
        for alias in node.names
    ]
    assert imported
    for module, name in imported:
        assert name in importlib.import_module(str(module)).__all__
