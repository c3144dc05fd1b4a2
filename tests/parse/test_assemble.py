"""Every row of every real capture comes out once, with its duration to the nanosecond."""

import ast
import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyprof import readers, schema
from pyprof.parse import assemble, parse, parse_file
from tests import damage
from tests.builders import CAPTURES, Range, Work, nsys_db
from tests.parse.record_lines import record_lines

_CUPTI = "CUPTI_ACTIVITY_KIND_"
TABLES = {
    _CUPTI + "KERNEL": "kernel",
    _CUPTI + "CONCURRENT_KERNEL": "kernel",
    _CUPTI + "MEMCPY": "memcpy",
    _CUPTI + "MEMSET": "memset",
    _CUPTI + "GRAPH_TRACE": "graph",
}
FILES = {
    # capture: rows by kind, as its README and its tables have them
    "nvprof-v100-apex/net.sql": {"kernel": 160, "memcpy": 21, "memset": 8},
    "nsys2024.2-a100-pyprof-markers/net.sqlite": {"kernel": 328, "memcpy": 40, "memset": 7},
    "nsys2026.2-h100x2-fsdp/net.sqlite": {"kernel": 4010, "memcpy": 1020, "memset": 269},
    "nsys2024.6-a100-cudagraph/net.sqlite": {"kernel": 30, "graph": 10},
    "nsys2025.3-t4-registered-strings/net.sqlite": {"kernel": 3689, "memcpy": 89},
    "nsys2022.2-a100-duplicate-api-rows/net.sqlite": {"kernel": 5, "memcpy": 15},
    "nsys2021.2-rtx6000-no-nvtx/net.sqlite": {"kernel": 12, "memcpy": 188, "memset": 16},
    "nsys2024.6-h100-nvfuser/net.sqlite": {"kernel": 19, "memcpy": 1, "memset": 1},
    "rocpd-mi300x-bmm/results.db": {"kernel": 301},
}
ROCPD = {
    # view of a rocpd file, which its tool defines: the kind of its rows, and the GPU of each
    "kernels": ("kernel", "agent_type_index"),
    "memory_copies": ("memcpy", "coalesce(src_agent_type_index, dst_agent_type_index)"),
}


def _path(name: str) -> Path:
    path = CAPTURES / name
    if not path.is_file():
        pytest.skip("the shared captures are not here")
    return path


def _truth(path: Path) -> Counter[tuple[str, int, int, int, int]]:
    """Return (kind, start, end, device, stream) of every row, straight from the tables."""
    found: Counter[tuple[str, int, int, int, int]] = Counter()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        for table, kind in TABLES.items():
            if table in there:
                query = f"SELECT start, end, deviceId, streamId FROM {table}"  # noqa: S608
                found.update((kind, *row) for row in db.execute(query))
        for view, (kind, device) in ROCPD.items():
            if view in there:
                query = f"SELECT start, end, {device}, stream_id FROM {view}"  # noqa: S608
                found.update((kind, *row) for row in db.execute(query))
    return found


@cache
def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record_lines(parse_file(path))]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", FILES)
def test_every_row_comes_out_once_in_gpu_order(name: str) -> None:
    path = _path(name)
    lines = _lines(path)
    found = Counter(
        (line["kind"], line["start"], line["end"], line["device"], line["stream"]) for line in lines
    )
    assert found == _truth(path)
    assert Counter(line["kind"] for line in lines) == FILES[name]
    assert all(line["kDuration"] == line["end"] - line["start"] for line in lines)
    starts = [line["start"] for line in lines]
    assert starts == sorted(starts)
    assert all(line["kShortName"].strip() for line in lines)
    for key in {*schema.OLD_RECORD.names} - {"tid", "stream"}:  # which a capture may not hold
        assert all(key in line for line in lines), key


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_kernels_only_leaves_the_kernels(name: str) -> None:
    path = _path(name)
    records = parse_file(path, kernels_only=True)
    alone = [json.loads(line) for line in record_lines(records)]
    both = [line for line in _lines(path) if line["kind"] == "kernel"]
    keys = ("kLongName", "start", "end", "corrId", "op", "dir", "layer", "trace")
    assert [[line.get(k) for k in keys] for line in alone] == [
        [b.get(k) for k in keys] for b in both
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name", [name for name in FILES if "fsdp" not in name and "registered" not in name]
)
def test_the_order_of_rows_decides_nothing(name: str) -> None:
    """Shuffled tables give the same records, except for the numbers of op calls."""
    capture = readers.read(_path(name))
    tables = {key: _shuffled(getattr(capture, key)) for key in ("activities", "calls", "ranges")}
    reordered = replace(capture, **tables)
    assert _comparable(parse(reordered).table()) == _comparable(parse(capture).table())


def _shuffled(table: pa.Table) -> pa.Table:
    rows = table.num_rows
    step = next(step for step in (7919, 7907, 1) if rows % step or step == 1)
    return table.take(pa.array([(place * step + 1) % rows for place in range(rows)], pa.int64()))


def _comparable(table: pa.Table) -> list[dict[str, Any]]:
    return table.drop_columns(["opId", "callIds"]).to_pylist()  # type: ignore[no-any-return]


def test_graph_time_is_shown_and_warned_of() -> None:
    """7,811 ms of GPU time exist only as graph launches: rows of kind graph hold it."""
    path = _path("nsys2024.6-a100-cudagraph/net.sqlite")
    records = parse_file(path)
    (warning,) = (text for text in records.warnings if "CUDA graph" in text)
    assert "7,811.14 ms" in warning
    assert "--cuda-graph-trace=node" in warning
    graphs = [line for line in _lines(path) if line["kind"] == "graph"]
    assert sum(line["kDuration"] for line in graphs) // 10_000 == 781_114


def test_leaked_ranges_hide_nothing() -> None:
    """702 unclosed `__getattr__` ranges around every kernel are never an op: the real op is found.

    It is the innermost other op range around the launch, searched for here among all ranges for
    every kernel.
    """
    path = _path("nsys2024.2-a100-pyprof-markers/net.sqlite")
    query = "SELECT start, end, text FROM NVTX_EVENTS WHERE text LIKE '{''mod''%''op''%'"
    ranges = damage.query(path, query)
    leaks = [row for row in ranges if "'__getattr__'" in row[2]]
    others = sorted(row for row in ranges if row not in leaks)
    assert len(leaks) == 702
    found = Counter[str]()
    for line in _lines(path):
        start, end = line["launch"]
        assert sum(row[0] <= start and row[1] >= end for row in leaks) > 0
        around = [text for low, high, text in others if low <= start and high >= end]
        expected = [ast.literal_eval(text)["op"] for text in around]
        assert line["op"] == expected
        found[expected[-1] if expected else ""] += 1
    assert found["conv2d"] > 50


def test_of_too_many_nested_ranges_the_innermost_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assemble, "_MAX_NAMES", 5)
    monkeypatch.setattr(assemble, "_MIN_NAMES", 2)
    texts = ["layer:a", "layer:b", "layer:c", "aten::mm, seq = 4"]
    ranges = [Range(text, (n, 100 - n)) for n, text in enumerate(texts)]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", [Work(call=(50, 51))] * 2, ranges))
    assert found.arrow("layer").to_pylist() == [["b", "c"]] * 2
    assert found.arrow("op").to_pylist() == [["mm"]] * 2
    assert "2 rows nested in more than 2 ranges" in found.warnings[-1]
