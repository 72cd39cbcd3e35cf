import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import autokernel

LAYERS = {
    "typing": 0,
    "exceptions": 0,
    "validation": 0,
    "datasets": 0,
    "kernels": 1,
    "expression": 2,
    "likelihood": 3,
    "inference": 4,
    "surrogate": 5,
    "search": 6,
    "export": 7,
    "inspection": 7,
    "estimator": 8,
    "__main__": 9,
    "__init__": 9,
}
ALLOWED = {"autokernel", "numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}
# what an extra provides, where it may be imported, and only when it is needed
OPTIONAL = {"matplotlib": ("inspection",), "pandas": ("datasets",)}

PACKAGE = Path(autokernel.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))

every_module = pytest.mark.parametrize(
    "path", MODULES, ids=[path.relative_to(PACKAGE).as_posix() for path in MODULES]
)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def part_of(path: Path) -> str:
    """Part of the package that a file belongs to: a file or a folder at its top."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def imports(root: ast.AST) -> Iterator[str]:
    """Dotted names of everything imported below a node, by statement or by ``import_module``."""
    for node in ast.walk(root):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(level=0, module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom():
                pytest.fail(f"line {node.lineno}: a relative import hides its layer")
            case ast.Call(func=ast.Name(id="import_module" | "__import__"), args=args):
                yield _constant(args[0])
            case ast.Call(func=ast.Attribute(attr="import_module"), args=args):
                yield _constant(args[0])


def _constant(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant), f"line {node.lineno}: name the module that is imported"
    assert isinstance(node.value, str)
    return node.value


def n_code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, source: list[str]) -> int:
    """Count the lines of a function without its docstring, comments and blank lines."""
    assert function.end_lineno is not None
    lines = set(range(function.lineno, function.end_lineno + 1))
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str())) as docstring:
                    lines -= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return sum(
        not source[i - 1].strip().startswith("#") and source[i - 1].strip() != "" for i in lines
    )


def test_the_package_is_where_these_tests_look() -> None:
    assert {"kernels", "expression", "likelihood", "estimator"} <= {part_of(p) for p in MODULES}
    assert len(TESTS) > 5


@every_module
def test_every_module_has_a_layer(path: Path) -> None:
    assert part_of(path) in LAYERS, "a new part of the package needs a line in LAYERS"


@every_module
def test_a_module_imports_only_from_its_own_and_lower_layers(path: Path) -> None:
    layer = LAYERS[part_of(path)]
    for name in imports(tree_of(path)):
        top, *rest = name.split(".")
        if top == "autokernel":
            imported = rest[0] if rest and rest[0] in LAYERS else "__init__"
            assert LAYERS[imported] <= layer, f"{part_of(path)} must not import {name}"


@every_module
def test_only_the_declared_requirements_and_the_standard_library_are_imported(path: Path) -> None:
    for name in imports(tree_of(path)):
        top = name.split(".")[0]
        known = top in ALLOWED or top in sys.stdlib_module_names
        assert known or part_of(path) in OPTIONAL.get(top, ()), f"{name} is no requirement"


@every_module
def test_no_function_imports_anything_but_the_extras(path: Path) -> None:
    inside = {name for function in functions(path) for name in imports(function)}
    assert {name.split(".")[0] for name in inside} <= set(OPTIONAL)


@every_module
def test_the_extras_are_imported_inside_functions_only(path: Path) -> None:
    everywhere = list(imports(tree_of(path)))
    outermost = [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    inside = {name for function in outermost for name in imports(function)}
    assert {name for name in everywhere if name.split(".")[0] in OPTIONAL} <= inside


@pytest.mark.parametrize("path", MODULES + TESTS, ids=lambda path: path.name)
def test_files_stay_under_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400


@every_module
def test_functions_stay_under_40_lines_of_code(path: Path) -> None:
    source = path.read_text(encoding="utf-8").splitlines()
    assert [f.name for f in functions(path) if n_code_lines(f, source) >= 40] == []


def test_docstrings_comments_and_blank_lines_are_not_lines_of_code() -> None:
    text = 'def f(\n    x,\n):\n    """Two\n    lines."""\n\n    # why\n    y = """\n    """\n    return y\n'
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert n_code_lines(function, text.splitlines()) == 6


def test_importing_the_package_imports_no_extra() -> None:
    code = "import sys, autokernel; print(*sorted(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, check=True, capture_output=True, text=True
    )
    loaded = set(result.stdout.split())
    assert "sklearn" in loaded
    assert loaded.isdisjoint({"pandas", "matplotlib"})
