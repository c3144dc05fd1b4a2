"""Results of index ops have the size of the views made inside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyprof
from tests.readers.kineto_json import Event, kernel, launch, op, text, trace_file

if TYPE_CHECKING:
    import pandas as pd


def _op(name: str, ts: float, dur: float, sizes: list[Any], *concrete: str) -> Event:
    """Write an op whose first argument is a float32 tensor, and the rest numbers or hidden."""
    types = ["float", *["ScalarList" if text else "" for text in concrete]]
    dims = [sizes, *[[] for _ in concrete]]
    return op(name, ts, dur, Input_Dims=dims, Input_type=types, Concrete_Inputs=["", *concrete],
              External_id=int(ts))  # fmt: skip


def _rows(folder: Path, *events: Event) -> pd.DataFrame:
    path = trace_file(folder, [*events, launch(1, 18), kernel(1, 100, name="gather")])
    rows: pd.DataFrame = pyprof.load(path)
    return rows


def _index(*view: str) -> list[Event]:
    """Write a call that indexes 100 rows of 8, with a view of 100 x 8 made inside."""
    return [
        _op("aten::index", 10, 10, [100, 8], ""),
        _op("aten::as_strided", 11, 1, [100, 8], *view),
    ]


def test_a_picked_result_is_as_large_as_the_view_that_repeats_its_source(tmp_path: Path) -> None:
    """30 rows of 8 elements of 4 bytes, read and written; index tensors are not recorded."""
    rows = _rows(tmp_path, *_index("[30, 8]", "[0, 1]", ""))
    assert (rows.flops[0], rows.bytes[0]) == (0, 2 * 30 * 8 * 4)


INDEX = _op("aten::index", 10, 10, [100, 8], "")
OTHER_VIEWS = {
    "repeats nothing": _index("[30, 8]", "[8, 1]", ""),  # a view of another kind
    "no strides": _index("[30, 8]", "", ""),
    "no sizes": _index("", "[0, 1]", ""),
    "an odd size": _index("[-1, 8]", "[0, 1]", ""),
    "of another tensor": [INDEX, _op("aten::as_strided", 11, 1, [50], "[30, 8]", "[0, 1]", "")],
    "not directly inside": [
        *(INDEX, _op("aten::t", 11, 3, [100, 8])),
        _op("aten::as_strided", 12, 1, [100, 8], "[3, 8]", "[0, 1]", ""),
    ],
}


@pytest.mark.parametrize("events", OTHER_VIEWS.values(), ids=OTHER_VIEWS)
def test_other_views_leave_the_result_unknown(events: list[Event], tmp_path: Path) -> None:
    rows = _rows(tmp_path, *events)
    assert rows.bytes.isna()[0]
    assert rows.why[0] == "indices not recorded"


@pytest.mark.parametrize("size", ["[2, 7]", "[7, 2]"])
def test_nonzero_finds_as_many_elements_as_its_result_has_rows(size: str, tmp_path: Path) -> None:
    """7 positions of two 8-byte numbers, in either layout; 12 elements read, of 4 bytes."""
    rows = _rows(
        tmp_path, _op("aten::nonzero", 10, 10, [3, 4]), _op("aten::resize_", 11, 1, [0], size, "")
    )
    assert (rows.flops[0], rows.bytes[0]) == (0, 12 * 4 + 14 * 8)


def test_each_call_has_its_own_size(tmp_path: Path) -> None:
    second = [event | {"ts": event["ts"] + 20} for event in _index("[5, 8]", "[0, 1]", "")]
    for event in second:
        event["args"] = {**event["args"], "External id": 99 + event["ts"]}
    path = tmp_path / "trace.json"
    kernels = [launch(1, 18), kernel(1, 100), launch(2, 38), kernel(2, 200)]
    path.write_text(text([*_index("[30, 8]", "[0, 1]", ""), *second, *kernels]))
    rows = pyprof.load(path)
    assert rows.bytes.tolist() == [2 * 30 * 8 * 4, 2 * 5 * 8 * 4]
