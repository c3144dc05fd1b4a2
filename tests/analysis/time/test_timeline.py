"""Busy, idle and overlapping time, compared with counting nanoseconds."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import schema
from pyprof.analysis.advice import RuleContext, advise
from pyprof.analysis.ranks.rank_tables import measure_ranks
from pyprof.analysis.time.timeline import (
    COMMUNICATION,
    COMPUTE,
    COPY,
    DeviceTime,
    Timeline,
    streams,
    timeline,
)
from pyprof.inputs import source
from pyprof.inputs.executor import InProcess
from pyprof.inputs.ranks import RankedCapture
from pyprof.inputs.source import items
from pyprof.marker import encode_layer
from pyprof.parse import parse
from pyprof.prof.columns.explained_columns import idle_before
from pyprof.prof.table import Table
from pyprof.readers import read
from pyprof.records.records import Records
from pyprof.schema import CPU
from tests.analysis.answered import answered
from tests.analysis.captures import ADD, GEMM, NCCL, Api, Work, capture, copy, moved, records
from tests.builders import Range, nsys_db
from tests.builders import Work as Launched
from tests.commands import run
from tests.known import known

_LAST = 60
_WORK = st.lists(
    st.builds(
        lambda start, length, name, stream, lead: (
            copy((start, start + length), (max(start - lead, 0), max(start - lead, 0) + 3))
            if name == "copy"
            else Work((start, start + length), (max(start - lead, 0), max(start - lead, 0) + 3),
                      name, stream=stream)
        ),
        st.integers(0, _LAST), st.integers(1, 12), st.sampled_from([GEMM, ADD, NCCL, "copy"]),
        st.integers(1, 3), st.integers(0, 9),
    ),
    min_size=1,
    max_size=10,
)  # fmt: skip
_KEY = st.tuples(*[st.none() | st.integers(0, 300)] * 3)


@given(st.lists(_KEY, max_size=20))
def test_streams_come_in_order_each_with_its_rows(
    keys: list[tuple[int | None, int | None, int | None]],
) -> None:
    """By process, device and number, unknown ones first; checked against sorting."""
    columns = zip(*keys, strict=True) if keys else ((), (), ())
    names = ("pid", "device", "stream")
    held = {name: pa.array(values, pa.int64()) for name, values in zip(names, columns, strict=True)}
    found = streams(Records(len(keys), held))
    expected = sorted(set(keys), key=lambda key: [-1 if part is None else part for part in key])
    assert [(each.pid, each.device, each.stream) for each in found] == expected
    for each, key in zip(found, expected, strict=True):
        assert each.rows.tolist() == [row for row, other in enumerate(keys) if other == key]


def _timeline(work: list[Work], api: Sequence[Api] = (), pids: int = 1) -> Timeline:
    return known(timeline(records(capture(work, api, pids=pids))))


def _only(work: list[Work], api: Sequence[Api] = ()) -> DeviceTime:
    (device,) = _timeline(work, api).devices
    return device


def _instants(work: list[Work], sort: int) -> set[int]:
    chosen = {COPY: "[CUDA", COMMUNICATION: "nccl"}.get(sort)
    rest = ("[CUDA", "nccl")
    return {
        instant
        for w in work
        if (w.name.startswith(chosen) if chosen else not w.name.startswith(rest))
        for instant in range(*w.at)
    }


@given(_WORK)
def test_lengths_agree_with_counted_nanoseconds(work: list[Work]) -> None:
    """Each kind of work, exposed and overlapped time; busy and idle time are the span."""
    device = _only(work)
    compute, comm, moved = (_instants(work, sort) for sort in (COMPUTE, COMMUNICATION, COPY))
    assert device.busy_ns == len(compute | comm | moved)
    assert device.compute.total == len(compute)
    assert device.exposed_communication.total == len(comm - compute)
    assert device.exposed_copy.total == len(moved - comm - compute)
    twice = (compute & comm) | (compute & moved) | (comm & moved)
    assert device.overlap_ns == len(twice)
    assert device.busy_ns + device.idle_ns == device.span_ns
    assert sum(cause.total for cause in device.idle.values()) == device.idle_ns


@pytest.mark.slow
@given(st.lists(_WORK, min_size=2, max_size=3))
def test_the_pause_between_two_windows_is_not_idle_time(parts: list[list[Work]]) -> None:
    """A window lasts from its first instant of work to its last."""
    windows = [[moved(w, 1000 * place) for w in part] for place, part in enumerate(parts)]
    stops = [Api("cudaProfilerStop", (at + 78, at + 80)) for at in range(0, 2000, 1000)]
    again = [Api("cudaProfilerStart_v4000", (at - 10, at - 8)) for at in range(1000, 3000, 1000)]
    both = capture([work for part in windows for work in part], [*stops, *again])
    found = records(both)
    busy = [{instant for work in part for instant in range(*work.at)} for part in windows]
    span = sum(max(part) + 1 - min(part) for part in busy)
    for host in (both, None):
        when = known(timeline(found, host))
        (device,) = when.devices
        assert (device.busy_ns, device.span_ns) == (sum(map(len, busy)), span)
        assert device.end_ns - device.start_ns == device.span_ns + device.paused.total
        assert device.busy_ns + device.idle_ns == device.span_ns
        assert sum(cause.total for cause in device.idle.values()) == device.idle_ns
        assert (device.windows, len(device.paused)) == (len(parts), len(parts) - 1)
    gaps = idle_before(found)
    assert (sum(gaps.drop_null().to_pylist()), gaps.null_count) == (device.idle_ns, len(parts))


def test_work_that_ran_on_leaves_no_pause() -> None:
    """Launched before the stop at 50, it ends after the start at 100."""
    work = [Work((10, 110), (5, 8)), Work((130, 140), (105, 108))]
    api = [Api("cudaProfilerStop", (40, 50)), Api("cudaProfilerStart", (100, 101))]
    device = _only(work, api)
    assert (device.windows, device.span_ns, device.idle_ns) == (2, 110, 0)


def test_each_device_of_each_process_has_its_own_time() -> None:
    """Even if both ranks call their GPU 0."""
    found = _timeline([Work((0, 10)), Work((5, 30), pid=2), Work((90, 95), pid=2)], pids=2)
    times = [(d.pid, d.device, d.span_ns, d.busy_ns) for d in found.devices]
    assert times == [(1, 0, 10, 10), (2, 0, 90, 30)]


def test_the_span_of_chosen_rows_begins_where_earlier_work_ended() -> None:
    """Waiting for a step's first row belongs to that step."""
    rows = np.array([False, True, True])
    net = records(capture([Work((0, 10)), Work((50, 60)), Work((70, 80))]))
    (device,) = known(timeline(net, rows=rows)).devices
    assert (device.start_ns, device.span_ns, device.busy_ns) == (10, 70, 20)


def test_other_work_between_chosen_rows_is_not_idle_time() -> None:
    """An evaluation between two chosen steps, and a copy beside the second."""
    work = [
        Work((0, 10)),
        Work((12, 60), name="evaluation"),
        Work((65, 70), name="[CUDA memcpy HtoD]", kind=schema.MEMCPY, stream=8),
        Work((66, 80)),
        Work((90, 99), name="afterwards"),
    ]
    rows = np.array([True, False, False, True, False])
    (device,) = known(timeline(records(capture(work)), rows=rows)).devices
    assert (device.span_ns, device.busy_ns, device.idle_ns) == (80, 73, 7)
    assert (device.compute.total, device.copy.total, device.overlap_ns) == (72, 5, 4)
    assert device.gaps.row.tolist() == [1, 2]


def test_blocking_launches_are_recognised() -> None:
    blocked = [Work((10 * n + 2, 10 * n + 6), (10 * n, 10 * n + 8)) for n in range(20)]
    free = [Work((10 * n + 2, 10 * n + 6), (10 * n, 10 * n + 3)) for n in range(20)]
    for work, expected in ((blocked, True), (free, False)):
        assert _timeline(work).blocking is expected


def test_records_without_times_have_no_timeline() -> None:
    """The original's files only have durations."""
    whole = records(capture([Work((0, 10))]))
    columns = {name: column for name, column in whole.columns.items() if name != "start"}
    assert timeline(Records(whole.rows, columns)) is None


def test_a_real_trace_agrees_with_another_tool(captures: Path) -> None:
    """TraceLens's figures for a torch.profiler trace, to 2 ns: busy, idle, copies."""
    folder = captures / "kineto-h100-vit-inference"
    net = read(folder / "trace.json.gz")
    found = known(timeline(parse(net), net))
    (device,) = found.devices
    text = (folder / "tracelens_gpu_timeline.csv").read_text()
    theirs = {line.split(",")[0]: float(line.split(",")[1]) for line in text.splitlines()[1:]}
    ours = {
        "computation_time": device.compute.total,
        "exposed_comm_time": device.exposed_communication.total,
        "exposed_memcpy_time": device.exposed_copy.total,
        "busy_time": device.busy_ns,
        "idle_time": device.idle_ns,
        "total_time": device.span_ns,
        "total_comm_time": device.communication.total,
        "total_memcpy_time": device.copy.total,
    }
    assert {key: ns / 1e6 for key, ns in ours.items()} == pytest.approx(theirs, abs=2e-6)


def test_ops_timed_on_the_cpu_are_not_a_gpu() -> None:
    """A capture without a GPU has busy time, no blocking launches, and advice for a CPU only."""
    work = [Work((n * 100, n * 100 + 50), (n * 100, n * 100 + 50), "aten::mm", CPU, grid=None)
            for n in range(9)]  # fmt: skip
    net = capture(work)
    whole = Table(parse(net))
    found = known(timeline(whole.records, net))
    assert (found.devices[0].on_cpu, found.devices[0].busy_ns, found.blocking) == (True, 450, False)
    assert [entry.rule for entry in advise(RuleContext(whole, found, net))] == ["short_ops"]


def test_a_limited_number_of_gpus_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with most rows; how many are skipped is recorded."""
    work = [Work((10 * n, 10 * n + 5), device=max(n - 3, 0)) for n in range(8)]
    found = _timeline(work)
    assert (len(found.devices), found.left_out) == (5, 0)
    monkeypatch.setattr("pyprof.analysis.time.timeline._MAX_GPUS", 2)
    found = _timeline(work)
    assert ([each.device for each in found.devices], found.left_out) == ([0, 1], 3)


def test_a_gpu_that_hardly_worked_is_left_out() -> None:
    """As if a process filled a few bytes on the GPU of another: it has no idle time to explain."""
    found = _timeline([Work((0, 1000)), Work((5, 14), device=1), Work((2000, 3000))])
    assert ([each.device for each in found.devices], found.left_out) == ([0], 1)


US = 1000
BEGINS = (0, 50_000 * US, 90_000 * US)
"""When each window begins; it holds two steps of 100 us."""
KERNELS = ((5, 20, 7), (30, 30, 7), (35, 45, 8), (84, 6, 7))
"""Of each step: when it starts, how long it lasts, on which stream, in us. The last is the
optimizer's. Launched 4 us before."""


def _work() -> Iterator[Launched]:
    for place, begin in enumerate(BEGINS):
        if place:
            yield Launched(
                kind="none", api="cudaProfilerStart_v4000", call=(begin - 500, begin - 400)
            )
        for step in (begin, begin + 100 * US):
            for start, length, stream in KERNELS:
                at = step + start * US
                yield Launched(
                    "gemm", (at, at + length * US), (at - 4 * US, at - 2 * US), stream=stream
                )
        stop = begin + 210 * US
        yield Launched(kind="none", api="cudaProfilerStop_v4000", call=(stop, stop + 10))


def _ranges() -> Iterator[Range]:
    last = KERNELS[-1][0]
    for step in (begin + offset for begin in BEGINS for offset in (0, 100 * US)):
        optimizer = (step + (last - 6) * US, step + last * US)
        yield Range("Optimizer.step#SGD.step", optimizer)
        yield Range(encode_layer("net"), (step, optimizer[0]))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("windows")
    net = nsys_db(folder / "net.rank0.sqlite", _work(), _ranges())
    found = {"capture": net}
    for form, name in (("dict", "net.dict"), ("parquet", "net.parquet"), ("dataset", "net/")):
        found[form] = folder / name
        assert run("parse", "-q", net, "-o", f"{folder}/{name}").code == 0
    return found


FORMS = pytest.mark.parametrize("form", ["capture", "dict", "parquet", "dataset"])


def load(files: dict[str, Path], form: str) -> source.Source:
    (item,) = items([str(files[form])], InProcess())
    return source.load(item)


@FORMS
def test_time_is_that_of_the_windows(files: dict[str, Path], form: str) -> None:
    """Busy, idle and span by counting microseconds, with steps that begin with a window."""
    found = answered(load(files, form))
    (device,) = known(found.devices)
    step = {at for start, length, _ in KERNELS for at in range(start, start + length)}
    window = step | {at + 100 for at in step}
    span = max(window) + 1 - min(window)
    assert (device.windows, device.busy_ns, device.span_ns) == (
        3, 3 * len(window) * US, 3 * span * US,
    )  # fmt: skip
    assert device.busy_ns + device.idle_ns == device.span_ns
    assert sum(device.idle_by_cause_ns.values()) == device.idle_ns
    assert device.paused_ns + device.span_ns == BEGINS[-1] + span * US
    first = (max(step) + 1 - min(step)) * US
    assert [*found.steps.duration_ns] == [first, 100 * US] * 3


@pytest.mark.few(2)
@FORMS
def test_chosen_steps_leave_out_pauses(files: dict[str, Path], form: str) -> None:
    found = answered(load(files, form), "1:4")
    (device,) = known(found.devices)
    assert (device.windows, device.span_ns) == (2, (100 + 185) * US)


@FORMS
def test_ranks_of_parsed_files_are_those_of_the_capture(files: dict[str, Path], form: str) -> None:
    path = files[form]
    if form == "dataset":
        (path,) = path.rglob("*.parquet")
    (rank,) = measure_ranks(RankedCapture(str(path), ((None, 0),))).ranks
    (gpu,) = rank.gpus
    assert (gpu.span_ns, gpu.busy_ns, gpu.idle_ns) == (555 * US, 456 * US, 99 * US)
    assert (gpu.steps, gpu.step_ns) == (6, (85 + 100) * US / 2)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dict", "parquet"])
def test_all_forms_show_the_same_rows(files: dict[str, Path], form: str) -> None:
    columns = ("prof", "--csv", "-c", "idx,window,gap,queue,start,sil,layer,dir")
    assert run(*columns, files[form]).stdout == run(*columns, files["capture"]).stdout
    by_window = run("prof", "--by", "window", "--csv", files[form]).stdout
    _, *rows = csv.reader(by_window.splitlines())
    assert [row[:3] for row in rows] == [[str(place), "8", str(202 * US)] for place in range(3)]


@FORMS
def test_speedscope_has_a_profile_for_each_window(
    files: dict[str, Path], form: str, tmp_path: Path
) -> None:
    """Of each stream; all streams of a window begin together."""
    run("export", files[form], "-o", tmp_path / "net.speedscope.json")
    profiles = json.loads((tmp_path / "net.speedscope.json").read_text())["profiles"]
    assert [(profile["name"], profile["endValue"]) for profile in profiles[1:]] == [
        (f"GPU 0, stream {stream}, window {place}", length * US)
        for stream, length in ((7, 185), (8, 175))
        for place in range(3)
    ]
