"""How far it is from ``fit`` to the first Cholesky factor: frames and files on the stack.

Also counts what makes code long to read: classes by package, switched-off checks of unused
arguments, and private helpers that are used once. ``--package`` measures another checkout.
"""

import argparse
import ast
import collections
import re
import sys
from pathlib import Path


def stack_at_first_factor(package: Path) -> list[tuple[str, str]]:
    """Files and functions on the stack as the first covariance is factorised."""
    sys.path.insert(0, str(package.parent))
    from autokernel import AutoKernelGPRegressor
    from autokernel.datasets import load_airline

    found: list[tuple[str, str]] = []

    def watch(frame, event, argument):  # noqa: ARG001 - as sys.setprofile calls it
        code = frame.f_code
        is_factor = code.co_name == "__init__" and code.co_filename.endswith("linalg.py")
        if event == "call" and is_factor and not found:
            while frame is not None:
                found.append((frame.f_code.co_filename, frame.f_code.co_name))
                frame = frame.f_back
            sys.setprofile(None)

    X, y = load_airline(return_X_y=True)
    model = AutoKernelGPRegressor(n_iter=0, base_kernels=("SE",), random_state=0)
    sys.setprofile(watch)
    model.fit(X[:40], y[:40])
    sys.setprofile(None)
    mine = [(Path(file), name) for file, name in reversed(found) if str(package) in file]
    return [(file.relative_to(package).as_posix(), name) for file, name in mine]


def count_classes(package: Path) -> dict[str, int]:
    """Classes by the first part of their path."""
    counts: collections.Counter[str] = collections.Counter()
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        part = path.relative_to(package).parts[0].removesuffix(".py")
        counts[part] += sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree))
    return {part: n for part, n in counts.most_common() if n}


def count_helpers(package: Path) -> tuple[int, int]:
    """Private functions and methods, and how many of them are used once."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    names = set(re.findall(r"def (_[a-z]\w*)\(", text))
    once = [name for name in names if len(re.findall(rf"(?<!\w){name}(?!\w)", text)) == 2]
    return len(names), len(once)


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=Path(__file__).parents[1] / "autokernel")
    package = parser.parse_args().package.resolve()
    stack = stack_at_first_factor(package)
    for file, name in stack:
        print(f"  {file}: {name}")
    print(f"frames {len(stack)}, files {len({file for file, _ in stack})}")
    print("classes:", count_classes(package), sum(count_classes(package).values()))
    text = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    print("noqa: ARG", len(re.findall(r"noqa: ARG", text)))
    n_helpers, n_once = count_helpers(package)
    print(f"private helpers {n_helpers}, used once {n_once}")


if __name__ == "__main__":
    main()
