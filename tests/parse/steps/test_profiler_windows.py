"""Windows of a capture: which rows are in which, even if ids restart."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.parse import parse, parse_file
from pyprof.parse.steps.profiler_windows import serving_step_of_rows
from pyprof.records.records import Records
from tests.analysis.captures import Api, Bounds, Work, capture, records
from tests.builders import Range, nsys_db
from tests.builders import Work as Launched
from tests.readers.kineto_json import event, kernel, launch, op, trace_file
from tests.readers.kineto_json import read as read_events

STOP, START = "cudaProfilerStop_v4000", "cudaProfilerStart"
TWO_PAUSES = [
    Api(STOP, (98, 99)), Api(START, (200, 201)), Api(STOP, (298, 299)), Api(START, (400, 401)),
]  # fmt: skip


def windows(work: Iterable[Work], api: Iterable[Api], pids: int = 1) -> list[int | None]:
    found: list[int | None] = (
        records(capture([*work], [*api], pids=pids)).arrow("window").to_pylist()
    )
    return found


@pytest.mark.parametrize(
    ("at", "call", "window"),
    [
        ((10, 20), (5, 8), 0),
        ((110, 120), (90, 95), 0),  # ran in the pause
        ((210, 220), (90, 95), 0),  # ran after it
        ((210, 220), (203, 205), 1),
        ((450, 460), (410, 412), 2),
        ((50, 60), None, 0),
        ((150, 210), None, 1),  # launched in the pause, or before
        ((150, 160), None, 0),
        ((500, 501), None, 2),
    ],
)
def test_work_is_of_the_window_in_which_it_was_launched(
    at: Bounds, call: Bounds | None, window: int
) -> None:
    """Whenever it ran; without a known launch, that in which it ended."""
    assert windows([Work(at, call)], TWO_PAUSES) == [window]


@pytest.mark.parametrize(
    "api",
    [
        [],
        [(STOP, 40), ("cudaMalloc", 60), (START, 90)],
        [(START, 40), (STOP, 90)],
        [(STOP, 90)],
        [(START, 90)],
    ],
)
def test_time_with_recorded_work_is_not_a_pause(api: list[tuple[str, int]]) -> None:
    """A tool may go on recording after a stop; such captures have no windows."""
    calls = [Api(name, (at, at + 1)) for name, at in api]
    found = records(capture([Work((10, 20), (5, 8)), Work((110, 120), (100, 108))], calls))
    assert "window" not in found.columns


def test_each_process_counts_its_own_windows() -> None:
    work = [Work((at, at + 5), (at - 4, at - 2), pid=pid) for at in (10, 450) for pid in (1, 2)]
    assert windows(work, TWO_PAUSES, pids=2) == [0, 0, 2, 0]


ONCE = {
    "of AMD": [Api("roctxProfilerPause", (98, 99)), Api("roctxProfilerResume", (200, 201))],
    "a runtime call with the driver's inside, and a second stop": [
        Api(STOP, (80, 90)), Api("cuProfilerStop", (82, 88)), Api(STOP, (91, 92)),
        Api(START, (200, 210)), Api("cuProfilerStart", (202, 208)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("calls", ONCE.values(), ids=ONCE)
def test_calls_of_other_apis_pause_once(calls: list[Api]) -> None:
    assert windows([Work((10, 20), (5, 8)), Work((230, 240), (220, 222))], calls) == [0, 1]


# --- windows of torch.profiler, joined: what counts from 1 again in each ------------------------


def read(folder: Path, events: list[dict[str, Any]]) -> Records:
    return parse_file(trace_file(folder, events))


def step(begin: int, rows: int, seq: int, *, corr: int = 1) -> list[dict[str, Any]]:
    """Write a matrix product of so many rows and its backward node, a kernel each, in 100 us."""
    sizes = {"Input_Dims": [[rows, 8], [8, 2]], "Input_type": ["float", "float"]}
    return [
        op("aten::mm", begin, 10, Sequence_number=seq, Fwd_thread_id=0, **sizes),
        launch(corr, begin + 5),
        kernel(corr, begin + 20, name=f"forward_{rows}"),
        op("MmBackward0", begin + 50, 10, tid=2, Sequence_number=seq, Fwd_thread_id=1),
        launch(corr + 1, begin + 55, tid=2),
        kernel(corr + 1, begin + 70, name=f"backward_{rows}"),
    ]


def product(rows: int) -> str:
    return f"aten::mm, sizes = [[{rows}, 8], [8, 2]], dtypes = ['float32', 'float32']"


def pause(begin: int, end: int) -> list[dict[str, Any]]:
    """Write the calls that `join_trace_windows` puts between two windows."""
    return [event("cuda_runtime", STOP, begin, 0), event("cuda_runtime", START, end, 0)]


@pytest.mark.parametrize("seq", [(7, 7, 7), (7, 9, 12)], ids=["again", "on"])
@pytest.mark.parametrize("corr", [(1, 1, 1), (1, 3, 5)], ids=["again", "on"])
def test_numbers_that_begin_again_tie_nothing_across_windows(
    tmp_path: Path, corr: tuple[int, ...], seq: tuple[int, ...]
) -> None:
    begins, rows = (0, 1000, 2000), (3, 4, 5)
    events = [*pause(500, 900), *pause(1500, 1900)]
    for begin, count, first, number in zip(begins, rows, corr, seq, strict=True):
        events += step(begin, count, number, corr=first)
    table = read(tmp_path, events).table().to_pylist()
    assert [row["window"] for row in table] == [0, 0, 1, 1, 2, 2]
    assert [row["launch"][0] for row in table] == [
        1000 * (begin + at) for begin in begins for at in (5, 55)
    ]
    assert [row["kShortName"] for row in table] == [
        f"{way}_{count}" for count in rows for way in ("forward", "backward")
    ]
    assert [row["fwdSeqMarker"] for row in table[1::2]] == [[product(count)] for count in rows]


def test_backward_in_a_window_of_its_own(tmp_path: Path) -> None:
    """PyTorch's numbers go on: a script may capture the two passes separately."""
    forward, backward = step(0, 3, 7)[:3], step(1000, 3, 7, corr=3)[3:]
    _, row = read(tmp_path, [*forward, *pause(500, 900), *backward]).table().to_pylist()
    assert (row["window"], row["fwdSeqMarker"]) == (1, [product(3)])


def test_the_number_of_an_op_that_ran_in_the_pause(tmp_path: Path) -> None:
    """An op without a node has the next one's number, but that node is not its own."""
    shown = op("aten::argmax", 200, 10, Sequence_number=8, Fwd_thread_id=0)
    backward = step(1000, 3, 8, corr=3)[3:]
    events = [*step(0, 3, 7), shown, *pause(500, 900), *backward]
    row = read(tmp_path, events).table().to_pylist()[-1]
    assert (row["window"], row.get("fwdSeqMarker")) == (1, None)


def test_work_that_ran_on_keeps_its_launch(tmp_path: Path) -> None:
    """Ids that are unique are looked up in all windows."""
    events = [launch(1, 5), kernel(1, 950, 10), *pause(500, 900), launch(2, 960), kernel(2, 970)]
    table = read(tmp_path, events).table().to_pylist()
    assert [(row["launch"][0], row["window"]) for row in table] == [(5000, 0), (960_000, 1)]


SKIPPED: dict[str, tuple[list[tuple[int, int, int]], list[int | None]]] = {
    # number, thread and begin of each step; the window of each launch
    "the schedule's": ([(2, 1, 100), (3, 1, 200), (8, 1, 300), (9, 1, 400)], [0, 0, 1, 1]),
    "none": ([(2, 1, 100), (3, 1, 200), (4, 1, 300)], [None] * 3),
    "none: the loop begins again": ([(2, 1, 100), (3, 1, 200), (2, 1, 300)], [None] * 3),
    "every fifth step is named": ([(1, 1, 100), (6, 1, 600)], [None] * 8),
    "threads in turn": ([(1, 1, 100), (51, 2, 180), (2, 1, 260), (52, 2, 340)], [None] * 8),
}


@pytest.mark.parametrize(("steps", "found"), SKIPPED.values(), ids=SKIPPED)
def test_steps_that_were_not_recorded_are_a_pause(
    tmp_path: Path, steps: list[tuple[int, int, int]], found: list[int | None]
) -> None:
    """As in a merged file of the traces of a schedule that repeats."""
    events = []
    for number, thread, begin in steps:
        step = event("user_annotation", f"ProfilerStep#{number}", begin, 90)
        events.append({**step, "tid": thread})
    for corr in range(1, 1 + len(found)):
        events += [launch(corr, 100 * corr + 5), kernel(corr, 100 * corr + 20)]
    table = read(tmp_path, events).table().to_pylist()
    assert [row.get("window") for row in table] == found


STEP = "execute_{0}_context_0(sq0sk0sqsq0sqsk0)_generation_{0}(sq{0}sk9sqsq{0}sqsk9)"


def _steps(folder: Path, ranges: list[tuple[int, int]], launches: list[int]) -> list[str | None]:
    """Parse a trace of steps (start, duration), numbered from 1, and launches at some times."""
    events = [
        event("user_annotation", STEP.format(number), start, dur)
        for number, (start, dur) in enumerate(ranges, 1)
    ]
    for corr, ts in enumerate(launches, 1):
        events += [launch(corr, ts), kernel(corr, 10_000 + 10 * corr)]
    found: list[str | None] = parse(read_events(folder, events)).arrow("servingStep").to_pylist()
    return found


@pytest.mark.slow
@given(
    lengths=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5),
    launches=st.lists(st.integers(0, 99), min_size=1, max_size=6, unique=True).map(sorted),
)
def test_steps_after_pauses_equal_brute_force(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[tuple[int, int]], launches: list[int]
) -> None:
    ranges, at = [], 0
    for pause, dur in lengths:
        ranges.append((at + pause, dur))
        at += pause + dur
    folder = tmp_path_factory.mktemp("steps")
    expected = [
        next((STEP.format(n) for n, (ts, dur) in reversed([*enumerate(ranges, 1)])
              if ts <= when <= ts + dur), None)
        for when in launches
    ]  # fmt: skip
    assert _steps(folder, ranges, launches) == expected


def test_steps_are_of_their_own_process(tmp_path: Path) -> None:
    step = Range(STEP.format(1), (0, 100), pid=1)
    work = [
        Launched("mine", (1000, 1010), (10, 20), pid=1),
        Launched("other", (1100, 1110), (30, 40), pid=2),
    ]
    records = parse_file(nsys_db(tmp_path / "net.sqlite", work, [step]))
    assert records.arrow("servingStep").to_pylist() == [STEP.format(1), None]


def test_steps_without_work_have_no_rows(tmp_path: Path) -> None:
    """A killed job's trace may end before the first kernel."""
    step = event("user_annotation", STEP.format(1), 0, 10)
    capture = read_events(tmp_path, [step])
    assert serving_step_of_rows(capture, capture.activities, np.zeros(0, np.int64)) is None
