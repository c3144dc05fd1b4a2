"""Steps, idle time, calls and advice of a run in CUDA graphs: a replay is one launch."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyprof import readers
from pyprof.analysis.advice import RuleContext, advise
from pyprof.analysis.time import host_api
from pyprof.analysis.time.host_api import CALL_KINDS, LAUNCH
from pyprof.analysis.time.idle import GRAPH, QUEUE
from pyprof.analysis.time.steps import find_steps
from pyprof.analysis.time.timeline import timeline
from pyprof.marker import Call, Tensor, encode_layer, encode_op
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.records.records import Records
from pyprof.schema import Capture
from tests.builders import Node, Range, Work, nsys_db
from tests.commands import printed, run
from tests.known import known as there

SHAPES = Tensor((64, 64), "float16"), Tensor((64, 64), "float16")
MM, ADD = (encode_op(Call("torch", name, SHAPES)) for name in ("mm", "add"))
CAPTURED = [
    Range(encode_layer("net"), (10, 90)), Range(MM, (20, 30)), Range(ADD, (40, 60)),
]  # fmt: skip
NODES = [Node(1, 25), Node(2, 45), Node(3, 55)]
NAMES = ("gemm", "elementwise_kernel", "elementwise_kernel")


def replays(count: int, every: int = 10_000, gap: int = 30) -> list[Work]:
    """Replay a graph of three kernels, of 100 ns each and with a gap between, at equal times."""
    work = []
    for number in range(count):
        at = 1000 + every * number
        for place, name in enumerate(NAMES):
            start = at + 500 + (100 + gap) * place
            work.append(
                Work(name, (start, start + 100), (at, at + 400) if not place else None,
                     corr=number + 1, api="cudaGraphLaunch_v10000", node=place + 1)
            )  # fmt: skip
    return work


def read(folder: Path, work: list[Work], *ranges: Range) -> tuple[Records, Capture]:
    capture = readers.read(nsys_db(folder / "a.sqlite", work, [*CAPTURED, *ranges], nodes=NODES))
    return parse(capture), capture


def test_a_replay_is_a_step_not_its_kernels(tmp_path: Path) -> None:
    """Equal kernels within one replay, launched at one instant, are not steps of 0 ns."""
    repeated = [replace(w, name="same") for w in replays(6)]
    for work in (replays(6), repeated):
        records, capture = read(tmp_path, work)
        found = find_steps(records, capture)
        assert found.origin == "repetition of 3 kernels"
        assert len(found) == 6
        assert found.of_row.tolist() == np.repeat(np.arange(6), 3).tolist()
        assert (found.duration_ns > 0).all()


def test_replays_are_steps_of_each_process(tmp_path: Path) -> None:
    """Two processes that replay the same graph at once: each replay is a step of both."""
    both = [replace(w, name="same", pid=pid, tid=10 + pid) for pid in (1, 2) for w in replays(6)]
    found = find_steps(parse(readers.read(nsys_db(tmp_path / "a.sqlite", both))))
    assert (found.origin, len(found)) == ("repetition of 3 kernels", 6)
    assert (found.duration_ns > 0).all()


def test_kernels_between_replays_belong_to_the_step(tmp_path: Path) -> None:
    """A loop of two graphs and a sampling kernel is the period, not one of the graphs."""
    work = []
    for number, entry in enumerate(replays(12)):
        work.append(replace(entry, name=f"{entry.name}{entry.corr % 2}"))  # type: ignore[operator]
        if entry.node == 3 and entry.corr % 2 == 0:  # type: ignore[operator]
            end = entry.at[1]
            work.append(
                Work("sample", (end + 200, end + 300), (end + 50, end + 60), corr=900 + number)
            )
    found = find_steps(*read(tmp_path, work))
    assert found.origin == "repetition of 7 kernels"
    assert len(found) in {5, 6}


def test_gaps_inside_a_replay_are_the_graphs(tmp_path: Path) -> None:
    records, capture = read(tmp_path, replays(4))
    for known in (capture, None):
        (device,) = there(timeline(records, known)).devices
        assert device.idle[GRAPH].total == 4 * 2 * 30
        assert device.idle[QUEUE].total == 3 * 100  # from each launch's return to its first kernel
        assert sum(times.total for times in device.idle.values()) == device.idle_ns


def test_gaps_between_replays_have_causes_of_the_host(tmp_path: Path) -> None:
    """Also those before or after another launch's work."""
    other = Work("other", (1700, 1800), (1650, 1660), corr=77, stream=9)
    records, capture = read(tmp_path, [*replays(1, gap=1000), other])
    (device,) = there(timeline(records, capture)).devices
    assert device.idle[GRAPH].total == 1000  # the second of two gaps


def test_a_replay_is_one_call(tmp_path: Path) -> None:
    """Also in records; a copy in a graph is no API call."""
    work = [replace(w, kind="memcpy") if w.node == 1 else w for w in replays(4)]
    records, capture = read(tmp_path, work)
    launch = CALL_KINDS.index(LAUNCH)
    for known in (capture, None):
        assert host_api.calls(records, known).kind_of_call.tolist() == [launch] * 4


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("source", ["a.sqlite", "a.dict"])
def test_a_trace_has_each_launch_once(tmp_path: Path, source: str) -> None:
    read(tmp_path, replays(4))
    assert run("parse", tmp_path / "a.sqlite", "-o", tmp_path / "a.dict").code == 0
    assert run("export", tmp_path / source, "-o", tmp_path / "out.pt.trace.json").code == 0
    events = json.loads((tmp_path / "out.pt.trace.json").read_text())["traceEvents"]
    assert sum(event.get("cat") == "cuda_runtime" for event in events) == 4


def test_a_late_replay_is_not_launch_bound(tmp_path: Path) -> None:
    records, capture = read(tmp_path, replays(40, every=1000))
    table = Table(records)
    for known in (capture, None):
        context = RuleContext(table, timeline(records, known), known)
        named = {entry.rule for entry in advise(context)}
        assert "launch_bound" not in named


@pytest.mark.slow
def test_the_summary_counts_how_ops_were_found(tmp_path: Path) -> None:
    """If not all by their launch; the shares are of GPU time."""
    eager = Work("gemm", (200, 300), (22, 24), corr=99)
    lost = [Work("x", (90_000, 90_100), (89_000, 89_010), corr=98, api="cudaGraphLaunch", node=77)]
    read(tmp_path, [eager, *replays(1), *lost])
    done = run("summary", tmp_path / "a.sqlite")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Ops by"))
    assert line.split(maxsplit=2)[2] == "launch 20.0 %, graph node 60.0 %, not found 20.0 %"
    assert "1 of 4 kernels and copies that CUDA graphs replayed" in done.stderr
    read(tmp_path, [eager])
    assert "Ops by" not in run("summary", tmp_path / "a.sqlite").stdout


def test_layers_and_lines_have_the_time_of_all_replays(tmp_path: Path) -> None:
    read(tmp_path, replays(4))
    tree = run("summary", "--by", "layer", tmp_path / "a.sqlite").stdout
    (net,) = (line for line in tree.splitlines() if line.strip().startswith("net "))
    assert net.split()[2] == "100.0"
    assert net.split()[-1] == "12"


@pytest.mark.long
def test_a_graphed_run_is_compared_with_an_eager_one(tmp_path: Path) -> None:
    """Op by op: time, FLOPs and layer are the same; differences are listed."""
    layer, mm, add = CAPTURED
    eager, ranges = [], []
    for number, entry in enumerate(replays(4)):
        replay, place = divmod(number, 3)
        by = 1000 + 10_000 * replay
        if not place:
            ranges += [replace(r, at=(r.at[0] + by, (r.at[1] or 0) + by)) for r in (layer, mm, add)]
        call = by + (22, 45, 55)[place]
        eager.append(
            replace(entry, call=(call, call + 2), corr=number, api="cudaLaunchKernel", node=None)
        )
    nsys_db(tmp_path / "eager.sqlite", eager, ranges)
    read(tmp_path, replays(4))
    assert "no op changed" in printed("diff", tmp_path / "eager.sqlite", tmp_path / "a.sqlite")
    slower = [replace(w, at=(w.at[0], w.at[1] + 200)) if w.node == 1 else w for w in replays(4)]
    read(tmp_path, slower)
    (line,) = (text for text in run("diff", tmp_path / "eager.sqlite", tmp_path / "a.sqlite")
               .stdout.splitlines() if text.startswith("mm ") and "slower" in text)  # fmt: skip
    assert "+200.0 %" in line
