"""Memory events of torch.profiler, tied to ops as in torch, for a real run on the CPU."""

from pathlib import Path

import numpy as np
import pytest

from pyprof import readers
from pyprof.allocations import read, trace_events, trace_history
from pyprof.allocations.stacks import FrameHint
from pyprof.analysis.memory import peaks
from pyprof.answers.memory_answer import DeviceMemory
from pyprof.arrays import MISSING
from tests import forks
from tests.allocations.traces import event, written
from tests.readers.kineto_json import op


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """Train for three steps; return the trace, and torch's own count of bytes by function."""
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


def _analysed(path: Path) -> DeviceMemory:
    (device,) = peaks.highest_first([read.read(path)])
    return device


def test_sums_per_function_equal_those_of_torch(trained: tuple[Path, dict[str, int]]) -> None:
    """What each function itself allocates, less what it frees."""
    path, expected = trained
    ours = {group.name: group.net_bytes for group in _analysed(path).by["function"]}
    outside = {None: expected.pop("[memory]", 0)}
    assert {name: size for name, size in expected.items() if size} == {
        name: size for name, size in ours.items() if size and name is not None
    }
    assert (ours.get(None) or 0) == outside[None]
    assert any(expected.values())


@pytest.mark.slow
def test_levels_equal_what_the_allocator_counts(trained: tuple[Path, dict[str, int]]) -> None:
    path, _ = trained
    (device,) = read.read(path).devices
    assert device.history.level.tolist() == trace_events.read(path).allocated.tolist()
    assert device.notes == ()


def test_a_run_on_the_cpu_has_categories_ops_and_steps(
    trained: tuple[Path, dict[str, int]],
) -> None:
    device = _analysed(trained[0])
    categories = {group.name for group in device.by["category"]}
    assert categories >= {"gradients", "optimizer state", "activations", "temporaries"}
    assert "linear" in {group.name for group in device.by["op"]}
    assert device.device == "cpu"
    assert sum(group.bytes for group in device.by["op"]) == device.peak_bytes


_TRAINING = """
import torch
from torch.profiler import ProfilerActivity, profile

for precision in ("float32", "autocast", "bfloat16"):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.LayerNorm(256), torch.nn.GELU(), torch.nn.Linear(256, 64)
    )
    x = torch.randn(512, 64)
    if precision == "bfloat16":
        model, x = model.bfloat16(), x.bfloat16()
    optimizer = torch.optim.SGD(model.parameters())
    activities = [ProfilerActivity.CPU]
    with profile(activities=activities, profile_memory=True, record_shapes=True) as profiler:
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
                loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
    profiler.export_chrome_trace(precision + ".pt.trace.json")
    del model, x, optimizer, loss
"""


@pytest.mark.slow
def test_predicted_peaks_in_16_bits_are_those_of_torch(tmp_path: Path) -> None:
    """Within the interval; a bfloat16 model gets no such advice.

    The training runs in its own process, so that other tests' frees are not recorded.
    """
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(_TRAINING)
    done = forks.python(script, cwd=tmp_path)
    assert not done.returncode, done.stderr
    found = _analysed(tmp_path / "float32.pt.trace.json")
    predicted = {each.change: each for each in found.changes}
    named = {"autocast": "autocast to bfloat16", "bfloat16": "the model in bfloat16"}
    for precision, change in named.items():
        real = _analysed(tmp_path / f"{precision}.pt.trace.json")
        low, high = predicted[change].low_bytes, predicted[change].high_bytes
        assert low is not None
        assert high is not None
        assert low <= real.peak_bytes - real.start_bytes <= high  # less what earlier runs left
        assert not {each.change for each in real.changes} & set(named.values())


def test_memory_live_before_the_recording_counts(tmp_path: Path) -> None:
    """From the allocator's total; what is freed later is separate."""
    totals = [{"Total Allocated": n, "Total Reserved": 5000} for n in (1300, 1100, 900)]
    events = [op("aten::add", 1, 8), event(2, 300, 16, **totals[0]),
              event(3, -200, 32, **totals[1]), event(4, -200, 48, **totals[2])]  # fmt: skip
    device = _analysed(written(tmp_path / "x.json", events))
    assert (device.device, device.start_bytes, device.start_block_count) == ("cuda:0", 1000, 3)
    assert (device.peak_bytes, device.end_bytes) == (1300, 900)
    assert device.peak_reserved_bytes == 5000
    assert device.notes == ()


def test_events_without_addresses_have_levels(tmp_path: Path) -> None:
    """As in torch 1.9: the level is exact, and a free is of the last block of its size."""
    sizes = [300, 200, -300, 300, -200, -50, 300, -300]
    events = [op("aten::add", 1, 30)]
    for place, size in enumerate(sizes):
        events.append(event(2 + place, size))
        del events[-1]["args"]["Addr"]
    (device,) = read.read(written(tmp_path / "x.json", events)).devices
    assert device.history.start == 50
    assert device.history.level.tolist() == [350, 550, 250, 550, 350, 300, 600, 300]
    assert any("recorded no addresses" in note for note in device.notes)
    assert _analysed(tmp_path / "x.json").peak_bytes == 600


def test_missing_events_are_noted(tmp_path: Path) -> None:
    """If the allocator's count contains what no event explains."""
    events = [op("aten::add", 1, 8), event(2, 300, 16, **{"Total Allocated": 300}),
              event(3, -300, 16, **{"Total Allocated": 0}),
              event(4, 200, 32, **{"Total Allocated": 900})]  # fmt: skip
    (note,) = _analysed(written(tmp_path / "x.json", events)).notes
    assert "after 1 of 3 events the allocator counts another total" in note


def test_a_tensor_made_of_nothing_outside_of_layers_may_be_a_parameter(tmp_path: Path) -> None:
    """In a recording of a whole script: no evidence says that it belongs to a forward pass."""
    events = [op("aten::empty", 1, 2), event(2, 4000), op("aten::mm", 4, 4), event(5, 300, 32)]
    device = _analysed(written(tmp_path / "x.json", events))
    assert {group.name: group.bytes for group in device.by["category"]} == {
        None: 4000, "activations": 300,
    }  # fmt: skip


def test_the_host_reserves_nothing(tmp_path: Path) -> None:
    """Of memory shared with workers, torch writes the size as the total that is reserved."""
    host = {"Device Type": 0, "Device Id": -1}
    events = [op("aten::add", 1, 8), event(2, 300, **host, **{"Total Reserved": 0}),
              event(3, 100, 32, **host, **{"Total Reserved": 100})]  # fmt: skip
    device = _analysed(written(tmp_path / "x.json", events))
    assert (device.peak_bytes, device.peak_reserved_bytes) == (400, None)


def test_host_and_gpus_are_separate(tmp_path: Path) -> None:
    events = [op("aten::add", 1, 9), event(2, 1), event(3, 2, **{"Device Id": 1}),
              event(4, 4, **{"Device Type": 0, "Device Id": -1})]  # fmt: skip
    found = peaks.highest_first([read.read(written(tmp_path / "x.json", events))])
    assert [(each.device, each.peak_bytes) for each in found] == [
        ("cpu", 4), ("cuda:1", 2), ("cuda:0", 1),
    ]  # fmt: skip


def test_moments_are_in_the_op_that_began_last_of_two_at_once_in_the_first_threads(
    tmp_path: Path,
) -> None:
    """Between ops they are in none, and the block's purpose is unknown."""
    ops = [op("aten::one", 10, 10), op("aten::late", 30, 5)]
    ops += [op(name, at, 10) | {"tid": 12} for name, at in _OF_ANOTHER_THREAD.items()]
    capture = readers.read(written(tmp_path / "x.json", ops))
    sites = trace_history.sites_at(capture, np.array([15, 25, 32, 55]) * 1000)
    names = [*sites.function.names, None]
    found = [names[code] for code in sites.function.codes.tolist()]
    assert found == ["aten::one", None, "aten::late", _ACCUMULATES]
    clues = trace_history.clues(sites, np.array([0, 1, 3, MISSING]))
    assert clues.tolist() == [FrameHint.FORWARD, 0, FrameHint.BACKWARD | FrameHint.ACCUMULATES, 0]


_ACCUMULATES = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
_OF_ANOTHER_THREAD = {"aten::two": 10, _ACCUMULATES: 50}
