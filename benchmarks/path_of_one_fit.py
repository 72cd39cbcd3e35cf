"""How much of the package a fit runs, and how deep the first Cholesky factorisation lies.

Prints the stack of the package at the first factorisation of the search, the number of
factorisations before it, and the functions, files and source lines that a default ``fit`` and
``predict`` run. ``--package`` measures another checkout.
"""

import argparse
import ast
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any


def code_of_calls(run: Callable[[], Any], seen: Callable[[FrameType], None]) -> None:
    """Run a function, and show each frame that is entered."""

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen(frame)

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)


def is_factorisation(code: CodeType) -> bool:
    """Whether a function computes a Cholesky factor in packed form."""
    is_packed = Path(code.co_filename).stem in ("linalg", "packed")
    return is_packed and code.co_qualname == "PackedCholesky.__init__"


def stacks(package: Path, run: Callable[[], Any]) -> list[list[tuple[str, str]]]:
    """Return the stacks of the package at each factorisation, outermost first."""
    found = []

    def seen(frame: FrameType | None) -> None:
        if frame is None or not is_factorisation(frame.f_code):
            return
        stack = []
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(package):
                stack.append((path.relative_to(package).as_posix(), frame.f_code.co_name))
            frame = frame.f_back
        found.append(stack[:0:-1])  # without the factorisation itself

    code_of_calls(run, seen)
    return found


def lines_of(codes: set[CodeType]) -> tuple[int, int, int]:
    """Count the functions that were called, their files, and their lines of source."""
    lines, functions = set(), 0
    for path in {Path(code.co_filename) for code in codes}:
        first_lines = {code.co_firstlineno for code in codes if code.co_filename == str(path)}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                begin = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                if begin in first_lines:
                    functions += 1
                    lines |= {(path, line) for line in range(begin, node.end_lineno + 1)}
    return functions, len({path for path, _ in lines}), len(lines)


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=Path(__file__).parents[1] / "autokernel")
    package = parser.parse_args().package.resolve()
    sys.path.insert(0, str(package.parent))
    from autokernel import AutoKernelGPRegressor
    from autokernel.datasets import load_airline

    X, y = load_airline(return_X_y=True)
    tiny = AutoKernelGPRegressor(n_iter=0, base_kernels=("SE",), random_state=0)
    every = stacks(package, lambda: tiny.fit(X[:40], y[:40]))
    of_search = next(
        n for n, stack in enumerate(every) if any("loop.py" in str(file) for file, _ in stack)
    )
    for file, name in every[of_search]:
        print(f"  {file}: {name}")
    n_files = len({file for file, _ in every[of_search]})
    print(f"frames {len(every[of_search])}, files {n_files}, factorisations before {of_search}")
    codes: set[CodeType] = set()

    def seen(frame: FrameType) -> None:
        if Path(frame.f_code.co_filename).is_relative_to(package):
            codes.add(frame.f_code)

    model = AutoKernelGPRegressor(random_state=0, n_iter=20)
    code_of_calls(lambda: model.fit(X[:60], y[:60]).predict(X, return_std=True), seen)
    print("functions {}, files {}, lines {} of a fit and predict".format(*lines_of(codes)))


if __name__ == "__main__":
    main()
