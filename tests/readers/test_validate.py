"""Impossible times and duplicate rows, planted in captures of every format."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyprof import schema
from pyprof.parse import record_file
from pyprof.quantities import counted
from pyprof.readers.validate import in_order
from pyprof.records import parquet
from pyprof.records.records import Records
from tests import damage
from tests.commands import refused, run
from tests.damage import CAPTURES, SPAN_DAMAGES, TRUTHS, Truth

TOOLS = [*CAPTURES, "dict"]
FEW = settings(max_examples=1, deadline=None)


def write(folder: Path, tool: str, truth: Truth) -> Path:
    if tool in CAPTURES:
        return CAPTURES[tool](folder / f"net.{tool}", truth)
    target = folder / "net.dict"
    assert run("parse", damage.nsys(folder / "net.sqlite", truth), "-o", target).code == 0
    return target


def load(path: Path, tool: str) -> Records:
    """Read it as commands do; records go through Parquet, too."""
    records = record_file.load(str(path))
    if tool == "dict":
        return records
    target = path.with_suffix(".parquet")
    with target.open("wb") as file:
        parquet.write(records, file)
    again = record_file.load(str(target))
    assert again.table().equals(records.table())
    # What was dropped from a file is warned of again for its parsed file; a duplicate is gone.
    assert any("cannot be" in text for text in again.warnings) == any(
        "cannot be" in text for text in records.warnings
    )
    return records


def loaded(tool: str, truth: Truth, damaged: Callable[[Path], object] = lambda _: None) -> Records:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), tool, truth)
        damaged(path)
        return load(path, tool)


def longer(truth: Truth, row: int, end: int) -> Truth:
    """Change the end of a kernel."""
    kernels = list(truth.kernels)
    kernels[row] = (kernels[row][0], end)
    return Truth(tuple(kernels))


@pytest.mark.slow
@FEW
@given(TRUTHS)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_sound_capture_has_no_warning(tool: str, truth: Truth) -> None:
    records = loaded(tool, truth)
    assert records.warnings == ()
    assert records.rows == len(truth.kernels)
    assert records.numpy("kDuration").sum() == truth.total_ns()


@pytest.mark.few(9)
@pytest.mark.slow
@FEW
@given(TRUTHS, st.data())
@pytest.mark.parametrize(("tool", "name"), SPAN_DAMAGES)
def test_impossible_times_are_in_no_sum(
    tool: str, name: str, truth: Truth, data: st.DataObject
) -> None:
    every = range(len(truth.kernels))
    wrong = data.draw(st.sets(st.sampled_from(every), min_size=1, max_size=len(every) - 1))
    records = loaded(tool, truth, lambda path: damage.spans(path, tool, name, sorted(wrong)))
    assert records.rows == len(every)
    assert records.arrow("kDuration").null_count == len(wrong)
    assert records.numpy("kDuration").sum() == truth.total_ns(sorted(wrong))
    (said,) = records.warnings
    assert f"{len(wrong)} of {len(every)} rows of GPU work have impossible times" in said


@pytest.mark.few(9)
@pytest.mark.parametrize(("tool", "name"), SPAN_DAMAGES)
def test_a_capture_without_a_valid_time_is_refused(tool: str, name: str, tmp_path: Path) -> None:
    truth = Truth(tuple((10**9 + n * 10**6, 10**9 + n * 10**6 + 5000) for n in range(5)))
    path = write(tmp_path, tool, truth)
    damage.spans(path, tool, name, range(5))
    said = refused("prof", path)
    assert "none of its 5 rows" in said or "kDuration" in said


@pytest.mark.slow
@FEW
@given(TRUTHS)
@pytest.mark.parametrize("tool", TOOLS)
def test_duplicate_rows_count_once(tool: str, truth: Truth) -> None:
    records = loaded(tool, truth, lambda path: damage.twice(path, tool))
    assert records.rows == len(truth.kernels)
    assert records.numpy("kDuration").sum() == truth.total_ns()
    (said,) = records.warnings
    assert f"{len(truth.kernels)} duplicates among" in said


@FEW
@given(TRUTHS, st.integers(1, 300))
@pytest.mark.parametrize("tool", ["nsys", "nvprof"])
def test_empty_rows_are_dropped(tool: str, truth: Truth, count: int) -> None:
    insert = [f"INSERT INTO {damage.TABLES[tool]} DEFAULT VALUES"] * count
    records = loaded(tool, truth, lambda path: damage.sql(path, *insert))
    assert records.rows == len(truth.kernels)
    assert records.numpy("kDuration").sum() == truth.total_ns()
    (said,) = records.warnings
    assert f"{counted(count, 'row')} of GPU work left out as empty" in said


@pytest.mark.parametrize("column", ["streamId", "deviceId", "correlationId"])
def test_a_row_with_one_valid_field_is_kept(column: str, tmp_path: Path) -> None:
    truth = Truth(((10**9, 10**9 + 5000),))
    path = write(tmp_path, "nsys", truth)
    damage.sql(path, f"INSERT INTO {damage.TABLES['nsys']} ({column}) VALUES (7)")  # noqa: S608
    records = record_file.load(str(path))
    assert records.rows == 2
    assert "1 have no start" in records.warnings[0]


@pytest.mark.few(2)
@pytest.mark.slow
@FEW
@given(TRUTHS, st.data(), st.sampled_from([2**44, 2**45, 2**47]))
@pytest.mark.parametrize("tool", CAPTURES)
def test_a_kernel_that_lasts_much_longer_than_the_capture_is_in_no_sum(
    tool: str, truth: Truth, data: st.DataObject, more_ns: int
) -> None:
    row = data.draw(st.integers(0, len(truth.kernels) - 3))
    records = loaded(tool, longer(truth, row, truth.kernels[row][1] + more_ns))
    assert records.numpy("kDuration").sum() == truth.total_ns([row])
    assert "1 of " in records.warnings[0]


@pytest.mark.few(2)
@FEW
@given(TRUTHS, st.data())
@pytest.mark.parametrize("tool", CAPTURES)
def test_a_kernel_that_ends_after_the_next_is_warned_of(
    tool: str, truth: Truth, data: st.DataObject
) -> None:
    """A stream does one thing after another: its end must be wrong, but which is unknown."""
    row = data.draw(st.integers(0, len(truth.kernels) - 2))
    more_ns = data.draw(st.integers(3_000, 9_000) | st.just(10**10))
    later = longer(truth, row, truth.kernels[row + 1][1] + more_ns)
    records = loaded(tool, later)
    (said,) = records.warnings
    assert f"1 of {len(later.kernels)} rows of GPU work end after the next" in said
    assert records.numpy("kDuration").sum() == later.total_ns()


@pytest.mark.few(2)
@pytest.mark.slow
@FEW
@given(TRUTHS, st.data())
@pytest.mark.parametrize("tool", CAPTURES)
def test_a_small_overlap_is_valid(tool: str, truth: Truth, data: st.DataObject) -> None:
    """A dependent kernel may begin before the one before it ends, but not end before it."""
    row = data.draw(st.integers(0, len(truth.kernels) - 2))
    assert loaded(tool, longer(truth, row, truth.kernels[row + 1][1])).warnings == ()


@pytest.mark.few(2)
@pytest.mark.slow
@FEW
@given(TRUTHS, st.integers(1, 20), st.booleans())
@pytest.mark.parametrize("tool", TOOLS)
def test_a_kernel_longer_than_all_others_is_valid(
    tool: str,
    truth: Truth,
    seconds: int,
    last: bool,  # noqa: FBT001
) -> None:
    """If its stream waits for it."""
    at = len(truth.kernels) - 1 if last else len(truth.kernels) // 2
    later = seconds * 10**9
    kernels = [
        (start + later * (place > at), end + later * (place >= at))
        for place, (start, end) in enumerate(truth.kernels)
    ]
    records = loaded(tool, Truth(tuple(kernels)))
    assert records.warnings == ()
    assert records.numpy("kDuration").sum() == truth.total_ns() + later


@pytest.mark.parametrize(
    ("tool", "table", "column"),
    [
        ("nsys", "CUPTI_ACTIVITY_KIND_KERNEL", "end"),
        ("nsys", "CUPTI_ACTIVITY_KIND_KERNEL", "correlationId"),
        ("nsys", "CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"),
        ("nsys", "NVTX_EVENTS", "end"),
        ("nvprof", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "start"),
        ("nvprof", "CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"),
        ("nvprof", "CUPTI_ACTIVITY_KIND_MARKER", "timestamp"),
    ],
)
def test_a_missing_column_is_an_error(tool: str, table: str, column: str, tmp_path: Path) -> None:
    truth = Truth(((10**9, 10**9 + 100),))
    path = write(tmp_path, tool, truth)
    damage.sql(path, f'ALTER TABLE {table} RENAME COLUMN "{column}" TO other')
    said = refused("summary", path)
    assert table in said
    assert repr(column) in said
    damage.sql(path, f"DELETE FROM {table}")  # noqa: S608
    assert repr(column) not in run("summary", path).stderr


KEYS = ("start", "end", "device", "stream", "corr")


@pytest.mark.parametrize("rows", [0, 1, 2, 200])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_sorted_as_python_sorts_them(rows: int, seed: int) -> None:
    """By start, then by the other keys; sorted rows are not copied."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    keys = [tuple(chance.choice((None, 0, 1, 2)) for _ in KEYS) for _ in range(rows)]
    table = schema.table(
        schema.ACTIVITIES,
        {name: [key[place] for key in keys] for place, name in enumerate(KEYS)}
        | {"bytes": list(range(rows))},
    )
    found = in_order(table)
    expected = sorted(
        zip(keys, range(rows), strict=True),
        key=lambda entry: [-1 if value is None else value for value in entry[0]],
    )
    assert found.column("bytes").to_pylist() == [row for _, row in expected]
    assert in_order(found) is found
