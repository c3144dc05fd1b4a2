"""Plausible captures in every format, ways to damage them, and their truth."""

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.builders import Range, Work, nsys_db, nvprof_db, rocpd_db
from tests.readers import kineto_json

OP = "{'mod': 'torch', 'op': 'relu', 'args': [{'name': '', 'type': 'tensor', 'shape': (8,), 'dtype': 'float32'}]}"  # noqa: E501


@dataclass(frozen=True)
class Truth:
    """Kernels of one stream after another, each launched in a range of its own; times in ns."""

    kernels: tuple[tuple[int, int], ...]
    """Start and end."""

    @property
    def work(self) -> list[Work]:
        """As the tests of readers have it: correlation ids count from 1."""
        return [
            Work(f"kernel_{place % 3}", at=at, call=(at[0] - 5_000, at[0] - 3_000), corr=place + 1)
            for place, at in enumerate(self.kernels)
        ]

    @property
    def ranges(self) -> list[Range]:
        return [Range(OP, (start - 6_000, start - 2_000)) for start, _ in self.kernels]

    def total_ns(self, without: Sequence[int] = ()) -> int:
        """Add up the durations of all kernels but some."""
        return sum(end - start for place, (start, end) in enumerate(self.kernels)
                   if place not in without)  # fmt: skip


def _laid_out(lengths: list[tuple[int, int]]) -> Truth:
    kernels, now = [], 1_000_000_000
    for gap, length in lengths:
        now += 10_000 + gap
        kernels.append((now, now + length))
        now += length
    return Truth(tuple(kernels))


TRUTHS = st.lists(
    st.tuples(st.integers(0, 300_000), st.integers(1_000, 400_000)), min_size=4, max_size=14
).map(_laid_out)


# --- writing --------------------------------------------------------------------------------------


def nsys(path: Path, truth: Truth) -> Path:
    return nsys_db(path, truth.work, truth.ranges)


def nvprof(path: Path, truth: Truth) -> Path:
    return nvprof_db(path, truth.work, truth.ranges)


def rocpd(path: Path, truth: Truth) -> Path:
    return rocpd_db(path, truth.work, truth.ranges)


def kineto(path: Path, truth: Truth) -> Path:
    """Write a trace of torch.profiler, times in microseconds."""
    events = []
    for work, around in zip(truth.work, truth.ranges, strict=True):
        assert work.corr is not None
        assert work.call is not None
        assert around.at[1] is not None
        start, end = (time / 1000 for time in work.at)
        called = work.call[0] / 1000
        open_, close = around.at[0] / 1000, around.at[1] / 1000
        events += [
            kineto_json.op("aten::relu", open_, close - open_, External_id=work.corr),
            kineto_json.launch(work.corr, called),
            kineto_json.kernel(work.corr, start, round(end - start, 3), name=work.name),
        ]
    path.write_text(kineto_json.text(events))
    return path


CAPTURES: dict[str, Callable[[Path, Truth], Path]] = {
    "nsys": nsys,
    "nvprof": nvprof,
    "rocpd": rocpd,
    "kineto": kineto,
}
ROCPD_SUFFIX = "_00000000_e175_7175_b886_1df113061c37"
"""The suffix of the first recording's tables."""
TABLES = {
    "nsys": "CUPTI_ACTIVITY_KIND_KERNEL",
    "nvprof": "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "rocpd": f"rocpd_kernel_dispatch{ROCPD_SUFFIX}",
}
RANGES = {"nsys": "NVTX_EVENTS", "rocpd": f"rocpd_region{ROCPD_SUFFIX}"}
ROCTX = f"(SELECT id FROM rocpd_string{ROCPD_SUFFIX} WHERE string = 'roctxThreadRangeA')"  # noqa: S608
"""What a region of rocpd refers to if it is a range."""

# --- damaging -------------------------------------------------------------------------------------

_SQL = {
    "swapped": "start = end, end = start",
    "end 0": "end = 0",
    "no end": "end = NULL",
    "no start": "start = NULL",
    "text": "start = 'soon'",
    "beyond": "end = 4611686018427387904",
    "a week": "end = start + 604800000000000",
    "infinite": "end = 9e999",
    "not timed": "start = 0, end = 0",
    "before 0": "start = start - end, end = 1",
}
_JSON = {
    "negative": ("dur", "-5"),
    "null": ("dur", "null"),
    "text": ("dur", '"long"'),
    "start as text": ("ts", '"soon"'),
    "beyond": ("dur", "4e15"),
    "huge start": ("ts", "1e300"),
    "nan": ("dur", "NaN"),
    "infinite": ("ts", "1e999"),
    "before 0": ("ts", "-5"),
}
_LINES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "negative": lambda line: line | {"kDuration": -line["kDuration"]},
    "end 0": lambda line: line | {"end": 0},
    "no duration": lambda line: {key: line[key] for key in line if key != "kDuration"},
    "beyond": lambda line: line | {"kDuration": 2**62, "end": line["start"] + 2**62},
    "other": lambda line: line | {"kDuration": 7 * line["kDuration"]},
}

SPAN_DAMAGES = [
    *(("nsys", name) for name in _SQL),
    *(("nvprof", name) for name in _SQL),
    *(("rocpd", name) for name in _SQL),
    *(("kineto", name) for name in _JSON),
    *(("dict", name) for name in _LINES),
]
"""A format, and what happened to some rows of it."""


def sql(path: Path, *statements: str) -> Path:
    """Change a database; return its path."""
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)
    return path


def query(path: Path, text: str) -> list[tuple[Any, ...]]:
    """Return the rows that a query finds in a database, which is only read."""
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        return db.execute(text).fetchall()


def spans(path: Path, tool: str, name: str, rows: Sequence[int]) -> None:
    """Damage the times of some kernels."""
    if tool == "dict":
        lines = path.read_text().splitlines()
        for row in rows:
            lines[row] = json.dumps(_LINES[name](json.loads(lines[row])))
        path.write_text("".join(f"{line}\n" for line in lines))
    elif tool == "kineto":
        key, value = _JSON[name]
        edit_kernels(path, rows, key, value)
    else:
        chosen = ", ".join(str(row + 1) for row in rows)
        sql(path, f"UPDATE {TABLES[tool]} SET {_SQL[name]} WHERE rowid IN ({chosen})")  # noqa: S608


def edit_kernels(path: Path, rows: Sequence[int], key: str, value: str) -> None:
    """Replace a value of some kernels by the text `value`, which may be no JSON."""
    whole = json.loads(path.read_text())
    kernels = [event for event in whole["traceEvents"] if event["cat"] == "kernel"]
    for row in rows:
        kernels[row][key] = "@@"
    path.write_text(re.sub('"@@"', lambda _: value, json.dumps(whole)))


def twice(path: Path, tool: str) -> None:
    if tool == "dict":
        path.write_text("".join(2 * line for line in path.read_text().splitlines(keepends=True)))
    elif tool == "kineto":
        whole = json.loads(path.read_text())
        whole["traceEvents"] += [e for e in whole["traceEvents"] if e["cat"] == "kernel"]
        path.write_text(json.dumps(whole))
    else:
        sql(path, f"INSERT INTO {TABLES[tool]} SELECT * FROM {TABLES[tool]}")  # noqa: S608
