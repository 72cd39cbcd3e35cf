"""Whether the tests notice a change of one operator, number or condition of the numerical code.

A mutant is the package with one such change. It is killed if a test fails, or takes ten times as
long as before. The tests that execute the changed line run, those of the fastest files first, for
at most two minutes. Texts, annotations, errors, and arguments that only change the speed stay. The
sample has the same share of every module.

Rows go to results/mutants.csv. results/mutants_survivors.csv has the reasons for survivors that no
test should kill. Each mutant runs in a fork, and hence not on Windows.

    pip install coverage
    python benchmarks/mutants.py                      # 300 mutants: half an hour and more
    python benchmarks/mutants.py --again              # survivors without a reason
    python benchmarks/mutants.py --datasets evidence/laplace.py --all
    python benchmarks/mutants.py --finished           # all rows whose place is still in the code
"""

import ast
import atexit
import contextlib
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import common
import hypothesis
import pandas as pd  # noqa: F401  (this and the next ones once, before the forks)
import pytest
import scipy.stats  # noqa: F401
import sklearn.ensemble  # noqa: F401
from common import Row, Rows, group, numbers, read_rows
from coverage import Coverage

NAME, REASONS = "mutants", "mutants_survivors"  # of the CSV files
SIZE = 300  # mutants of the sample
TOP = common.checkout()
MODULES = [
    *("evidence/laplace.py", "evidence/importance.py", "evidence/criteria.py"),
    *("evidence/posterior.py", "evidence/varying_noise.py", "expression/normal_form.py"),
    *("data/noise.py", "explain/effects.py"),
    *(f"kernels/{path.name}" for path in sorted(TOP.glob("autokernel/kernels/*.py"))),
    *(f"inference/{path.name}" for path in sorted(TOP.glob("autokernel/inference/*.py"))),
]
TESTS = [
    *(f"{room}/test_*" for room in ("kernels", "inference", "evidence", "expression", "model")),
    *("reference/test_*", "many_rows/test_*", "explain/test_*", "test_own_kernels*"),
    *(f"estimator/test_{name}" for name in ("row_noise", "varying_noise", "gaps", "pairs")),
]
OPTIONS = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
BUDGET = 120  # seconds of tests for one mutant
SLOWER, GRACE = 10, 20  # a test may take ten times its seconds and 20 s
MEMORY = 4 << 30  # bytes that a mutant may take
OUTCOMES = KILLED, TIMEOUT, SURVIVED, NOT_EXECUTED = (
    *("killed", "timeout", "survived", "not executed"),
)
IDENTITY = ("module", "code", "column", "before", "after")  # stays if lines move
IMPORT, FIXTURE = "", "fixture"  # contexts of lines that concern several tests
SWAPS: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"), ast.FloorDiv: ("//", "/"), ast.Mod: ("%", "//"), ast.USub: ("-", ""),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.Not: ("not", ""),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
NEGATED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)  # by their swap
TEXTS = (ast.JoinedStr, ast.Raise, ast.Assert)
GUARDS = {"strict", "check_finite", "overwrite_a", "overwrite_b", "copy", "stacklevel"}
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "bases"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """What a row is measured for: the text ``before`` at a position becomes ``after``."""

    module: str
    line: int
    column: int  # in bytes, from zero
    before: str
    after: str


def source(module: str) -> bytes:
    return (TOP / "autokernel" / module).read_bytes()


def line_of(mutant: Mutant) -> str:
    return source(mutant.module).splitlines()[mutant.line - 1].strip().decode()


def changed(mutant: Mutant) -> bytes:
    lines = source(mutant.module).splitlines(keepends=True)
    before, line, at = mutant.before.encode(), lines[mutant.line - 1], mutant.column
    if not line[at:].startswith(before):
        raise ValueError(f"{mutant} is not a change of {line.decode()}")
    lines[mutant.line - 1] = line[:at] + mutant.after.encode() + line[at + len(before) :]
    return b"".join(lines)


def code(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a tree that may be changed."""
    name = getattr(node, "name", None) or getattr(node, "arg", None)
    is_alias = isinstance(node, ast.Assign) and node.col_offset == 0 and "|" in ast.unparse(node)
    if isinstance(node, TEXTS) or name in {"__repr__", "__str__", *GUARDS} or is_alias:
        return
    yield node
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in SKIPPED_FIELDS:
                yield from code(child)


def left_of_operators(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Operators between operands, each with its left operand."""
    match node:
        case ast.BinOp(left, op, _) | ast.AugAssign(left, op, _):
            yield left, op
        case ast.Compare(left, ops, others):
            yield from zip([left, *others], ops, strict=False)
        case ast.BoolOp(op, values):
            yield from ((value, op) for value, _ in pairwise(values))


def conditions(node: ast.AST) -> list[ast.expr]:
    """Conditions of a node that no other change negates."""
    match node:
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            found = [test]
        case ast.comprehension(ifs=found):
            pass
        case _:
            found = []
    return [
        test
        for test in found
        if not isinstance(test, ast.UnaryOp)
        and not (isinstance(test, ast.Compare) and isinstance(test.ops[0], NEGATED))
        and ast.unparse(test) != "TYPE_CHECKING"
    ]


def mutants_of(module: str) -> list[Mutant]:
    text, tree = source(module), ast.parse(source(module))
    starts = [0, *(found.end() for found in re.finditer(rb"\n", text))]
    space = re.compile(rb"(?:[\s()\\]|#.*)*")  # between an operand and the operator
    changes: list[tuple[int, str, str]] = []
    for node in code(tree):
        for left, op in left_of_operators(node):
            if type(op) in SWAPS:
                at = starts[left.end_lineno - 1] + left.end_col_offset
                changes.append((space.match(text, at).end(), *SWAPS[type(op)]))
        if isinstance(node, ast.UnaryOp) and type(node.op) in SWAPS:
            changes.append((starts[node.lineno - 1] + node.col_offset, *SWAPS[type(node.op)]))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            at, end = starts[node.lineno - 1] + node.col_offset, node.end_col_offset
            other = {bool: lambda n: not n, int: lambda n: n + 1, float: lambda x: 2 * x or 1.0}
            before = text[at : starts[node.lineno - 1] + end].decode()
            changes.append((at, before, repr(other[type(node.value)](node.value))))
        for test in conditions(node):
            changes.append((starts[test.lineno - 1] + test.col_offset, "", "not "))
    found = []
    for at, before, after in changes:
        line = bisect_right(starts, at)
        mutant = Mutant(module, line, at - starts[line - 1], before, after)
        with contextlib.suppress(SyntaxError):  # a condition of several parts may not take a not
            if ast.dump(ast.parse(changed(mutant))) != ast.dump(tree):
                found.append(mutant)
    return found


def shuffled(modules: Sequence[str]) -> list[Mutant]:
    """All mutants of some modules; any number of the first ones has the same share of each."""
    rng, keyed = random.Random(0), []
    for module in modules:
        found = mutants_of(module)
        rng.shuffle(found)
        start = rng.random()
        keyed += [((start + rank) / len(found), mutant) for rank, mutant in enumerate(found)]
    return [mutant for _, mutant in sorted(keyed, key=lambda pair: pair[0])]


@lru_cache(maxsize=1)
def copied() -> Path:
    """Copy the checkout, with the compiled files, to a folder that is removed at the end."""
    folder, ran_by = Path(tempfile.mkdtemp(prefix="mutants-")).resolve(), os.getpid()
    atexit.register(lambda: os.getpid() == ran_by and shutil.rmtree(folder, ignore_errors=True))
    for name in ("autokernel", "tests", "docs"):
        shutil.copytree(TOP / name, folder / name)
    shutil.copy2(TOP / "pyproject.toml", folder)
    return folder


def forked(task: Callable[[], None]) -> tuple[int, float]:
    """Run a task in a fork and in the copy, and return its exit code and CPU seconds."""
    folder, pid = copied(), os.fork()
    if pid == 0:
        os.setsid()
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder)
        sys.path.insert(0, str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == "autokernel"]:
            del sys.modules[name]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            task()
        except BaseException:
            traceback.print_exc()
            os._exit(100)
        os._exit(0)
    _, status, usage = os.wait4(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)  # workers of the tests
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


class Recorder:
    """Plugin of pytest: the seconds of each test, and the lines that it executes.

    Lines of a test have its name as their context; what a fixture executes concerns each test of
    the file.
    """

    def __init__(self, coverage: Coverage) -> None:
        self.coverage, self.seconds = coverage, dict[str, float]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self.coverage.switch_context(FIXTURE)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration


def record(file: str, kept: Path) -> None:
    """Run all tests of a file and write their seconds and the contexts of each line."""
    coverage = Coverage(data_file=None, include=[f"{copied()}/autokernel/*"], config_file=False)
    recorder = Recorder(coverage)
    coverage.start()
    status = pytest.main([*OPTIONS, file], plugins=[recorder])
    coverage.stop()
    if status != pytest.ExitCode.OK:
        raise RuntimeError(f"pytest ends with {status} on {file} without a mutant")
    lines = {
        module: coverage.get_data().contexts_by_lineno(f"{copied()}/autokernel/{module}")
        for module in MODULES
    }
    kept.write_text(json.dumps({"seconds": recorder.seconds, "lines": lines}))


@lru_cache(maxsize=1)
def records() -> list[Mapping[str, Any]]:
    """Run each file of tests once; keep what it executes until it or the package changes."""
    files = sorted(path for name in TESTS for path in TOP.glob(f"tests/{name}.py"))
    package = b"".join(path.read_bytes() for path in sorted(TOP.glob("autokernel/**/*.py")))
    folder = Path(tempfile.gettempdir()) / "mutants-executed-lines"
    folder.mkdir(exist_ok=True)
    found = []
    for path in files:
        kept = folder / f"{hashlib.sha1(package + path.read_bytes()).hexdigest()}.json"
        if not kept.exists():
            name = path.relative_to(TOP).as_posix()
            status, seconds = forked(partial(record, name, kept))
            if status:
                raise SystemExit(status)
            print(f"{name}: {seconds:.0f} CPU seconds", flush=True)
        found.append(json.loads(kept.read_text()))
    return found


def statement(mutant: Mutant) -> set[str]:
    """Lines of the innermost statement of a mutant, or of the head of a block."""
    found = range(sys.maxsize)
    for node in ast.walk(ast.parse(source(mutant.module))):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            lines = range(node.lineno, body[0].lineno if body else node.end_lineno + 1)
            if mutant.line in lines and len(lines) <= len(found):
                found = lines
    return set(map(str, found))


def tests_of(mutant: Mutant, budget: float) -> dict[str, float]:
    """Tests that execute a mutant, with their seconds, those of the fastest files first.

    Those of its module and of its room come before. A line that only runs when the module is
    imported concerns all tests.
    """
    lines, here = statement(mutant), []
    for one in records():
        contexts = one["lines"][mutant.module]
        here.append({name for line in lines for name in contexts.get(line, ())})
    room, _, module = mutant.module.removesuffix(".py").partition("/")
    chosen = []
    for one, names in zip(records(), here, strict=True):
        own = one["seconds"]
        if FIXTURE not in names and set().union(*here) != {IMPORT}:
            own = {name: own[name] for name in names - {IMPORT}}
        file, _, _ = next(iter(own), "").partition("::")
        order = module not in file, f"tests/{room}/" not in file, sum(own.values()), file
        chosen += [(*order, seconds, name) for name, seconds in own.items()]
    tests = {name: seconds for *_, seconds, name in sorted(chosen)}
    return dict(list(tests.items())[: bisect_right(list(accumulate(tests.values())), budget)])


class Chosen:
    """Plugin of pytest: run tests in an order, each within its time, and write which one fails."""

    def __init__(self, tests: Mapping[str, float], failed: Path) -> None:
        self.tests, self.failed = tests, failed

    def pytest_collection(self) -> None:
        """Do not look for the shortest example that fails."""
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutants", hypothesis.settings(), phases=phases)
        hypothesis.settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in self.tests if name in found]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Set the clock of the CPU and, for a deadlock, that of the wall: both end the process."""
        seconds = GRACE + SLOWER * self.tests[item.nodeid]
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, 5 * seconds)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.write_text(report.nodeid)


def run(tests: Mapping[str, float], failed: Path) -> None:
    """Run tests until one fails; the exit code of pytest is that of the process."""
    sys.dont_write_bytecode = True  # a mutant has the name of the original
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    files = dict.fromkeys(name.partition("::")[0] for name in tests)
    os._exit(pytest.main([*OPTIONS, "-x", *files], plugins=[Chosen(tests, failed)]))


def measure(budget: int, **fields: Any) -> Row:
    mutant = Mutant(**fields)
    tests = tests_of(mutant, budget)
    path, failed = copied() / "autokernel" / mutant.module, copied() / "failed"
    failed.write_text("")
    path.write_bytes(changed(mutant))
    status, seconds = forked(partial(run, tests, failed)) if tests else (0, 0.0)
    shutil.copy2(TOP / "autokernel" / mutant.module, path)
    if status == 100 or status == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError(f"the tests of {mutant} cannot run")
    outcome = SURVIVED if status == 0 else KILLED
    if status in (-signal.SIGPROF, -signal.SIGALRM):
        outcome = TIMEOUT
    return {
        "code": line_of(mutant),
        "outcome": outcome if tests else NOT_EXECUTED,
        "budget": budget,
        "tests": len(tests),
        "killed_by": failed.read_text(),
        "seconds": round(seconds, 1),
    }


def identity(row: Mapping[str, object]) -> tuple[str, ...]:
    """Return what names a mutant if lines move."""
    return tuple(str(row[name]) for name in IDENTITY)


def summarise(rows: Rows) -> None:
    known = {identity(row): row["reason"] for row in read_rows(REASONS)}
    for row in rows:
        if row["outcome"] in (SURVIVED, NOT_EXECUTED):
            change = f"{row['before']!r} -> {row['after']!r} in {row['code']}"
            print(f"\n{row['module']}:{row['line']}:{row['column']} {row['outcome']}: {change}")
            print(f"    {known.get(identity(row), 'no reason yet')}")

    def count(*outcomes: str) -> common.Figure:
        return lambda found: sum(row["outcome"] in outcomes for row in found)

    figures = {
        "mutants": len,
        **{name: count(name) for name in OUTCOMES},
        "with reason": lambda found: sum(
            row["outcome"] in (SURVIVED, NOT_EXECUTED) and identity(row) in known for row in found
        ),
        "score": lambda found: count(KILLED, TIMEOUT)(found) / len(found),
        "CPU minutes": lambda found: float(numbers(found, "seconds").sum() / 60),
    }
    print()
    common.print_groups({**group(rows, "module"), "all": rows}, "module", figures)


def main() -> None:
    arguments = common.options_of(
        __doc__, datasets=MODULES, size=SIZE, budget=BUDGET, all=False, again=False,
        small={"size": 20},
    )  # fmt: skip
    every = [asdict(mutant) for mutant in shuffled(arguments.datasets)]
    print(f"{len(every)} mutants in all")
    units = every if arguments.all else every[: arguments.size]
    places = [identity({**unit, "code": line_of(Mutant(**unit))}) for unit in every]
    last = {identity(row): row for row in read_rows(NAME)}
    if arguments.again:
        known = {identity(row) for row in read_rows(REASONS)}
        again = {
            place
            for place, row in last.items()
            if row["outcome"] in (SURVIVED, NOT_EXECUTED) and place not in known
        }
        units = [unit for unit, place in zip(every, places, strict=True) if place in again]
    if units and not arguments.finished:
        common.collect(NAME, units, partial(measure, arguments.budget), arguments)
        last = {identity(row): row for row in read_rows(NAME)}
    summarise([row for place, row in last.items() if place in set(places)])


if __name__ == "__main__":
    main()
