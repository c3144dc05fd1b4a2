"""Where ranges go: NVTX or torch.profiler."""

import json
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import pyprof
from pyprof import marker
from pyprof.instrument.ops.op import is_disabled
from pyprof.instrument.ranges import emit


@pytest.mark.parametrize(
    ("name", "value", "listens"),
    [
        ("NVTX_INJECTION64_PATH", "/tool.so", True),
        ("NSYS_PROFILING_SESSION_ID", "7", True),
        ("CUDA_INJECTION64_PATH", "/tool.so", True),
        ("LD_PRELOAD", "/a.so:/usr/lib/libToolsInjectionProxy64.so", True),
        ("LD_PRELOAD", "/opt/rocm/lib/librocprofiler-sdk.so.1", True),
        ("ROCP_TOOL_LIBRARIES", "/opt/rocm/lib/librocprofiler-sdk-tool.so", True),
        ("LD_PRELOAD", "/usr/lib/libjemalloc.so", False),
        ("NVTX_INJECTION64_PATH", "", False),
    ],
)
def test_tools_are_recognised_by_the_environment(
    name: str,
    value: str,
    listens: bool,  # noqa: FBT001 - expected
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """nsys, nvprof and ncu are recognised by what they inject; other libraries are none of them."""
    for variable in ("LD_PRELOAD", *emit._TOOL_VARIABLES):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, value)
    assert emit.tool_listens() is listens


def test_the_last_resort_takes_ranges() -> None:
    """The nvtx package's push and pop take any text, tool or none."""
    sink = emit._package_sink()
    sink.push("layer:x")
    sink.pop()


def test_ranges_reach_torch_profiler(tmp_path: Path) -> None:
    """emit="profiler": markers are annotations in its trace, built only while it records."""
    pyprof.init(emit="profiler")
    assert is_disabled()
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    x = torch.ones(2, 3)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        assert not is_disabled()
        net(x)
        with pyprof.annotate('mine "quoted" \\ '):
            x.add(1)
    net(x)
    file = tmp_path / "trace.json"
    recorded.export_chrome_trace(str(file))
    events = json.loads(file.read_text())["traceEvents"]
    written = [event["name"] for event in events if event.get("ph") == "X"]
    names = [marker.decode_annotation(name) for name in written]
    layers = [name for name in names if name.startswith("layer:")]
    calls = [marker.decode_op(name) for name in names if marker.classify(name) is marker.Kind.OP]
    assert layers == ["layer:Sequential", "layer:0", "layer:1", 'layer:mine "quoted" \\ ']
    assert [call.op for call in calls if call] == ["linear", "relu", "relu", "add"]
    assert "aten::add" in names


def test_a_profiler_that_starts_and_stops_inside_a_layer() -> None:
    """Ranges that were opened unrecorded are closed unrecorded, and the other way round."""
    pyprof.init(emit="profiler")
    recorded = profile(activities=[ProfilerActivity.CPU])
    with pyprof.annotate("outer"):
        recorded.__enter__()
        with pyprof.annotate("inner"):
            torch.ones(1)
            recorded.__exit__(None, None, None)
    keys = {event.key for event in recorded.key_averages()}
    assert "aten::ones" in keys
    assert "layer:outer" not in keys
