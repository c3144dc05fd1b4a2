"""Collectives without shapes of their own cost what the tool says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyprof
from tests.commands import run
from tests.readers.kineto_json import kernel, launch, op, text

if TYPE_CHECKING:
    import pandas as pd

SAID = {"Process Group Name": "1", "Group size": 4}


def _rows(folder: Path, name: str, given: int, got: int, dtype: str = "BFloat16") -> pd.DataFrame:
    """Load two kernels of a collective that moves so many elements."""
    said = {**SAID, "Collective name": name, "In msg nelems": given, "Out msg nelems": got}
    events = [op("c10d::allreduce_", 10, 9, External_id=1)]
    for corr in (1, 2):
        found = kernel(corr, 100 * corr, name=f"ncclDevKernel_{name}_Sum_bf16_RING_LL(void)")
        found["args"] |= {**said, "dtype": dtype}
        events += [launch(corr, 10 + 2 * corr), found]
    path = folder / "trace.json"
    path.write_text(text(events))
    rows: pd.DataFrame = pyprof.load(path)
    return rows


@pytest.mark.parametrize(
    ("name", "given", "got", "moved"),
    [
        ("allreduce", 100, 100, 400),
        ("_allgather_base", 100, 400, 1000),
        ("_reduce_scatter_base", 400, 100, 1000),
        ("broadcast", 100, 100, 200),
        ("all_to_allv", 100, 100, 400),
    ],
)
def test_what_is_said_stands_for_shapes(
    name: str, given: int, got: int, moved: int, tmp_path: Path
) -> None:
    """Each kernel for itself: what it gives is read, what it gets is written, of 2 bytes."""
    rows = _rows(tmp_path, name, given, got)
    assert rows.bytes.tolist() == [moved, moved]
    assert rows.flops.tolist() == [0, 0]
    assert all("bus_bytes" in text for text in rows.params)


@pytest.mark.parametrize(("name", "dtype"), [("wait", "BFloat16"), ("allreduce", "Odd")])
def test_what_says_no_amount_stays_unknown(name: str, dtype: str, tmp_path: Path) -> None:
    """A name alone is no size, and a type that nobody knows is no width."""
    assert _rows(tmp_path, name, 100, 100, dtype).bytes.isna().all()


@pytest.mark.parametrize("written", ["5", "[]", "{", '"allreduce"', "[" * 9999])
def test_what_is_damaged_tells_nothing(written: str, tmp_path: Path) -> None:
    """The row stays, with an unknown cost."""
    path = tmp_path / "trace.json"
    path.write_text(text([launch(1, 10), kernel(1, 100, name="ncclDevKernel_AllReduce_Sum")]))
    assert run("parse", path, "-o", tmp_path / "net.dict").code == 0
    row = json.loads((tmp_path / "net.dict").read_text()) | {"collective": written}
    (tmp_path / "net.dict").write_text(json.dumps(row))
    assert pyprof.load(tmp_path / "net.dict")["bytes"].isna().tolist() == [True]
