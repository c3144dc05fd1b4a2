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
from tests.readers.kineto_json import text

STEPS = 12
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
    """Every row has its op, and nothing is warned of."""
    with tempfile.TemporaryDirectory() as folder:
        found = attributed(whole(Path(folder) / "net.sqlite", gaps, copies=copies))
    assert found == (len(gaps) * (3 if copies else 2), ())


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("table", [_KERNEL, _API])
def test_correlation_ids_off_by_one_beside_copies(table: str, by: int, tmp_path: Path) -> None:
    """Copies would have launched kernels: all links are dropped."""
    path = whole(tmp_path / "net.sqlite")
    damage.sql(path, f"UPDATE {table} SET correlationId = correlationId + {by}")  # noqa: S608
    count, (said,) = attributed(path)
    assert count == 0
    assert "correlation ids are inconsistent" in said


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(15_000, 10**7), min_size=12, max_size=30))
def test_correlation_ids_off_by_one_among_kernels(gaps: list[int]) -> None:
    """They begin before their launch; if clock skew could explain it, there is only a warning."""
    with tempfile.TemporaryDirectory() as folder:
        path = whole(Path(folder) / "net.sqlite", gaps, copies=False)
        damage.sql(path, f"UPDATE {_KERNEL} SET correlationId = correlationId + 1")  # noqa: S608
        count, said = attributed(path)
    if count:
        assert "begin before the call that launched them" in said[0]
    else:
        assert "correlation ids are inconsistent" in said[0]


def test_kernels_long_before_the_next_launch_have_the_ids_of_others(tmp_path: Path) -> None:
    """Clock skew would be the same for all of them."""
    gaps = [20_000 * (1 + place * place % 17 * 9) for place in range(30)]
    path = whole(tmp_path / "net.sqlite", gaps, copies=False)
    damage.sql(path, f"UPDATE {_KERNEL} SET correlationId = correlationId + 1")  # noqa: S608
    count, (said,) = attributed(path)
    assert count == 0
    assert "after the call with the next id" in said


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(15_000, 10**6), min_size=6, max_size=20), st.sampled_from([-1, 1]))
def test_ids_moved_among_kernels_alone(gaps: list[int], by: int) -> None:
    """Each kernel has the id of its neighbour, and so overtakes the copies between them."""
    with tempfile.TemporaryDirectory() as folder:
        path = whole(Path(folder) / "net.sqlite", gaps)
        ids = [3 * step + kernel for step in range(len(gaps)) for kernel in (2, 3)]
        moved = zip(ids, [*ids[by:], *ids[:by]], strict=True)
        damage.sql(
            path,
            *(f"UPDATE {_KERNEL} SET correlationId = {-new} WHERE correlationId = {old}"  # noqa: S608
              for old, new in moved),
            f"UPDATE {_KERNEL} SET correlationId = -correlationId",  # noqa: S608
        )  # fmt: skip
        count, (said,) = attributed(path)
    assert count == 0
    assert "correlation ids are inconsistent" in said
    assert "launched earlier" in said


def test_copies_with_the_ids_of_launches(tmp_path: Path) -> None:
    """A call that launches a kernel copies nothing."""
    path = whole(tmp_path / "net.sqlite")
    copies = "CUPTI_ACTIVITY_KIND_MEMCPY"
    damage.sql(path, f"UPDATE {copies} SET correlationId = correlationId + 1")  # noqa: S608
    count, (said,) = attributed(path)
    assert count == 0
    assert f"{STEPS} copies and fills have the id of a call that launches kernels" in said


def test_streams_that_run_at_once_have_no_order(tmp_path: Path) -> None:
    """Only within one stream does work run in launch order."""
    path = whole(tmp_path / "net.sqlite")
    later = 'start = start + 90000, "end" = "end" + 90000'
    damage.sql(path, f"UPDATE {_KERNEL} SET streamId = 9, {later} WHERE rowid % 2")  # noqa: S608
    assert attributed(path) == (3 * STEPS, ())


def test_a_gpu_clock_that_is_behind_is_warned_of_and_ops_are_kept(tmp_path: Path) -> None:
    """Correlation ids hold whatever the clock says."""
    path = whole(tmp_path / "net.sqlite", copies=False)
    damage.sql(path, f'UPDATE {_KERNEL} SET start = start - 1000000, "end" = "end" - 1000000')  # noqa: S608
    count, (said,) = attributed(path)
    assert count == 2 * STEPS
    assert f"{2 * STEPS} of {2 * STEPS} kernels and copies begin before" in said


@pytest.mark.parametrize(
    ("by_ns", "words"),
    [
        (10**9, "lie before or after all"),
        (-(10**9), "lie before or after all"),
        (36_000, "ranges begin or end during API calls"),
        (3_000, "ranges begin or end during API calls"),
    ],
)
def test_ranges_on_another_clock_are_dropped(by_ns: int, words: str, tmp_path: Path) -> None:
    """A call never spans the begin or the end of a range on its own thread."""
    path = whole(tmp_path / "net.sqlite")
    damage.sql(path, f'UPDATE NVTX_EVENTS SET start = start + {by_ns}, "end" = "end" + {by_ns}')  # noqa: S608
    count, (said,) = attributed(path)
    assert count == 0
    assert words in said


@pytest.mark.slow
def test_ranges_that_begin_while_their_thread_waits_are_on_another_clock(tmp_path: Path) -> None:
    """If hardly any launch is inside a range, a long call shows it."""
    path = whole(tmp_path / "net.sqlite", [40_000] * STEPS + [10**7] + [40_000] * STEPS)
    waits_from = 10**9 + 3 * STEPS * 40_000 + 1_000
    damage.sql(
        path,
        f"INSERT INTO {_API} (start, end, globalTid, correlationId, nameId) "  # noqa: S608
        f"SELECT {waits_from}, {waits_from + 9 * 10**6}, globalTid, 10000, nameId "
        f"FROM {_API} LIMIT 1",
    )
    assert attributed(path) == (3 * (2 * STEPS + 1), ())
    by_ns = 3 * STEPS * 40_000 + 20_000
    damage.sql(path, f'UPDATE NVTX_EVENTS SET start = start + {by_ns}, "end" = "end" + {by_ns}')  # noqa: S608
    count, (said,) = attributed(path)
    assert count == 0
    of = 2 * 3 * (2 * STEPS + 1)
    assert f"begin or end during API calls of their own thread ({6 * STEPS} of {of}" in said


def test_two_ranges_inside_a_call_of_their_thread_are_on_another_clock(tmp_path: Path) -> None:
    """Every other range holds the launch of a later one, so the rest looks sound."""
    path = whole(tmp_path / "net.sqlite", [40_000] * STEPS + [10**7] + [40_000] * STEPS)
    waits_from = 10**9 + 3 * STEPS * 40_000 + 1_000
    damage.sql(
        path,
        f"INSERT INTO {_API} (start, end, globalTid, correlationId, nameId) "  # noqa: S608
        f"SELECT {waits_from}, {waits_from + 10**6}, globalTid, 10000, nameId FROM {_API} LIMIT 1",
    )
    damage.sql(path, 'UPDATE NVTX_EVENTS SET start = start + 80000, "end" = "end" + 80000')
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
    """By 1 ms to 2 s, in either direction; in a long capture nearly every shift is noticed."""
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


def test_ranges_that_launch_nothing_are_warned_of(tmp_path: Path) -> None:
    """If no op launches anything, the kernels are of others."""
    path = whole(tmp_path / "net.sqlite")
    damage.sql(path, 'UPDATE NVTX_EVENTS SET start = "end" + 10000, "end" = "end" + 11000')
    count, (said,) = attributed(path)
    assert count == 0
    assert f"none of {3 * STEPS} launches is in any of the {3 * STEPS} ops" in said


def test_a_call_with_a_wrong_end_is_no_evidence_against_ranges(tmp_path: Path) -> None:
    """Other calls begin inside it, too, so its own end must be wrong."""
    path = whole(tmp_path / "net.sqlite")
    damage.sql(path, f'UPDATE {_API} SET "end" = "end" + 100000000 WHERE rowid = 2')  # noqa: S608
    count, _ = attributed(path)
    assert count >= 3 * STEPS - 1


def test_calls_that_were_lost_are_counted(tmp_path: Path) -> None:
    """Kernels that follow others on their stream were launched while calls were recorded."""
    path = whole(tmp_path / "net.sqlite", copies=False)
    damage.sql(path, f"DELETE FROM {_API} WHERE rowid % 2 = 0")  # noqa: S608
    count, (said,) = attributed(path)
    assert count == STEPS
    assert f"{STEPS} of {2 * STEPS} kernels have no API call" in said


def test_kernels_launched_before_the_capture_lost_no_call(tmp_path: Path) -> None:
    """That holds for the first ones of a stream."""
    path = whole(tmp_path / "net.sqlite", copies=False)
    damage.sql(path, f"DELETE FROM {_API} WHERE rowid <= {STEPS}")  # noqa: S608
    assert attributed(path) == (STEPS, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [f"DELETE FROM {_API}", f"UPDATE {_KERNEL} SET correlationId = 'x'"],  # noqa: S608
)
def test_kernels_without_any_launch_call_are_warned_of(change: str, tmp_path: Path) -> None:
    path = whole(tmp_path / "net.sqlite", copies=False)
    damage.sql(path, change)
    count, (said,) = attributed(path)
    assert count == 0
    assert f"none of {2 * STEPS} kernels has the correlation id" in said


@pytest.mark.slow
@pytest.mark.parametrize("tool", CAPTURES)
def test_ranges_without_an_end_are_dropped(tool: str, tmp_path: Path) -> None:
    """Otherwise each would contain all that follows, and every kernel would have an op."""
    truth = damage.Truth(tuple((10**9 + n * 10**5, 10**9 + n * 10**5 + 9_000) for n in range(20)))
    path = CAPTURES[tool](tmp_path / "net", truth)
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


def test_ranges_that_the_end_of_a_capture_cut_off_are_kept(tmp_path: Path) -> None:
    """A few nested ones are open when it ends."""
    ranges = [Range(OP.replace("relu", f"op{n}"), (1_000 + n, None)) for n in range(6)]
    path = nsys_db(tmp_path / "net.sqlite", [Work(call=(2_000, 2_100), at=(2_200, 3_000))], ranges)
    assert attributed(path) == (1, ())


@pytest.mark.parametrize("change", ['start = "end", "end" = start', "start = NULL", 'start = "x"'])
def test_ranges_with_impossible_times_are_dropped(change: str, tmp_path: Path) -> None:
    path = whole(tmp_path / "net.sqlite")
    damage.sql(path, f"UPDATE NVTX_EVENTS SET {change}")  # noqa: S608
    count, (said,) = attributed(path)
    assert count == 0
    assert f"{3 * STEPS} ranges have impossible times" in said


@pytest.mark.parametrize("where", ["", "WHERE rowid % 2"])
def test_ranges_that_begin_at_0_are_dropped(where: str, tmp_path: Path) -> None:
    """Otherwise those that end last would contain all that came before."""
    path = whole(tmp_path / "net.sqlite")
    damage.sql(path, f"UPDATE NVTX_EVENTS SET start = 0 {where}")  # noqa: S608
    count, (said,) = attributed(path)
    damaged = 3 * STEPS // (2 if where else 1)
    assert count == 3 * STEPS - damaged
    assert f"{damaged} of {3 * STEPS} ranges begin at the capture's first instant" in said


def test_ranges_open_at_the_begin_of_a_capture_are_kept(tmp_path: Path) -> None:
    """A few nested ones may begin with it."""
    ranges = [Range(OP.replace("relu", f"op{n}"), (0, 10_000 - n)) for n in range(6)]
    path = nsys_db(tmp_path / "net.sqlite", [Work(call=(2_000, 2_100), at=(2_200, 3_000))], ranges)
    assert attributed(path) == (1, ())


def test_ranges_on_threads_that_launch_nothing_are_warned_of(tmp_path: Path) -> None:
    """The thread ids of calls may be wrong."""
    path = whole(tmp_path / "net.sqlite")
    damage.sql(path, f"UPDATE {_API} SET globalTid = globalTid + 1")  # noqa: S608
    count, (said,) = attributed(path)
    assert count == 0
    assert f"all {3 * STEPS} ranges are on threads that launch nothing" in said


@pytest.mark.parametrize("tool", CAPTURES)
def test_duplicate_ranges_count_once(tool: str, tmp_path: Path) -> None:
    """A table that was written twice would name each op twice."""
    truth = damage.Truth(tuple((10**9 + n * 10**5, 10**9 + n * 10**5 + 9_000) for n in range(20)))
    path = CAPTURES[tool](tmp_path / "net", truth)
    before = parse_file(path)
    if tool == "kineto":
        trace = json.loads(path.read_text())
        trace["traceEvents"] += [e for e in trace["traceEvents"] if e["cat"] == "cpu_op"]
        path.write_text(json.dumps(trace))
    elif tool == "nsys":
        damage.sql(path, "INSERT INTO NVTX_EVENTS SELECT * FROM NVTX_EVENTS")
    elif tool == "rocpd":
        ranges = f"{damage.RANGES[tool]} WHERE name_id = {damage.ROCTX}"
        damage.sql(path, f"INSERT INTO {damage.RANGES[tool]} SELECT * FROM {ranges}")  # noqa: S608
    else:
        markers = "CUPTI_ACTIVITY_KIND_MARKER"
        again = "flags, timestamp, id + 1000, objectId, name"
        columns = "flags, timestamp, id, objectId, name"
        damage.sql(path, f"INSERT INTO {markers} ({columns}) SELECT {again} FROM {markers}")  # noqa: S608
    after = parse_file(path)
    assert after.table().equals(before.table())
    (said,) = after.warnings
    assert "20 ranges are duplicates" in said


def test_a_range_may_be_as_long_as_the_one_inside(tmp_path: Path) -> None:
    """A few equal pairs do not mean that the table was written twice."""
    work = [
        Work(call=(n * 100 + 20, n * 100 + 30), at=(n * 100 + 40, n * 100 + 50)) for n in range(9)
    ]
    ranges = [Range(OP, (n * 100, n * 100 + 99)) for n in (0, *range(9))]
    assert attributed(nsys_db(tmp_path / "net.sqlite", work, ranges)) == (9, ())


def test_lost_strings_are_warned_of(tmp_path: Path) -> None:
    """Kernels without a name, ranges without a text."""
    path = whole(tmp_path / "net.sqlite", copies=False)
    damage.sql(path, "UPDATE StringIds SET value = ''", "UPDATE NVTX_EVENTS SET text = ''")
    _, (names, texts) = attributed(path)
    assert f"{2 * STEPS} of {2 * STEPS} rows of GPU work have no name" in names
    assert f"{2 * STEPS} of {2 * STEPS} ranges have no text" in texts


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("path", real(path for path in FILES if path.is_file()))
def test_a_real_capture_has_no_warnings(path: Path) -> None:
    """Except for known faults of its tool and for missing ranges."""
    known = ("no NVTX ranges", "CUDA graph launches contain", "CUDA graphs replayed",
             "message from nsys",
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
    path = tmp_path / "trace.json"
    path.write_text(text(events([mul] * 50, clock=lambda _: 1000)))
    records = parse_file(path)
    assert records.arrow("op").to_pylist() == [["mul"]] * 50
    assert not any("another clock" in warning for warning in records.warnings)
