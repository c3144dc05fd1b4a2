# ruff: noqa: S608 - statements of our own
"""Damage that would tie work to wrong ops is detected: unknown rather than wrong."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyprof.analysis import pitfalls
from pyprof.parse import parse, parse_file
from pyprof.parse.assemble import assemble
from pyprof.readers import is_capture, read
from tests import damage
from tests.builders import Range, Work, nsys_db
from tests.conftest import CAPTURES as FOLDER
from tests.conftest import real
from tests.damage import CAPTURES, OP
from tests.readers.kineto_calls import call, events
from tests.readers.kineto_json import trace_file

STEPS = 12
TWENTY = damage.Truth(tuple((10**9 + n * 10**5, 10**9 + n * 10**5 + 9_000) for n in range(20)))
_KERNEL, _API = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"


def whole(path: Path, gaps: list[int] | None = None, *, copies: bool = True) -> Path:
    """Write steps of a copy and two kernels, each in a range of its own; the GPU never waits."""
    work: list[Work] = []
    ranges: list[Range] = []
    now = 10**9
    for gap in gaps or [40_000] * STEPS:
        for kind in ("memcpy", "kernel", "kernel") if copies else ("kernel", "kernel"):
            now += gap
            api = "cudaMemcpyAsync_v3020" if kind == "memcpy" else "cudaLaunchKernel_v7000"
            ranges.append(Range(OP.replace("relu", f"op{len(work) % 3}"), (now - 9_000, now)))
            called = (now - 8_000, now - 1_000)
            work.append(Work(kind=kind, at=(now, now + 5_000), call=called, api=api))
    return nsys_db(path, work, ranges)


def damaged(folder: Path, *statements: str, copies: bool = True) -> tuple[int, tuple[str, ...]]:
    """Count the rows with an op, and return the warnings, after SQL statements."""
    path = whole(folder / "net.sqlite", copies=copies)
    damage.sql(path, *statements)
    return attributed(path)


def attributed(path: Path) -> tuple[int, tuple[str, ...]]:
    """Count the rows with an op; return the warnings, which doctor gives as well."""
    records = parse_file(path)
    op = records.dictionary("op")
    said = pitfalls.find_pitfalls(read(path))
    assert all(text in said for text in records.warnings)
    has = np.array([*(bool(value) for value in op.values), False])[op.index]
    return int(has.sum()), records.warnings


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(15_000, 10**6), min_size=3, max_size=20), st.booleans())
def test_a_sound_capture_is_left_alone(gaps: list[int], copies: bool) -> None:  # noqa: FBT001
    with tempfile.TemporaryDirectory() as folder:
        found = attributed(whole(Path(folder) / "net.sqlite", gaps, copies=copies))
    assert found == (len(gaps) * (3 if copies else 2), ())


_IDS, _RANGES = "correlationId = correlationId", "UPDATE NVTX_EVENTS SET"
_MOVED = 'start = start + {0}, "end" = "end" + {0}'
_ANOTHER_CLOCK = "ranges begin or end during API calls"  # which never span a bound of a range
_IMPOSSIBLE = f"impossible times of {3 * STEPS} ranges"
_NO_LAUNCH = f"none of {2 * STEPS} kernels has the correlation id"
_AT_0 = f"of {3 * STEPS} ranges begin at the capture's first instant"
DAMAGE = {
    # copies would have launched kernels: all links are dropped
    **{
        f"{table} has ids moved by {by}": (
            f"UPDATE {table} SET {_IDS} + {by}", 0, "correlation ids are inconsistent"
        )
        for table in (_KERNEL, _API) for by in (-1, 1)
    },
    "copies have the ids of launches": (
        f"UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET {_IDS} + 1", 0,
        f"{STEPS} copies and fills have the id of a call that launches kernels",
    ),
    "kernels have the id of one launch": (
        f"UPDATE {_KERNEL} SET correlationId = (SELECT MIN(correlationId) FROM {_KERNEL})", 0,
        f"{2 * STEPS - 1} kernels have the id of a call that launched another",
    ),
    "ranges later than all": (f"{_RANGES} {_MOVED.format(10**9)}", 0, "lie before or after all"),
    "ranges before all": (f"{_RANGES} {_MOVED.format(-(10**9))}", 0, "lie before or after all"),
    "ranges later by 36 us": (f"{_RANGES} {_MOVED.format(36_000)}", 0, _ANOTHER_CLOCK),
    "ranges later by 3 us": (f"{_RANGES} {_MOVED.format(3_000)}", 0, _ANOTHER_CLOCK),
    "ranges that launch nothing": (
        f'{_RANGES} start = "end" + 10000, "end" = "end" + 11000', 0,
        f"none of {3 * STEPS} launches is in any of the {3 * STEPS} ops",
    ),
    "ranges of other threads": (
        f"UPDATE {_API} SET globalTid = globalTid + 1", 0,
        f"all {3 * STEPS} ranges are on threads that launch nothing",
    ),
    "ranges that end first": (f'{_RANGES} start = "end", "end" = start', 0, _IMPOSSIBLE),
    "ranges without a start": (f"{_RANGES} start = NULL", 0, _IMPOSSIBLE),
    "ranges that start at a text": (f'{_RANGES} start = "x"', 0, _IMPOSSIBLE),
    # otherwise those that end last would contain all that came before
    "ranges from 0": (f"{_RANGES} start = 0", 0, f"{3 * STEPS} {_AT_0}"),
    "some ranges from 0": (
        f"{_RANGES} start = 0 WHERE rowid % 2", 3 * STEPS // 2, f"{3 * STEPS // 2} {_AT_0}"
    ),
}  # fmt: skip
AMONG_KERNELS = {
    # correlation ids hold whatever the clock says
    "a GPU clock that is behind": (
        f"UPDATE {_KERNEL} SET {_MOVED.format(-1_000_000)}", 2 * STEPS,
        f"{2 * STEPS} of {2 * STEPS} kernels and copies begin before",
    ),
    # their kernels follow others, which were launched while calls were recorded
    "lost calls": (
        f"DELETE FROM {_API} WHERE rowid % 2 = 0", STEPS,
        f"{STEPS} of {2 * STEPS} kernels have no API call",
    ),
    "no calls": (f"DELETE FROM {_API}", 0, _NO_LAUNCH),
    "no ids": (f"UPDATE {_KERNEL} SET correlationId = 'x'", 0, _NO_LAUNCH),
}  # fmt: skip


@pytest.mark.few(10)
@pytest.mark.parametrize(
    ("change", "count", "words", "copies"),
    [(*row, True) for row in DAMAGE.values()] + [(*row, False) for row in AMONG_KERNELS.values()],
    ids=[*DAMAGE, *AMONG_KERNELS],
)
def test_damage_is_warned_of_and_leaves_no_wrong_op(
    change: str, count: int, words: str, tmp_path: Path, *, copies: bool
) -> None:
    """Each is the only damage, and the only warning."""
    left, (said,) = damaged(tmp_path, change, copies=copies)
    assert left == count
    assert words in said


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(15_000, 10**7), min_size=12, max_size=30))
def test_correlation_ids_off_by_one_among_kernels(gaps: list[int]) -> None:
    """They begin before their launch; if clock skew could explain it, there is only a warning."""
    with tempfile.TemporaryDirectory() as folder:
        path = whole(Path(folder) / "net.sqlite", gaps, copies=False)
        damage.sql(path, f"UPDATE {_KERNEL} SET correlationId = correlationId + 1")
        count, said = attributed(path)
    if count:
        assert "begin before the call that launched them" in said[0]
    else:
        assert "correlation ids are inconsistent" in said[0]


def test_kernels_long_before_the_next_launch_have_the_ids_of_others(tmp_path: Path) -> None:
    """Clock skew would be the same for all of them."""
    gaps = [20_000 * (1 + place * place % 17 * 9) for place in range(30)]
    path = whole(tmp_path / "net.sqlite", gaps, copies=False)
    damage.sql(path, f"UPDATE {_KERNEL} SET correlationId = correlationId + 1")
    count, (said,) = attributed(path)
    assert count == 0
    assert "after the call with the next id" in said


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(15_000, 10**6), min_size=6, max_size=20), st.sampled_from([-1, 1]))
def test_ids_moved_among_kernels_alone(gaps: list[int], by: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = whole(Path(folder) / "net.sqlite", gaps)
        ids = [3 * step + kernel for step in range(len(gaps)) for kernel in (2, 3)]
        moved = zip(ids, [*ids[by:], *ids[:by]], strict=True)
        damage.sql(
            path,
            *(f"UPDATE {_KERNEL} SET correlationId = {-new} WHERE correlationId = {old}"
              for old, new in moved),
            f"UPDATE {_KERNEL} SET correlationId = -correlationId",
        )  # fmt: skip
        count, (said,) = attributed(path)
    assert count == 0
    assert "correlation ids are inconsistent" in said
    assert "launched earlier" in said


def test_streams_that_run_at_once_have_no_order(tmp_path: Path) -> None:
    """Only within one stream does work run in launch order."""
    change = f"UPDATE {_KERNEL} SET streamId = 9, {_MOVED.format(90_000)} WHERE rowid % 2"
    assert damaged(tmp_path, change) == (3 * STEPS, ())


def _write_waiting(path: Path, ns: int) -> Path:
    """Write steps with a pause in the middle, during which a call of that length runs."""
    whole(path, [40_000] * STEPS + [10**7] + [40_000] * STEPS)
    begins = 10**9 + 3 * STEPS * 40_000 + 1_000
    damage.sql(
        path,
        f"INSERT INTO {_API} (start, end, globalTid, correlationId, nameId) "
        f"SELECT {begins}, {begins + ns}, globalTid, 10000, nameId FROM {_API} LIMIT 1",
    )
    return path


@pytest.mark.slow
def test_ranges_that_begin_while_their_thread_waits_are_on_another_clock(tmp_path: Path) -> None:
    """If hardly any launch is inside a range, a long call shows it."""
    path = _write_waiting(tmp_path / "net.sqlite", 9 * 10**6)
    assert attributed(path) == (3 * (2 * STEPS + 1), ())
    damage.sql(path, f"{_RANGES} {_MOVED.format(3 * STEPS * 40_000 + 20_000)}")
    count, (said,) = attributed(path)
    assert count == 0
    of = 2 * 3 * (2 * STEPS + 1)
    assert f"begin or end during API calls of their own thread ({6 * STEPS} of {of}" in said


def test_two_ranges_inside_a_call_of_their_thread_are_on_another_clock(tmp_path: Path) -> None:
    """Every other range holds the launch of a later one, so the rest looks sound."""
    path = _write_waiting(tmp_path / "net.sqlite", 10**6)
    damage.sql(path, f"{_RANGES} {_MOVED.format(80_000)}")
    count, (said,) = attributed(path)
    assert count == 0
    assert f"during API calls of their own thread (4 of {6 * (2 * STEPS + 1)} begins and" in said


FILES = [path for path in FOLDER.rglob("*") if path.suffix in {".sqlite", ".sql", ".gz"}]
SHIFTED = ("nsys2022.2", "nsys2024.2", "user-ranges", "nsys2025.3", "nsys2026.2", "nvprof-v100",
           "resnet", "sam-inductor", "vit-inference")  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("path", real(path for path in FILES if path.is_file()))
def test_shifted_ranges_of_a_real_capture_are_dropped(path: Path) -> None:
    if not any(name in str(path) for name in SHIFTED) or not is_capture(path):
        pytest.skip("few ranges, or few calls that last")
    capture = read(path)
    for by_ns in (sign * ms * 10**6 for ms in (1, 7, 30, 100, 450, 2_000) for sign in (1, -1)):
        ranges = capture.ranges
        for name in ("start", "end"):
            place = ranges.column_names.index(name)
            ranges = ranges.set_column(place, name, pc.add(ranges[name], by_ns))
        records = assemble(replace(capture, ranges=ranges))
        ops = [op for op in records.arrow("op").to_pylist() if op]
        assert not ops or any("another clock" in text for text in records.warnings), by_ns


def test_a_call_with_a_wrong_end_is_not_evidence_against_ranges(tmp_path: Path) -> None:
    """Other calls begin inside it, too, so its own end must be wrong."""
    count, _ = damaged(tmp_path, f'UPDATE {_API} SET "end" = "end" + 100000000 WHERE rowid = 2')
    assert count >= 3 * STEPS - 1


def test_kernels_launched_before_the_capture_lost_no_call(tmp_path: Path) -> None:
    """That holds for the first ones of a stream."""
    change = f"DELETE FROM {_API} WHERE rowid <= {STEPS}"
    assert damaged(tmp_path, change, copies=False) == (STEPS, ())


@pytest.mark.slow
@pytest.mark.parametrize("tool", CAPTURES)
def test_ranges_without_an_end_are_dropped(tool: str, tmp_path: Path) -> None:
    """Otherwise each would contain all that follows, and every kernel would have an op."""
    path = CAPTURES[tool](tmp_path / "net", TWENTY)
    assert attributed(path) == (20, ())
    if tool == "kineto":
        trace = json.loads(path.read_text())
        for event in trace["traceEvents"]:
            if event["cat"] == "cpu_op":
                del event["dur"]
        path.write_text(json.dumps(trace))
    elif tool == "nsys":
        damage.sql(path, 'UPDATE NVTX_EVENTS SET "end" = NULL')
    elif tool == "rocpd":
        ranges = f"{damage.RANGES[tool]} SET end = NULL WHERE name_id = {damage.ROCTX}"
        damage.sql(path, f"UPDATE {ranges}")
    else:
        damage.sql(path, "DELETE FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags = 4")
    count, (said,) = attributed(path)
    assert count == 0
    assert "20 of 20 ranges have no end" in said


@pytest.mark.parametrize("span", [(1_000, None), (0, 10_000)], ids=["end", "begin"])
def test_a_few_ranges_that_a_bound_of_the_capture_cut_off_are_kept(
    span: tuple[int, int | None], tmp_path: Path
) -> None:
    start, end = span
    ranges = [
        Range(OP.replace("relu", f"op{n}"), (start + n * (end is None), end and end - n))
        for n in range(6)
    ]
    path = nsys_db(tmp_path / "net.sqlite", [Work(call=(2_000, 2_100), at=(2_200, 3_000))], ranges)
    assert attributed(path) == (1, ())


@pytest.mark.parametrize("tool", CAPTURES)
def test_duplicate_ranges_count_once(tool: str, tmp_path: Path) -> None:
    """A table that was written twice would name each op twice."""
    path = CAPTURES[tool](tmp_path / "net", TWENTY)
    before = parse_file(path)
    if tool == "kineto":
        trace = json.loads(path.read_text())
        trace["traceEvents"] += [e for e in trace["traceEvents"] if e["cat"] == "cpu_op"]
        path.write_text(json.dumps(trace))
    elif tool == "nsys":
        damage.sql(path, "INSERT INTO NVTX_EVENTS SELECT * FROM NVTX_EVENTS")
    elif tool == "rocpd":
        ranges = f"{damage.RANGES[tool]} WHERE name_id = {damage.ROCTX}"
        damage.sql(path, f"INSERT INTO {damage.RANGES[tool]} SELECT * FROM {ranges}")
    else:
        markers = "CUPTI_ACTIVITY_KIND_MARKER"
        again = "flags, timestamp, id + 1000, objectId, name"
        columns = "flags, timestamp, id, objectId, name"
        damage.sql(path, f"INSERT INTO {markers} ({columns}) SELECT {again} FROM {markers}")
    after = parse_file(path)
    assert after.table().equals(before.table())
    (said,) = after.warnings
    assert "20 duplicates among ranges" in said


def test_a_range_may_be_as_long_as_the_one_inside(tmp_path: Path) -> None:
    """A few equal pairs do not mean that the table was written twice."""
    work = [
        Work(call=(n * 100 + 20, n * 100 + 30), at=(n * 100 + 40, n * 100 + 50)) for n in range(9)
    ]
    ranges = [Range(OP, (n * 100, n * 100 + 99)) for n in (0, *range(9))]
    assert attributed(nsys_db(tmp_path / "net.sqlite", work, ranges)) == (9, ())


def test_lost_strings_are_warned_of(tmp_path: Path) -> None:
    lost = ("UPDATE StringIds SET value = ''", "UPDATE NVTX_EVENTS SET text = ''")
    _, (names, texts) = damaged(tmp_path, *lost, copies=False)
    assert f"{2 * STEPS} of {2 * STEPS} rows of GPU work have no name" in names
    assert f"{2 * STEPS} of {2 * STEPS} ranges have no text" in texts


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("path", real(path for path in FILES if path.is_file()))
def test_a_real_capture_has_no_warnings(path: Path) -> None:
    """Except for known faults of its tool and for missing ranges."""
    known = ("no NVTX ranges", "CUDA graph launches (", "CUDA graphs replayed",
             "message from nsys", "lines are those where functions begin",
             "are matched by name and order with the capture of their graphs")  # fmt: skip
    if not path.stat().st_size or not is_capture(path):
        pytest.skip("no capture")
    capture = read(path)
    if capture.activities.num_rows:
        found = parse(capture).warnings
        assert [text for text in found if not any(word in text for word in known)] == []
        rows = capture.activities
        assert not rows["start"].null_count + rows["end"].null_count


def test_ops_begin_during_others_where_the_cpu_is_the_device(tmp_path: Path) -> None:
    """There, a row's call is the op itself, and the ops that it calls begin inside it."""
    mul = call("mul", [[4]], *(call("empty", [[4]]) for _ in range(4)))
    records = parse_file(trace_file(tmp_path, events([mul] * 50, clock=lambda _: 1000)))
    assert records.arrow("op").to_pylist() == [["mul"]] * 50
    assert not any("another clock" in warning for warning in records.warnings)
