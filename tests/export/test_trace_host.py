"""Threads of the CPU in the timeline."""

from pathlib import Path

import pytest

from tests.analysis.captured import capture
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.export.exported import events, of
from tests.readers.kineto_json import op, trace_file


def test_the_host_shows_ops_layers_and_calls(tmp_path: Path) -> None:
    """On their thread, with short names; stacks are left out."""
    found = events(capture(tmp_path / "net.sqlite"), tmp_path / "net.pt.trace.json.gz")
    assert [e["name"] for e in of(found, "cpu_op")] == ["torch.relu", "torch.relu", "torch.exp"]
    assert {e["name"] for e in of(found, "user_annotation")} == {"net", "net.first", "net.second"}
    assert len(of(found, "cuda_runtime")) == 5


def test_ranges_that_may_overlap_are_asynchronous_and_others_slices(tmp_path: Path) -> None:
    ranges = [
        Range("step", (5, 90)),
        Range("a", (10, 50), style=60),
        Range("b", (30, 70), style=60),
    ]
    net = nsys_db(tmp_path / "net.sqlite", [Work(call=(15, 20))], ranges)
    found = events(net, tmp_path / "net.pt.trace.json")
    assert [(e["ph"], e["name"], e["id"]) for e in found if e["ph"] in "be"] == [
        ("b", "a", 0), ("b", "b", 1), ("e", "a", 0), ("e", "b", 1),
    ]  # fmt: skip
    assert [e["name"] for e in of(found, "user_annotation")] == ["step"]


def test_ops_timed_on_the_cpu_appear_once(tmp_path: Path) -> None:
    """Without a GPU, ops are on their thread and not on a stream as well."""
    names = ("aten::relu", "aten::exp")
    ops = [op(name, 10 * number, 5, External_id=number) for number, name in enumerate(names, 1)]
    source = trace_file(tmp_path, ops)
    found = of(events(source, tmp_path / "net.pt.trace.json"), "cpu_op")
    assert sorted(event["name"] for event in found) == ["aten::exp", "aten::relu"]


@pytest.mark.parametrize("suffix", ["sqlite", "dict"])
def test_processes_and_threads_are_named(suffix: str, tmp_path: Path) -> None:
    """All with slices: threads by number and what they launch, processes by rank."""
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
    """Autograd's thread runs the backward pass; the process is a rank's."""
    found = events(
        captures / "kineto-v100-resnet-ddp" / "trace.json.gz", tmp_path / "net.pt.trace.json"
    )
    names = {e["args"]["name"] for e in found if e["name"] in ("process_name", "thread_name")}
    assert {"CPU, rank 0", "thread 1262: backward, copy"} <= names
