"""Where ranges go: to NVTX or torch.profiler."""

import ctypes.util
import json
import os
import subprocess
import sys
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
    name: str, value: str, *, listens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LD_PRELOAD", *emit._TOOL_VARIABLES):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, value)
    assert emit.tool_listens() is listens


def test_without_a_tool_ranges_go_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "_torch_sink", lambda: None)
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    sink = emit.nvtx_sink()
    sink.push("layer:x")
    sink.pop()


@pytest.mark.slow
def test_ranges_reach_torch_profiler(tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_a_profiler_that_starts_and_stops_inside_a_layer() -> None:
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


def test_a_library_that_is_not_a_tool_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "tool.so"
    text.write_text("no library")
    assert emit.connect(str(text)) is None
    assert emit.connect(str(tmp_path / "absent.so")) is None
    libc = ctypes.util.find_library("c")
    assert libc is None or emit.connect(libc) is None


TOOL = r"""
#include <stdio.h>
#include <stdint.h>
#include <stddef.h>
typedef struct { size_t size; int (*get)(uint32_t, void ****, unsigned *); } Callbacks;
static int depth;
static int push(const char *text) { printf("%d %s\n", depth, text); return depth++; }
static int pop(void) { return --depth; }
int InitializeInjectionNvtx2(const void *(*table)(uint32_t)) {
    const Callbacks *callbacks = table(1);
    void ***slots; unsigned size;
    if (!callbacks || table(99)) return 0;
    if (callbacks->get(42, &slots, &size)) return 0;
    if (!callbacks->get(1, &slots, &size) || size != 16) return 0;
    *slots[9] = push; *slots[11] = pop;
    return 1;
}
"""


@pytest.mark.long
def test_ranges_reach_an_injected_tool(tmp_path: Path) -> None:
    source, library = tmp_path / "tool.c", tmp_path / "tool.so"
    source.write_text(TOOL)
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler here")
    code = (
        "import pyprof, torch; pyprof.init()\n"
        "with pyprof.annotate('it\\'s é'): torch.ones(2).add(1)\n"
    )
    if hasattr(torch._C, "_nvtx"):
        code = (
            "import torch; del torch._C._nvtx; import sys; sys.modules.pop('torch._C._nvtx', 0)\n"
            + code
        )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NVTX_INJECTION64_PATH": str(library)},
        check=True, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    found = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [depth for depth, _, _ in found] == ["0", "1", "2", "1", "2"]
    assert found[0][2] == "layer:it's é"
    kinds = [marker.classify(text) for _, _, text in found[1:]]
    assert kinds == [marker.Kind.TRACE, marker.Kind.OP] * 2
