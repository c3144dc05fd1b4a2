"""The timeline: slices nest, flows bind, times are exact."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pyprof
from tests.commands import run
from tests.export.exported import events


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nsys2026.2-h100x2-fsdp", "nsys2024.2-a100-pyprof-markers"])
def test_flows_lead_from_a_call_to_a_kernel(captures: Path, tmp_path: Path, name: str) -> None:
    found = events(captures / name / "net.sqlite", tmp_path / "net.pt.trace.json")
    places: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for event in found:
        if event["ph"] == "X":
            places[event["cat"]].add((event["pid"], event["tid"], event["ts"]))
    gpu = places["kernel"] | places["gpu_memcpy"] | places["gpu_memset"]
    starts = {e["id"]: (e["pid"], e["tid"], e["ts"]) for e in found if e["ph"] == "s"}
    ends = {e["id"]: (e["pid"], e["tid"], e["ts"]) for e in found if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert starts
    assert set(starts.values()) <= places["cuda_runtime"]
    assert set(ends.values()) <= gpu


def test_records_without_times_have_no_timeline(captures: Path, tmp_path: Path) -> None:
    """The original's only have durations: exit code 1, what to do, and no file."""
    done = run(
        "export", captures / "nvprof-v100-apex" / "net.dict", "-o", tmp_path / "x.pt.trace.json"
    )
    assert (done.code, done.stdout) == (1, "")
    assert "no start times" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "kineto-h100-vit-inference/trace.json.gz",
        "kineto-v100-resnet-ddp/trace.json.gz",
        "nsys2024.2-a100-pyprof-markers/net.sqlite",
        "nsys2026.2-h100x2-fsdp/net.sqlite",
    ],
)
def test_a_reader_of_torch_traces_finds_the_same_work(
    captures: Path, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "net.pt.trace.json"
    assert run("export", captures / name, "-o", target).code == 0
    columns = ["kernel", "kind", "sil", "stream", "device", "grid"]
    before, after = pyprof.load(captures / name), pyprof.load(target)
    for frame in (before, after):
        frame["start"] -= frame["start"].min()
    keys = ["start", "stream", "kernel", "sil"]
    expected, found = (
        frame.sort_values(keys)[["start", *columns]].reset_index(drop=True)
        for frame in (before, after)
    )
    pd.testing.assert_frame_equal(expected, found)
