"""Real traces: all GPU work is in the tables, once and unchanged."""

import gzip
import json
from functools import cache
from typing import Any

import pytest

from pyprof import marker, schema
from pyprof.errors import NOTE
from pyprof.readers import kineto
from pyprof.readers.kineto.gpu import ACTIVITIES, is_call
from tests.conftest import CAPTURES
from tests.known import known
from tests.texts import texts

NAMES = (
    "kineto-h100-vit-inference",
    "kineto-torch-compile-triton",
    "kineto-v100-resnet-ddp",
    "kineto-v100-resnet50-2021",
)

pytestmark = pytest.mark.skipif(not CAPTURES.exists(), reason="the captures are not here")


@cache
def events(name: str) -> list[dict[str, Any]]:
    """Parse a trace the plain way."""
    with gzip.open(CAPTURES / name / "trace.json.gz") as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return [event for event in found if event.get("ph") == "X"]


@cache
def capture(name: str) -> schema.Capture:
    return kineto.read(CAPTURES / name / "trace.json.gz")


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_gpu_events_are_rows(name: str) -> None:
    found = capture(name)
    schema.check(found)
    work = [event for event in events(name) if event["cat"] in ACTIVITIES]
    rows = found.activities.to_pylist()
    assert len(rows) == len(work)
    expected = sorted((e["args"]["correlation"], round(e["dur"] * 1000)) for e in work)
    assert sorted((row["corr"], row["end"] - row["start"]) for row in rows) == expected
    kernels = [e["name"] for e in work if ACTIVITIES[e["cat"]] == schema.KERNEL]
    assert sorted(r["name"] for r in rows if r["kind"] == schema.KERNEL) == sorted(kernels)
    assert sum(r["bytes"] or 0 for r in rows) == sum(e["args"].get("bytes", 0) for e in work)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_call_is_a_row_and_each_kernel_finds_its_call(name: str) -> None:
    found = capture(name)
    assert found.calls.num_rows == sum(is_call(event["cat"]) for event in events(name))
    assert {*found.activities["corr"].to_pylist()} <= {*found.calls["corr"].to_pylist()}
    assert [text for text in found.warnings if not text.startswith(NOTE)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_ranges_nest(name: str) -> None:
    open_ends: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    for row in capture(name).ranges.to_pylist():
        ends = open_ends.setdefault(row["thread"], [])
        assert row["start"] >= last.get(row["thread"], 0)
        last[row["thread"]] = row["start"]
        while ends and ends[-1] <= row["start"]:
            ends.pop()
        assert not ends or row["end"] <= ends[-1]
        ends.append(row["end"])


@pytest.mark.slow
def test_backward_finds_forward_thread() -> None:
    found = capture("kineto-v100-resnet-ddp")
    threads = found.threads["tid"].to_pylist()
    rows = [row for row in found.ranges.to_pylist() if row["forward_thread"] is not None]
    assert len(rows) == 1810
    assert {threads[row["forward_thread"]] for row in rows} == {1102}
    assert {threads[row["thread"]] for row in rows} == {1262}


def test_shapes_of_the_vit() -> None:
    """The text of each op of the ViT has dtypes and strides."""
    found = [marker.decode_seq(t) for t in texts(capture(NAMES[0]).ranges)]
    calls = [known(seq.call) for seq in found if seq.name == "aten::addmm"]
    tensors = [arg for call in calls for arg in call.args if isinstance(arg, marker.Tensor)]
    assert {tensor.dtype for tensor in tensors} == {"bfloat16"}
    assert all(tensor.stride is not None for tensor in tensors)


def test_devices_have_name_sms_and_memory() -> None:
    (device,) = capture(NAMES[0]).devices.to_pylist()
    assert (device["name"], device["sm_count"]) == ("NVIDIA H100 80GB HBM3", 132)
    assert (device["cc_major"], device["cc_minor"], device["memory_bytes"]) == (9, 0, 85018279936)
