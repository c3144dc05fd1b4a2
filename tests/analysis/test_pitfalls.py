"""Pitfalls of captures: a small capture with each, and one without."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pyprof import schema
from pyprof.analysis import pitfalls
from pyprof.capture.under_profiler import database
from tests.texts import apart

Row = dict[str, Any]
OP = "aten::mm, seq = 4, op_id = 1, sizes = [[2, 2], [2, 2]]"


def kernels(count: int, *, late: int = 100, length: int = 50, apart: int = 1000) -> list[Row]:
    """Return kernels that start `late` ns after their launch does."""
    return [
        {"kind": 0, "start": n * apart + late, "end": n * apart + late + length, "corr": n}
        | {"pid": 7, "device": 0, "stream": 7, "name": "gemm"}
        for n in range(1, count + 1)
    ]


def launches(count: int, *, length: int = 10, name: str = "cudaLaunchKernel") -> list[Row]:
    return [
        {"start": n * 1000, "end": n * 1000 + length, "thread": 0, "corr": n, "name": name}
        for n in range(1, count + 1)
    ]


def capture(
    work: list[Row],
    calls: list[Row] | None = None,
    texts: tuple[str, ...] = (OP,),
    *,
    style: int = schema.NESTED,
    device: str | None = "H100",
    warnings: tuple[str, ...] = (),
) -> schema.Capture:
    count = len(texts)
    ranges = {"start": [0] * count, "end": [9] * count, "thread": [0] * count}
    devices = [{"device": 0, "name": device, "sm_count": 132 if device else None}]
    return schema.Capture(
        "nsys",
        None,
        table(schema.ACTIVITIES, work),
        table(schema.CALLS, calls if calls is not None else launches(len(work))),
        schema.table(schema.RANGES, {**ranges, "style": [style] * count, **apart(texts)}),
        table(schema.THREADS, [{"pid": 7, "tid": 1}]),
        table(schema.DEVICES, devices),
        warnings,
    )


def table(kind: Any, rows: list[Row]) -> Any:  # noqa: ANN401 - Arrow has no types
    columns = {name: [row.get(name) for row in rows] for name in (rows[0] if rows else {})}
    return schema.table(kind, columns, len(rows))


def test_a_capture_without_pitfalls_has_none() -> None:
    assert pitfalls.find_pitfalls(capture(kernels(30))) == []
    a_few_late = capture(kernels(5), launches(5, length=200))
    assert pitfalls.find_pitfalls(a_few_late) == []


def test_warnings_of_the_reader_come_first() -> None:
    found = pitfalls.find_pitfalls(capture(kernels(3), warnings=("lost records",)))
    assert found == ["lost records"]


COLLECTIVE = "{'mod': 'c10d', 'op': 'allreduce', 'args': []}"
TWO_PROCESSES = [*kernels(1), *({**row, "pid": 8} for row in kernels(2)[1:])]
SIDE_BY_SIDE = [*kernels(3), *({**row, "pid": 8, "corr": None} for row in kernels(3))]
OTHER_STREAM = [*kernels(3), *({**row, "stream": 8, "corr": None} for row in kernels(3))]
UNNAMED = [{**row, "name": "oz2_int8_dgemm_kernel"} for row in kernels(2)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (capture(kernels(30), launches(30, length=200)), "CUDA_LAUNCH_BLOCKING=1"),
        (capture(kernels(2, late=-5)), "2 kernels start before their launch"),
        (capture(kernels(2), texts=()), "no ranges at all"),
        (capture(kernels(2), texts=("aten::mm, op_id = 1, sizes = [[2]]",)), "no sequence numbers"),
        (capture(kernels(2), texts=("aten::mm, seq = 4",)), "no shapes"),
        (capture(kernels(2), texts=("aten::mm, seq = 4", COLLECTIVE)), "no shapes"),
        (capture([]), "no GPU work was captured (only 1 range"),
        (capture([*kernels(2), {**kernels(1)[0], "device": 1}], device=None), "devices 0, 1 are"),
        (capture(kernels(2), style=schema.FREE), "1 ranges do not nest"),
        (capture(TWO_PROCESSES), "2 processes used a GPU"),
        (capture(SIDE_BY_SIDE), "2 processes used a GPU"),  # and no stream overlaps another
        (capture(kernels(2), launches(12, name="cudaMalloc")), "12 allocations by the driver"),
        (capture(kernels(2), device=None), "device 0 is not described"),
        (capture(OTHER_STREAM), "add up to 0.0 ms in 0.0 ms"),
        (capture(UNNAMED), "emulated on integer units"),
    ],
)
def test_each_pitfall_is_one_sentence(given: schema.Capture, said: str) -> None:
    (text,) = pitfalls.find_pitfalls(given)
    assert said in text


def test_missing_ranges_are_reported_once() -> None:
    net = capture(kernels(2), texts=(), warnings=("no NVTX ranges",))
    assert pitfalls.find_pitfalls(net) == ["no NVTX ranges"]


def test_a_file_with_the_environment_says_so(tmp_path: Path) -> None:
    """Others are known to hold none."""
    path = tmp_path / "net.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name, value)")
        base.execute("CREATE TABLE PROCESSES (name)")
        base.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('TOKEN', 'secret')")
        base.commit()
    (said,) = database.private(path)
    assert "TARGET_INFO_SYSTEM_ENV: the machine and its environment" in said
    assert "secret" not in said
    other = tmp_path / "trace.json"
    other.write_text("{}")
    assert database.private(other) == []
