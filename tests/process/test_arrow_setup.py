"""How commands set up the C library's memory and Arrow's threads."""

import ast
from pathlib import Path

import pytest

import pyprof
from pyprof.process import arrow_setup
from tests.programs import python

_TAKES_TWICE = """
import resource
from pyprof.process import arrow_setup

arrow_setup.prepare()
import numpy as np

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    before = faults()
    np.ones(100_000_000, np.int8)
    print(faults() - before)
"""


@pytest.mark.skipif(arrow_setup._MALLOPT is None, reason="needs glibc")
def test_the_memory_of_large_arrays_is_used_again() -> None:
    """The kernel zeroes 100 MB for the first array, but not for the next."""
    done = python("-c", _TAKES_TWICE)
    assert done.returncode == 0, done.stderr
    first, second, third = map(int, done.stdout.split())
    assert second + third < first / 10


@pytest.mark.slow
def test_tables_are_grouped_and_joined_in_the_calling_thread() -> None:
    """Arrow's threads may outlive the result, and then abort the process at exit.

    They release memory of NumPy's, for which Python has to be alive.
    """
    in_threads = [
        f"{path.name}:{call.lineno}"
        for path in Path(pyprof.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        for names in [{keyword.arg for keyword in call.keywords}]
        if call.func.attr == "group_by" or names & {"join_type", "right_keys"}
        if "use_threads" not in names
    ]
    assert in_threads == []
