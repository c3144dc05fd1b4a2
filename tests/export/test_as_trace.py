"""The timeline: slices nest, flows bind, times are exact."""

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pyprof
from tests.analysis.captured import HOSTILE, capture
from tests.commands import run
from tests.readers import kineto_json

Event = dict[str, Any]


def events(source: Path, target: Path) -> list[Event]:
    """Export a capture and read its events, times as exact decimals."""
    done = run("export", source, "-o", target)
    assert done.code == 0, done.stderr
    text = gzip.decompress(target.read_bytes()) if target.suffix == ".gz" else target.read_bytes()
    found: list[Event] = json.loads(text, parse_float=Decimal)["traceEvents"]
    return found


def of(found: list[Event], category: str) -> list[Event]:
    return [event for event in found if event.get("cat") == category and event["ph"] == "X"]


def test_every_row_is_a_slice_of_its_stream(tmp_path: Path) -> None:
    """Kernels and copies stand on their stream's track, to the ns, under their full names."""
    found = events(capture(tmp_path / "net.sqlite"), tmp_path / "net.pt.trace.json")
    base = 100  # the first range
    kernels = [(e["name"], e["tid"], e["ts"], e["dur"]) for e in of(found, "kernel")]
    assert kernels == [
        ("relu_kernel", 7, Decimal(1000 - base) / 1000, Decimal("0.1")),
        ("relu_kernel", 7, Decimal(2000 - base) / 1000, Decimal("0.1")),
        ("exp_kernel", 7, Decimal(3000 - base) / 1000, Decimal("0.3")),
        (HOSTILE, 7, Decimal(3400 - base) / 1000, Decimal("0.05")),
    ]
    copied = [(e["name"], e["tid"], e["args"]["bytes"]) for e in of(found, "gpu_memcpy")]
    assert copied == [("Memcpy HtoD", 8, 4096)]  # as torch.profiler names it


def test_copies_of_a_torch_trace_keep_their_names(tmp_path: Path) -> None:
    """Other tools tell copies, and pinned from pageable memory, by them; as do parsed records."""
    names = ["Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "CopyHostToDevice"]
    work = [
        kineto_json.event(category, name, 10.0 * place, 2.0, pid=0, device=0, stream=7)
        for place, (category, name) in enumerate(
            zip(("gpu_memcpy", "gpu_memset", "gpu_memcpy"), names, strict=True)
        )
    ]
    net = tmp_path / "net.json"
    net.write_text(kineto_json.text(work))
    run("parse", net, "-o", tmp_path / "net.dict")
    for source in (net, tmp_path / "net.dict"):
        found = events(source, tmp_path / "out.pt.trace.json")
        assert [e["name"] for e in [*of(found, "gpu_memcpy"), *of(found, "gpu_memset")]] == [
            names[0], names[2], names[1],
        ]  # fmt: skip


def test_layers_and_ops_stand_above_their_kernels(tmp_path: Path) -> None:
    """A layer spans from its first kernel to its last; its ops lie inside it."""
    found = events(capture(tmp_path / "net.sqlite"), tmp_path / "net.perfetto")
    base = 100
    layers = {
        e["name"]: (e["ts"] * 1000 + base, e["dur"] * 1000)
        for e in of(found, "gpu_user_annotation")
    }
    assert layers == {"net": (1000, 2300), "net.first": (1000, 1100), "net.second": (3000, 300)}
    assert [e["name"] for e in of(found, "gpu_op")] == ["relu", "relu", "exp"]


def test_the_host_shows_ops_layers_and_calls(tmp_path: Path) -> None:
    """Ranges of ops and layers appear on their thread under short names; stacks do not."""
    found = events(capture(tmp_path / "net.sqlite"), tmp_path / "net.pt.trace.json.gz")
    assert [e["name"] for e in of(found, "cpu_op")] == ["torch.relu", "torch.relu", "torch.exp"]
    assert {e["name"] for e in of(found, "user_annotation")} == {"net", "net.first", "net.second"}
    assert {e["name"] for e in of(found, "cuda_runtime")} == {
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
    } or (len(of(found, "cuda_runtime")) == 5)


@pytest.mark.parametrize("name", ["nsys2026.2-h100x2-fsdp", "nsys2024.2-a100-pyprof-markers"])
def test_flows_lead_from_a_call_to_a_kernel(captures: Path, tmp_path: Path, name: str) -> None:
    """Each flow starts at the start of an API call and ends at that of a slice of a stream."""
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


@pytest.mark.parametrize("name", ["nsys2026.2-h100x2-fsdp", "nsys2024.2-a100-pyprof-markers"])
def test_projected_slices_nest(captures: Path, tmp_path: Path, name: str) -> None:
    """On a track of layers and ops no slice ends after one that encloses its start."""
    found = events(captures / name / "net.sqlite", tmp_path / "net.pt.trace.json")
    tracks: dict[tuple[int, int], list[tuple[Decimal, Decimal]]] = defaultdict(list)
    for event in of(found, "gpu_op") + of(found, "gpu_user_annotation"):
        start, length = Decimal(event["ts"]), Decimal(event["dur"])
        tracks[event["pid"], event["tid"]].append((start, -(start + length)))
    assert tracks
    for slices in tracks.values():
        open_: list[Decimal] = []
        for start, negative_end in sorted(slices):
            while open_ and open_[-1] <= start:
                open_.pop()
            assert not open_ or -negative_end <= open_[-1]
            open_.append(-negative_end)


def test_records_without_times_have_no_timeline(captures: Path, tmp_path: Path) -> None:
    """The original's records hold durations alone: exit code 1, what to do, and no file."""
    done = run(
        "export", captures / "nvprof-v100-apex" / "net.dict", "-o", tmp_path / "x.pt.trace.json"
    )
    assert (done.code, done.stdout) == (1, "")
    assert "no start times" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
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
    """Read as a trace of torch.profiler, it has the same kernels, times, streams and grids."""
    target = tmp_path / "net.pt.trace.json"
    assert run("export", captures / name, "-o", target).code == 0
    columns = ["kernel", "kind", "sil", "stream", "device", "grid"]
    before, after = pyprof.load(captures / name), pyprof.load(target)
    for frame in (before, after):
        frame["start"] -= frame["start"].min()
    keys = ["start", "stream", "kernel", "sil"]
    ordered = [frame.sort_values(keys)[["start", *columns]] for frame in (before, after)]
    pd.testing.assert_frame_equal(*(frame.reset_index(drop=True) for frame in ordered))


def test_ops_timed_on_the_cpu_appear_once(tmp_path: Path) -> None:
    """A capture without a GPU has its ops on their thread, not on a stream as well."""
    operation = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1}
    trace = {
        "schemaVersion": 1,
        "traceEvents": [
            {**operation, "name": "aten::relu", "ts": 10, "dur": 5, "args": {"External id": 1}},
            {**operation, "name": "aten::exp", "ts": 20, "dur": 5, "args": {"External id": 2}},
        ],
    }
    source = tmp_path / "cpu.json"
    source.write_text(json.dumps(trace))
    found = of(events(source, tmp_path / "net.pt.trace.json"), "cpu_op")
    assert sorted(event["name"] for event in found) == ["aten::exp", "aten::relu"]


@pytest.mark.parametrize("suffix", ["sqlite", "dict"])
def test_processes_and_threads_are_named(suffix: str, tmp_path: Path) -> None:
    """Whoever has a slice: threads by number and what they launch, processes by rank."""
    source = capture(tmp_path / "net.sqlite")
    if suffix == "dict":
        assert run("parse", "-q", source, "-o", tmp_path / "net.dict").code == 0
        source = tmp_path / "net.dict"
    found = events(source, tmp_path / "net.pt.trace.json")
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in found if e["ph"] == "M"
             and e["name"].endswith("_name")}  # fmt: skip
    slices = [event for event in found if event["ph"] == "X"]
    assert {(e["pid"], e["tid"]) for e in slices} <= {
        (pid, tid) for what, pid, tid in names if what == "thread_name"
    }
    assert {e["pid"] for e in slices} <= {pid for what, pid, _ in names if what == "process_name"}
    (launcher,) = {(e["pid"], e["tid"]) for e in of(found, "cuda_runtime")}
    assert names["process_name", launcher[0], 0] == "CPU"
    assert names["thread_name", launcher[0], launcher[1]] == f"thread {launcher[1]}: forward, copy"


@pytest.mark.slow
def test_a_thread_is_named_by_what_it_launches(captures: Path, tmp_path: Path) -> None:
    """The engine's thread runs the backward pass; the process is a rank's."""
    found = events(
        captures / "kineto-v100-resnet-ddp" / "trace.json.gz", tmp_path / "net.pt.trace.json"
    )
    names = {e["args"]["name"] for e in found if e["name"] in ("process_name", "thread_name")}
    assert {"CPU, rank 0", "thread 1262: backward, copy"} <= names
