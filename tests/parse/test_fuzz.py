"""Damaged captures end in a result or in one line: never a traceback, never a hang."""

import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import CAPTURES, LAYOUTS, Range, Work, nsys_db, nvprof_db
from tests.commands import Done, run

SEED = 20260719
WORK = [
    Work(
        name,
        at=(1000 + 100 * n, 1050 + 100 * n),
        call=(10 * n, 10 * n + 5),
        tid=11 + n % 2,
        kind=kind,
    )
    for n, (name, kind) in enumerate(
        [
            ("_ZN2at6native13reduce_kernelILi512EEEvi", "kernel"),
            ("void gemm<(int)128, float>(float*)", "kernel"),
            ("", "memcpy"),
            ("", "memset"),
            ("", "graph"),
            ("ncclDevKernel_AllReduce()", "kernel"),
        ]
        * 4
    )
]
TEXTS = (
    "layer:a.b",
    "{'traceMarker': ['/app/net.py:3']}",
    (
        "{'mod': 'torch', 'op': 'mm', 'args': [{'name': '', 'type': 'tensor', 'shape': (4, 6), "
        "'dtype': 'float16'}, {'name': '', 'type': 'tensor', 'shape': (6, 2), 'dtype': 'float16'}]}"
    ),
    "aten::mm, seq = 4, op_id = 7, sizes = [[4, 6], [6, 2]]",
    "autograd::engine::evaluate_function: MmBackward0, op_id = 8",
    "MmBackward0, seq = 4, op_id = 9, sizes = [[4, 2]]",
)
RANGES = [
    Range(text, (60 * n + place, 60 * n + 59 - place if n < 3 else None), tid=11 + n % 2)
    for n in range(4)
    for place, text in enumerate(TEXTS)
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    made = {
        name: nsys_db(folder / "net.sqlite", WORK, RANGES, LAYOUTS[name]).read_bytes()
        for name in ("2024.6", "2020.3", "registered strings")
    }
    return made | {"nvprof": nvprof_db(folder / "net.sql", WORK, RANGES).read_bytes()}


NAMES = ("2024.6", "2020.3", "registered strings", "nvprof")


def assert_ends_well(done: Done) -> None:
    """Exit 0 or 1; where 1, one line on stderr and nothing on stdout."""
    assert done.code in (0, 1)
    assert "Traceback" not in done.stderr
    if done.code:
        assert done.stdout == ""
        assert done.stderr.startswith("pyprof: ")
        assert done.stderr.count("\n") == 1


def _try(path: Path, data: bytes) -> Done:
    path.write_bytes(data)
    done = run("parse", path)
    assert_ends_well(done)
    return done


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_truncated(name: str, small: dict[str, bytes], tmp_path: Path) -> None:
    """A file cut at any place."""
    data = small[name]
    cuts = [*range(0, 120, 7), *range(0, len(data), max(len(data) // 40, 1)), len(data) - 1]
    codes = {_try(tmp_path / "net.sqlite", data[:cut]).code for cut in cuts}
    assert 1 in codes


@pytest.mark.slow
@pytest.mark.parametrize("times", [20, pytest.param(70, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_flipped_bytes(name: str, times: int, small: dict[str, bytes], tmp_path: Path) -> None:
    """Some bytes changed at random: in SQLite's own pages and in what they hold."""
    chance = random.Random(f"{SEED}{name}")  # noqa: S311 - repeatable, not secret
    for _ in range(times):
        data = bytearray(small[name])
        for _ in range(chance.choice((1, 3, 30))):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        _try(tmp_path / "net.sqlite", bytes(data))


_ODD = (
    *(None, 0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)),
    *(1.5, -1e300, float("inf"), "", "text", "12abc", "9" * 30, "\ud7ff\x00\x1f", b"", b"\xff\xfe"),
)


def _cells(path: Path) -> Iterator[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
        yield from db.execute(query).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2024.6", "nvprof"])
def test_odd_values_of_some_columns(name: str, small: dict[str, bytes], tmp_path: Path) -> None:
    """Every sixth column in turn holds a value that makes no sense, in one row or in all."""
    _odd_values(name, small, tmp_path, every=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2024.6", "nvprof"])
def test_odd_values(name: str, small: dict[str, bytes], tmp_path: Path) -> None:
    _odd_values(name, small, tmp_path, every=1)


def _odd_values(name: str, small: dict[str, bytes], tmp_path: Path, every: int) -> None:
    """Put a value that makes no sense into columns of one row, or of several, or of all."""
    chance = random.Random(f"{SEED}{name}")  # noqa: S311 - as above
    whole, path = tmp_path / "whole.sqlite", tmp_path / "net.sqlite"
    whole.write_bytes(small[name])
    for table, column in [*_cells(whole)][::every]:
        shutil.copy(whole, path)
        value = chance.choice(_ODD)
        where = chance.choice(("", "WHERE rowid = 1", "WHERE rowid % 3 = 0"))
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f'UPDATE "{table}" SET "{column}" = ? {where}', (value,))  # noqa: S608
        try:
            assert_ends_well(run("prof", "-q", "--csv", path))
        except Exception as error:
            error.args = (*error.args, f"{table}.{column} = {value!r} {where}")
            raise


REAL = ("nvprof-v100-apex/net.sql", "nsys2024.6-a100-cudagraph/net.sqlite")


@pytest.mark.parametrize("times", [3, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", REAL)
def test_real_captures_damaged(name: str, times: int, tmp_path: Path) -> None:
    """Truncations and flips of what tools wrote."""
    source = CAPTURES / name
    if not source.is_file():
        pytest.skip("the shared captures are not here")
    chance = random.Random(f"{SEED}{name}")  # noqa: S311 - as above
    data = source.read_bytes()
    for _ in range(times):
        _try(tmp_path / "net.sqlite", data[: chance.randrange(len(data))])
        flipped = bytearray(data)
        for _ in range(200):
            flipped[chance.randrange(16, len(flipped))] ^= 1 << chance.randrange(8)
        _try(tmp_path / "net.sqlite", bytes(flipped))


def test_dict_files_damaged(small: dict[str, bytes], tmp_path: Path) -> None:
    """The report reads what parse wrote, cut or changed, without a traceback."""
    chance = random.Random(SEED)  # noqa: S311 - as above
    capture = tmp_path / "net.sqlite"
    capture.write_bytes(small["2024.6"])
    for suffix in (".dict", ".parquet"):
        target = tmp_path / f"net{suffix}"
        assert run("parse", capture, "-o", target).code == 0
        whole = target.read_bytes()
        for _ in range(40):
            data = bytearray(whole[: chance.choice((len(whole), chance.randrange(len(whole))))])
            for _ in range(chance.choice((0, 1, 9)) if data else 0):
                data[chance.randrange(len(data))] = chance.randrange(256)
            target.write_bytes(bytes(data))
            assert_ends_well(run("prof", "-q", "--csv", target))
    os.truncate(target, 0)
    assert run("prof", target).code == 1
