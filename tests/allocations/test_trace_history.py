"""Memory events of torch.profiler: tied to ops as torch itself does, on a real run on the CPU."""

import gc
import gzip
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.allocations import read, trace_events
from pyprof.analysis.memory import peaks
from tests.commands import run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """Train for three steps; give the trace, and what torch says of each function."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters())
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True
    ) as profiler:
        for _ in range(3):
            with torch.profiler.record_function("my part"):
                loss = model(torch.randn(32, 64)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    path = tmp_path_factory.mktemp("memory") / "net.pt.trace.json"
    profiler.export_chrome_trace(str(path))
    return path, {each.key: each.self_cpu_memory_usage for each in profiler.key_averages()}


def _analysed(path: Path) -> peaks.DeviceMemory:
    (device,) = peaks.highest_first([read.read(path)])
    return device


def test_sums_per_function_equal_those_of_torch(trained: tuple[Path, dict[str, int]]) -> None:
    """What each function allocates less what it gives back, itself."""
    path, expected = trained
    ours = {group.name: group.net_bytes for group in _analysed(path).by["function"]}
    outside = {None: expected.pop("[memory]", 0)}
    assert {name: size for name, size in expected.items() if size} == {
        name: size for name, size in ours.items() if size and name is not None
    }
    assert (ours.get(None) or 0) == outside[None]
    assert any(expected.values())


def test_levels_equal_what_the_allocator_counts(trained: tuple[Path, dict[str, int]]) -> None:
    """After each event, as the event itself says."""
    path, _ = trained
    (device,) = read.read(path).devices
    assert device.history.level.tolist() == trace_events.read(path).allocated.tolist()
    assert device.notes == ()


def test_a_run_on_the_cpu_is_told_in_full(trained: tuple[Path, dict[str, int]]) -> None:
    """Categories by direction and life, ops, three ends of steps at least."""
    device = _analysed(trained[0])
    categories = {group.name for group in device.by["category"]}
    assert categories >= {"gradients", "optimizer state", "activations", "temporaries"}
    assert "linear" in {group.name for group in device.by["op"]}
    assert device.device == "cpu"
    assert sum(group.bytes for group in device.by["op"]) == device.peak_bytes


def _profiled(path: Path, precision: str) -> peaks.DeviceMemory:
    """Train two steps of a model in float32, under autocast, or in bfloat16."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.LayerNorm(256), torch.nn.GELU(), torch.nn.Linear(256, 64)
    )
    x = torch.randn(512, 64)
    if precision == "bfloat16":
        model, x = model.bfloat16(), x.bfloat16()
    optimizer = torch.optim.SGD(model.parameters())
    gc.collect()  # what other tests left is freed before, and not while this is recorded
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True
    ) as profiler:
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
                loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
    profiler.export_chrome_trace(str(path))
    return _analysed(path)


def test_predicted_peaks_in_16_bits_are_those_of_torch(tmp_path: Path) -> None:
    """Within the interval; what has bfloat16 already is not told to take it."""
    found = _profiled(tmp_path / "float32.pt.trace.json", "float32")
    predicted = {each.change: each for each in found.changes}
    named = {"autocast": "autocast to bfloat16", "bfloat16": "the model in bfloat16"}
    for precision, change in named.items():
        real = _profiled(tmp_path / f"{precision}.pt.trace.json", precision)
        low, high = predicted[change].low_bytes, predicted[change].high_bytes
        assert low is not None
        assert high is not None
        assert low <= real.peak_bytes - real.start_bytes <= high  # less what earlier runs left
        assert not {each.change for each in real.changes} & set(named.values())


# --- built traces ---------------------------------------------------------------------------------


def _event(ts: float, size: int, address: int = 16, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    arguments = {"Addr": address, "Bytes": size, "Device Type": 1, "Device Id": 0, **more}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1,
            "tid": 11, "ts": ts, "args": arguments}  # fmt: skip


def _op(name: str, ts: float, dur: float) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 11, "ts": ts, "dur": dur,
            "args": {}}  # fmt: skip


def _written(path: Path, events: list[dict[str, Any]], **how: Any) -> Path:  # noqa: ANN401
    text = json.dumps({"schemaVersion": 1, "traceEvents": events, **how.pop("head", {})}, **how)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_what_was_live_before_counts(tmp_path: Path) -> None:
    """The allocator's total says how much; what is freed later is apart."""
    totals = [{"Total Allocated": n, "Total Reserved": 5000} for n in (1300, 1100, 900)]
    events = [_op("aten::add", 1, 8), _event(2, 300, 16, **totals[0]),
              _event(3, -200, 32, **totals[1]), _event(4, -200, 48, **totals[2])]  # fmt: skip
    device = _analysed(_written(tmp_path / "x.json", events))
    assert (device.device, device.start_bytes, device.start_block_count) == ("cuda:0", 1000, 3)
    assert (device.peak_bytes, device.end_bytes) == (1300, 900)
    assert device.peak_reserved_bytes == 5000
    assert device.notes == ()


def test_events_without_addresses_have_levels(tmp_path: Path) -> None:
    """As torch 1.9 wrote them: the level is exact; what is freed is the last of its size."""
    sizes = [300, 200, -300, 300, -200, -50, 300, -300]
    events = [_op("aten::add", 1, 30)]
    for place, size in enumerate(sizes):
        events.append(_event(2 + place, size))
        del events[-1]["args"]["Addr"]
    (device,) = read.read(_written(tmp_path / "x.json", events)).devices
    assert device.history.start == 50
    assert device.history.level.tolist() == [350, 550, 250, 550, 350, 300, 600, 300]
    assert any("recorded no addresses" in note for note in device.notes)
    assert _analysed(tmp_path / "x.json").peak_bytes == 600


def test_missing_events_are_noted(tmp_path: Path) -> None:
    """Where the allocator counts what no event explains."""
    events = [_op("aten::add", 1, 8), _event(2, 300, 16, **{"Total Allocated": 300}),
              _event(3, 200, 32, **{"Total Allocated": 900})]  # fmt: skip
    (note,) = _analysed(_written(tmp_path / "x.json", events)).notes
    assert "after 1 of 2 events the allocator counts another total" in note


def test_devices_are_apart(tmp_path: Path) -> None:
    """Host memory, and each GPU."""
    events = [_op("aten::add", 1, 9), _event(2, 1), _event(3, 2, **{"Device Id": 1}),
              _event(4, 4, **{"Device Type": 0, "Device Id": -1})]  # fmt: skip
    found = peaks.highest_first([read.read(_written(tmp_path / "x.json", events))])
    assert [(each.device, each.peak_bytes) for each in found] == [
        ("cpu", 4), ("cuda:1", 2), ("cuda:0", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["x.json", pytest.param("x.json.gz", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "how", [pytest.param({}, marks=pytest.mark.slow), {"indent": 1, "sort_keys": True}]
)
def test_every_event_is_found_once(tmp_path: Path, name: str, how: dict[str, Any]) -> None:
    """However the file is laid out, also where blocks are read in the middle of an event."""
    events = [_op("aten::add", 0, 1e6)]
    events += [_event(10 + number, 1 + number, 64 * number) for number in range(40_000)]
    path = _written(tmp_path / name, events, head={"baseTimeNanoseconds": 10**18}, **how)
    found = trace_events.read(path)
    assert found.bytes.tolist() == list(range(1, 40_001))
    assert found.time_ns[0] == 10**18 + 10_000


def test_odd_events_are_left_out(tmp_path: Path) -> None:
    """Without an address, a size or a time nothing can be said; texts of numbers are numbers."""
    odd: list[Any] = [
        _event(1, 0), _event(1, 5, None), _event(float("nan"), 5), _event(1, 1 << 60),  # type: ignore[arg-type]
        {"name": "[memory]", "ph": "i", "ts": 1, "args": {}},
        {"name": "a [memory]", "ph": "i", "ts": 1, "args": {"Bytes": 1, "Addr": 1}},
    ]  # fmt: skip
    good = _event(1, "7", "16")  # type: ignore[arg-type]
    path = _written(tmp_path / "x.json", [_op("aten::add", 1, 8), *odd, good])
    assert trace_events.read(path).bytes.tolist() == [7]


def _tried(text: bytes) -> list[bytes]:
    """Find events as a grammar says it, trying everything."""
    flat, nested = rb"[^{}]{0,4096}", rb"\{[^{}]{0,4096}\}"
    named = flat + rb'"\[memory\]"' + flat
    return re.findall(
        rb"\{" + named + nested + flat + rb"\}|\{" + flat + nested + named + rb"\}", text
    )


@given(
    st.lists(
        st.sampled_from(
            [
                b'{"name":"[memory]","args":{"Bytes":1,"Addr":2}}',
                b'{"args":{"x":"[memory]"},"name":"[memory]"}',
                b'{"args":{"Bytes":1},"name":"[memory]","ts":1}',
                b'{"name":"x","args":{"Dims":[[1]]}}',
                b'{"name":"[memory]"', b'{"a":1,', b"}", b",",
            ]
        ),
        max_size=12,
    )
)  # fmt: skip
def test_events_are_found_among_whatever_there_is(parts: list[bytes]) -> None:
    """The same ones as by trying everything."""
    text = b"".join(parts)
    assert [text[slice(*span)] for span in trace_events._spans(text)] == _tried(text)


def test_names_that_repeat_take_no_time() -> None:
    """Trying everything takes 10 s for them."""
    name = b'"[memory]"'
    assert not [*trace_events._spans((b"{" + name * 400) * 1000)]
    assert not [*trace_events._spans((b"{" + name * 200 + b"{" + b"x" * 4000) * 1000)]
    assert not [*trace_events._spans((b"{" + name) * 50_000)]


def test_memory_without_ops_is_shown(tmp_path: Path) -> None:
    """Also of a trace that was cut, which is noted."""
    path = _written(tmp_path / "x.json", [_op("aten::view", 1, 8), _event(2, 100)])
    assert "Peak: 100 B" in run("memory", path).stdout
    path.write_bytes(path.read_bytes()[:-2])
    assert "the trace is truncated" in run("memory", path).stdout


def test_a_trace_without_memory_is_one_line(tmp_path: Path) -> None:
    """It says how to record some."""
    done = run("memory", _written(tmp_path / "x.json", [_op("aten::add", 1, 8)]))
    assert (done.code, done.stdout) == (1, "")
    assert "profile_memory=True" in done.stderr


def test_sums_by_brute_force(tmp_path: Path) -> None:
    """Every event belongs to the innermost op around it on its thread."""
    ops = [_op("aten::linear", 0, 100), _op("aten::addmm", 10, 50), _op("aten::relu", 200, 50)]
    moments = {5: "aten::linear", 20: "aten::addmm", 60: "aten::addmm", 80: "aten::linear",
               150: None, 210: "aten::relu"}  # fmt: skip
    events = [_event(at, at + 1, 64 * at) for at in moments]
    expected: dict[str | None, int] = defaultdict(int)
    for at, name in moments.items():
        expected[name] += at + 1
    device = _analysed(_written(tmp_path / "x.json", [*ops, *events]))
    assert {group.name: group.net_bytes for group in device.by["function"]} == expected
