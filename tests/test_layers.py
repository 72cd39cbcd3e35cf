import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import autokernel
from autokernel.kernels import BASE_KERNELS, NOISE_VARIANCE

LAYERS = {
    "typing": 0,
    "exceptions": 0,
    "validation": 0,
    "deadline": 0,
    "version": 0,
    "environment": 0,
    "datasets": 0,
    "data": 0,
    "kernels": 1,
    "operators": 1,
    "expression": 2,
    "likelihood": 3,
    "map": 4,
    "criteria": 5,
    "evaluation": 6,
    "surrogate": 7,
    "averaging": 7,
    "search": 8,
    "model": 9,
    "report": 10,
    "fit": 10,
    "predictions": 10,
    "descriptions": 11,
    "explanation": 11,
    "explanations": 12,
    "exports": 12,
    "pages": 12,
    "transfer": 11,
    "displays": 12,
    "scoring": 10,
    "estimator": 13,
    "__init__": 14,
    "cli": 15,
    "__main__": 16,
}
ALLOWED = {"autokernel", "numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}
# what users may do without, and the parts of the package that may ask for it inside a function
EXTRAS = {
    "matplotlib": {"displays", "pages", "cli"},
    "pandas": {"datasets"},
    "skops": {"cli"},
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

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


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, FUNCTIONS)]


def outside_functions(root: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run when the module is imported."""
    for node in ast.iter_child_nodes(root):
        if not isinstance(node, FUNCTIONS) and not is_for_types(node):
            yield node
            yield from outside_functions(node)


def is_for_types(node: ast.AST) -> bool:
    """Whether only type checkers read a statement."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Dotted names of everything that is imported, by statement or by ``import_module``."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(level=0, module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom():
                pytest.fail(f"line {node.lineno}: a relative import hides its layer")
            case ast.Call(func=ast.Name(id="import_module" | "__import__"), args=[name, *_]):
                yield ast.literal_eval(name)
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[name, *_]):
                yield ast.literal_eval(name)


def n_code_lines(function: ast.AST, source: list[str]) -> int:
    """Count the lines of a function without docstrings, comments and blank lines."""
    lines = set(range(function.lineno, function.end_lineno + 1))
    for node in ast.walk(function):
        if isinstance(node, FUNCTIONS) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    stripped = [source[number - 1].strip() for number in lines]
    return sum(line != "" and not line.startswith("#") for line in stripped)


def run_python(code: str) -> str:
    """Output of a new process that finds the package under test first."""
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=PACKAGE.parent, check=True, capture_output=True, text=True)
    return result.stdout


def test_the_package_is_where_these_tests_look() -> None:
    assert {"kernels", "expression", "likelihood", "estimator"} <= {part_of(p) for p in MODULES}
    assert Path(__file__) in TESTS


@every_module
def test_every_module_has_a_layer(path: Path) -> None:
    assert part_of(path) in LAYERS, "a new part of the package needs a line in LAYERS"


@every_module
def test_a_module_imports_only_from_its_own_and_lower_layers(path: Path) -> None:
    layer = LAYERS[part_of(path)]
    for name in imports(ast.walk(tree_of(path))):
        top, *rest = name.split(".")
        if top == "autokernel":
            imported = rest[0] if rest and rest[0] in LAYERS else "__init__"
            assert LAYERS[imported] <= layer, f"{part_of(path)} must not import {name}"


def module_of(path: Path) -> str:
    """Dotted name of a file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imported_modules(path: Path, known: Collection[str]) -> set[str]:
    """Modules of the package that a file imports, those that its names come from."""
    found = set()
    for name in imports(outside_functions(tree_of(path))):
        longest = next((n for n in (name, name.rpartition(".")[0]) if n in known), None)
        if longest is not None:
            found.add(longest)
    return found - {module_of(path)}


def cycle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """Some cycle, as the names on the way; empty if there is none."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph[name]):
            if found := visit(other, [*way, name]):
                return found
        done.add(name)
        return []

    return next(filter(None, (visit(name, []) for name in sorted(graph))), [])


def test_no_module_imports_itself_in_a_circle() -> None:
    modules = {module_of(path): path for path in MODULES}
    graph = {name: imported_modules(path, modules) for name, path in modules.items()}
    assert graph["autokernel.inference.exact"] >= {"autokernel.inference.packed"}
    assert cycle_in(graph) == []


def test_a_circle_is_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


NAMES = {*BASE_KERNELS, *(p.name for k in BASE_KERNELS.values() for p in k.parameters)}
NAMES.add(NOISE_VARIANCE.name)


@every_module
def test_no_kernel_and_no_parameter_is_named_outside_kernels(path: Path) -> None:
    if LAYERS[part_of(path)] == 0 or part_of(path) == "kernels":  # what is below knows no kernels
        return
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree_of(path))
        if isinstance(node, (*FUNCTIONS, ast.Module, ast.ClassDef))
        and ast.get_docstring(node, clean=False) is not None
    }
    texts = [
        node.value
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
    ]
    # a whole word, alone or before a column; examples in sentences decide nothing
    named = [text for text in texts if re.split(r"\[", text.strip())[0] in NAMES]
    assert named == []


@every_module
def test_only_the_declared_requirements_and_the_standard_library_are_imported(path: Path) -> None:
    for name in imports(ast.walk(tree_of(path))):
        top = name.split(".")[0]
        known = top in ALLOWED or top in sys.stdlib_module_names
        assert known or part_of(path) in EXTRAS.get(top, ()), f"{name} is no requirement"


@every_module
def test_imports_are_at_the_top_except_for_those_of_extras(path: Path) -> None:
    inside = imports(node for function in functions(path) for node in ast.walk(function))
    assert {name.split(".")[0] for name in inside} <= set(EXTRAS)
    at_the_top = imports(outside_functions(tree_of(path)))
    assert {name.split(".")[0] for name in at_the_top}.isdisjoint(EXTRAS)


@pytest.mark.parametrize("path", MODULES + TESTS, ids=lambda path: path.name)
def test_files_stay_under_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400


@every_module
def test_functions_stay_under_40_lines_of_code(path: Path) -> None:
    source = path.read_text(encoding="utf-8").splitlines()
    assert [f.name for f in functions(path) if n_code_lines(f, source) >= 40] == []


def test_docstrings_comments_and_blank_lines_are_not_lines_of_code() -> None:
    source = [
        "def f(",
        "    x,",
        "):",
        '    """Two',
        '    lines."""',
        "",
        "    # why",
        '    y = """',
        '    """',
        "    return y",
    ]
    (function,) = ast.parse("\n".join(source)).body
    assert n_code_lines(function, source) == 6


def test_the_package_can_be_imported_where_no_extra_is_installed() -> None:
    # None in sys.modules makes an import fail
    assert run_python(
        "import sys\n"
        "sys.modules['pandas'] = sys.modules['matplotlib'] = None\n"
        "import autokernel\n"
        "print(autokernel.__version__)"
    )


def test_importing_the_package_loads_no_extra_that_scikit_learn_does_not_load() -> None:
    # scikit-learn itself imports pandas where it is installed
    loaded = run_python(
        "import sys, sklearn.gaussian_process, sklearn.datasets\n"
        "before = set(sys.modules)\n"
        "import autokernel\n"
        "print(*set(sys.modules) - before)"
    ).split()
    assert "autokernel.estimator" in loaded
    assert set(EXTRAS).isdisjoint(loaded)
