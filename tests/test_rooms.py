"""The code stays within the sizes of its rooms: whoever makes one larger changes the table."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROW = re.compile(r"^\| (`[^|]+`) \|[^|]+\| (\d[\d ]*) \|$", re.MULTILINE)
OUTSIDE = ("tests/", "benchmarks/")  # of the package


def places_of(names):
    found = re.findall(r"`([^`]+)`", names)
    return tuple(name if name in OUTSIDE else f"autokernel/{name}" for name in found)


ALLOWED = {places_of(names): int(lines.replace(" ", "")) for names, lines in ROW.findall(PAGE)}
ROOM_OF = {place: room for room in ALLOWED for place in room}
MODULES = [path for top in ("autokernel", *OUTSIDE) for path in (ROOT / top).rglob("*.py")]


def room_of(path):
    """The innermost room of a module, None if it is in none."""
    name = path.relative_to(ROOT).as_posix()
    return ROOM_OF.get(max(filter(name.startswith, ROOM_OF), key=len, default=None))


def test_every_module_is_in_a_room():
    assert [path for path in MODULES if room_of(path) is None] == []


@pytest.mark.parametrize("room", ALLOWED, ids=" ".join)
def test_no_room_is_larger_than_the_table_allows(room):
    n_lines = sum(path.read_text("utf-8").count("\n") for path in MODULES if room_of(path) == room)
    assert 0 < n_lines <= ALLOWED[room], (
        f"{', '.join(room)} has {n_lines} lines, more than docs/architecture.md allows: make it "
        "smaller, or change its line there, and say in the commit why"
    )
