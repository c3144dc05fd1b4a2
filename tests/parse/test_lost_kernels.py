"""Launches whose kernels are missing are counted only if records were lost."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pyprof.errors import CaptureError
from pyprof.parse import parse_file
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.readers.kineto_json import event, kernel, launch, op, text, trace_file

COUNT, US = 40, 1_000
TOLD = "launches have no kernel in the capture"


def launched(count: int = COUNT, *, lag: int = 2 * US, stream: int = 7) -> list[Work]:
    """Launch a kernel every 10 us; each begins `lag` ns after its launch."""
    return [
        Work(at=(at + lag, at + lag + 5 * US), call=(at, at + US), stream=stream)
        for at in range(1_000 * US, (1_000 + 10 * count) * US, 10 * US)
    ]


def without(work: Sequence[Work], lost: Collection[int]) -> list[Work]:
    """Leave only the launch of some kernels."""
    return [replace(w, kind="call") if n in lost else w for n, w in enumerate(work)]


def call(api: str, at: int) -> Work:
    """Call the API without any GPU work, at a time in us."""
    return Work(kind="call", call=(at * US, at * US + 100), api=api)


def warnings(path: Path, work: Iterable[Work]) -> list[str]:
    """Parse a capture of this work; return the warnings about missing kernels."""
    nsys_db(path / "net.sqlite", work, [Range("step", (0, 10**9))])
    return [said for said in parse_file(path / "net.sqlite").warnings if "launche" in said]


@pytest.mark.slow
def test_lost_kernels_are_counted(tmp_path: Path) -> None:
    (said,) = warnings(tmp_path, without(launched(), range(3, 33, 3)))
    assert said.startswith(f"10 of 38 {TOLD}, although later kernels were recorded: another")
    path = tmp_path / "net.sqlite"
    assert f"- 10 of 38 {TOLD}" in run("doctor", path).stdout
    assert f"10 of 38 {TOLD}" in run("summary", path).stderr
    for command in ("doctor", "summary"):
        assert f"10 of 38 {TOLD}" in run(command, "--json", path).stdout


END = range(COUNT - 12, COUNT)
CAPTURING = [call("cudaStreamBeginCapture_v10000", 1099), call("cudaStreamEndCapture_v10000", 1201)]
PAUSED = [call("cudaProfilerStop_v4000", 1099), call("cudaProfilerStart_v4000", 1201)]
INNER = without([replace(w, api="cuLaunchKernel", call=(w.call[0] + 10, w.call[0] + 90))
                 for w in launched() if w.call], range(COUNT))  # fmt: skip
FITTING = {
    "none is missing": launched(),
    "they ran after the recording": without(launched(), END),
    "they were launched before any other": without(launched(), range(12)),
    "two may be chance": without(launched(), {20, 21}),
    "a stream was behind when the recording ended": [
        *without(launched(lag=300 * US), END),
        *(replace(work, tid=12) for work in launched(stream=8)),
    ],
    "a graph was captured": [*without(launched(), range(10, 20)), *CAPTURING],
    "its capture began before the recording": [
        *without(launched(), range(3, 20)), CAPTURING[1]
    ],
    "the profiler was paused": [*without(launched(), range(10, 20)), *PAUSED],
    "the driver's call is inside the runtime's": [*launched(), *INNER],
    "what launches no kernel": [*launched(), *(call("cudaLaunchHostFunc", at)
                                               for at in range(1005, 1300, 10))],
}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("work", FITTING.values(), ids=FITTING.keys())
def test_a_few_launches_without_kernels_are_not_a_loss(
    tmp_path: Path, work: Sequence[Work]
) -> None:
    assert warnings(tmp_path, work) == []


def test_a_stream_that_was_done_hides_no_loss(tmp_path: Path) -> None:
    """Only a stream that was behind at the end may have kernels left to run."""
    early = launched(5, stream=8)
    (said,) = warnings(tmp_path, [*without(launched(), range(20, 30)), *early])
    assert said.startswith("10 of ")


def test_each_process_ends_for_itself(tmp_path: Path) -> None:
    """One that was recorded for longer says nothing about the launches of another."""
    short = [replace(w, pid=2, tid=22) for w in without(launched(), END)]
    assert warnings(tmp_path, [*launched(), *short]) == []


def test_all_kernels_are_lost(tmp_path: Path) -> None:
    path = nsys_db(tmp_path / "net.sqlite", without(launched(), range(COUNT)), [Range("a", (0, 9))])
    with pytest.raises(CaptureError) as raised:
        parse_file(path)
    said = f"kernels were launched ({COUNT}), but none was recorded: another profiler"
    assert said in str(raised.value)
    assert f"- {said}" in run("doctor", path).stdout
    assert "no GPU work" not in run("summary", path).stderr


def test_all_kernels_are_lost_but_not_the_copies(tmp_path: Path) -> None:
    copy = replace(launched(1)[0], kind="memcpy", api="cudaMemcpyAsync_v3020")
    (said,) = warnings(tmp_path, [*without(launched(), range(COUNT)), copy])
    assert f"kernels were launched ({COUNT}), but none was recorded" in said
    assert warnings(tmp_path, [copy]) == []


def trace(folder: Path, lost: Collection[int], *, cut: bool = False) -> Path:
    """Write a trace of torch.profiler that lacks some kernels, and perhaps its end."""
    events = []
    for n in range(COUNT):
        at = 100 * n
        events += [op("aten::relu", at, 50, External_id=n + 1), launch(n + 1, at + 5)]
        events += [kernel(n + 1, at + 20, 10)] if n not in lost else []
    path = folder / "net.json"
    content = text(events)
    path.write_text(content[: content.rindex("}", 0, -40)] if cut else content)
    return path


def test_torch_profiler_lost_kernels(tmp_path: Path) -> None:
    some = parse_file(trace(tmp_path, range(3, 33, 3))).warnings
    assert any(said.startswith(f"10 of 38 {TOLD}") for said in some)


def test_ops_that_only_launched_lost_kernels_are_not_cpu_work(tmp_path: Path) -> None:
    """Their time is that of the launch: rates from it would be absurd."""
    with pytest.raises(CaptureError, match=rf"kernels were launched \({COUNT}\), but none was"):
        parse_file(trace(tmp_path, range(COUNT)))
    with pytest.raises(CaptureError, match="truncated before any GPU work"):
        parse_file(trace(tmp_path, range(COUNT), cut=True))


def test_a_truncated_trace_has_no_lost_kernels(tmp_path: Path) -> None:
    """The profiler did not lose what a killed job never wrote."""
    said = " ".join(parse_file(trace(tmp_path, range(3, 33, 3), cut=True)).warnings)
    assert "truncated" in said
    assert TOLD not in said


def test_graph_launches_count_if_nothing_was_recorded(tmp_path: Path) -> None:
    """A trace of replays without any kernel is that of a script that used the GPU."""
    replays = [
        event("cuda_runtime", "cudaGraphLaunch", 10 * n, 1, correlation=n) for n in range(1, 5)
    ]
    path = trace_file(tmp_path, [op("aten::relu", 0, 50, External_id=1), *replays])
    (said,) = run("doctor", "--json", path).json["pitfalls"][:1]
    assert said.startswith("kernels were launched (4), but none was recorded")
