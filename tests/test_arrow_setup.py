"""Memory that nothing uses goes back to the system when it is asked back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pyprof import arrow_setup
from pyprof.inputs.engine import InProcess
from tests.programs import python

_STATM = Path("/proc/self/statm")

_HOLDS_100_MB = f"""
import mmap
from pathlib import Path
import numpy as np
import pyarrow  # which would else be loaded, and counted, below
from pyprof import arrow_setup

def resident_bytes():
    return int(Path({str(_STATM)!r}).read_text().split()[1]) * mmap.PAGESIZE

before = resident_bytes()
# Each below the size from which malloc maps memory of its own, which free() gives back at once.
held = [np.ones(50_000, np.int8) for _ in range(2000)]
kept = held[-1]  # keeps the end of the heap where it is
held.clear()
after = resident_bytes()
arrow_setup.give_back()
print(before, after, resident_bytes())
"""


@pytest.mark.skipif(
    not _STATM.exists() or arrow_setup._TRIM is None, reason="needs Linux with glibc"
)
def test_what_was_freed_goes_back_to_the_system() -> None:
    """By the kernel's own count: 100 MB that the C library kept are no longer resident."""
    done = python("-c", _HOLDS_100_MB)
    assert done.returncode == 0, done.stderr
    before, after, given_back = map(int, done.stdout.split())
    assert after - before > 90e6
    assert given_back - before < 10e6


@pytest.mark.parametrize("trim", [False, True])
def test_both_allocators_are_asked(
    trim: bool,  # noqa: FBT001 - pytest's
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Arrow's, and the C library's where it can."""
    asked: list[str] = []

    class Pool:
        def release_unused(self) -> None:
            asked.append("Arrow")

    monkeypatch.setattr("pyarrow.default_memory_pool", Pool)
    monkeypatch.setattr(arrow_setup, "_TRIM", asked.append if trim else None)
    arrow_setup.give_back()
    assert asked == (["Arrow", 0] if trim else ["Arrow"])


@pytest.mark.skipif(not _STATM.exists(), reason="needs Linux")
@pytest.mark.parametrize("kept", [0, 1 << 60], ids=["large", "small"])
def test_several_captures_use_the_same_memory(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was freed after one is kept for the next, by a process that is small; and no longer."""
    asked: list[int] = []
    monkeypatch.setattr(arrow_setup, "_TRIM", asked.append)
    monkeypatch.setattr(arrow_setup, "_KEPT_BYTES", kept)
    InProcess().map(lambda _: arrow_setup.give_back(), range(3), "")
    assert len(asked) == (0 if kept else 3)
    arrow_setup.give_back()
    assert len(asked) == (1 if kept else 4)


def test_memory_is_given_back_where_nobody_knows_how_much_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other systems have no such file."""
    asked: list[int] = []
    monkeypatch.setattr(arrow_setup, "_TRIM", asked.append)
    monkeypatch.setattr(arrow_setup, "_STATM", Path("nowhere"))
    with arrow_setup.reusing():
        arrow_setup.give_back()
    assert asked == [0]


_TAKES_TWICE = """
import resource
from pyprof import arrow_setup

arrow_setup.prepare()
import numpy as np

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    before = faults()
    np.ones(100_000_000, np.int8)
    print(faults() - before)
"""


@pytest.mark.skipif(arrow_setup._OPTION is None, reason="needs glibc")
def test_the_memory_of_large_arrays_is_used_again() -> None:
    """The system clears 100 MB, page by page, for the first array, and not for the next."""
    done = python("-c", _TAKES_TWICE)
    assert done.returncode == 0, done.stderr
    first, second, third = map(int, done.stdout.split())
    assert second + third < first / 10


def test_tables_are_grouped_and_joined_in_the_calling_thread() -> None:
    """Arrow's threads may outlive the result; at exit they then end the process with SIGABRT.

    They give back what belongs to NumPy, for which they need a Python that is there no more.
    """
    in_threads = [
        f"{path.name}:{call.lineno}"
        for path in Path(arrow_setup.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        for names in [{keyword.arg for keyword in call.keywords}]
        if call.func.attr == "group_by" or names & {"join_type", "right_keys"}
        if "use_threads" not in names
    ]
    assert in_threads == []
