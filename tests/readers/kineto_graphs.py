"""Traces of graphs as literals: how they were captured, and how they were replayed."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.readers.kineto_json import Event, event, op, text


@dataclass(frozen=True)
class Node:
    """A kernel of a graph, and the op that launched it while the graph was captured."""

    op: str
    kernel: str = "gemm"
    stream: int = 7
    grid: tuple[int, int, int] = (4, 2, 1)
    sizes: tuple[int, ...] = (16, 16)
    lost: bool = False
    """The capture has no launch of it."""


@dataclass
class Replay:
    nodes: Sequence[Node]
    order: Sequence[int] = ()
    """In which order they begin; as they were captured where nothing is given."""
    lost: frozenset[int] = field(default_factory=frozenset)
    """Places of kernels that the trace does not hold."""


def captured(graphs: Iterable[Sequence[Node]], *, named: bool = True, at: float = 0) -> list[Event]:
    """Write the events of a trace in which graphs are captured; AMD's calls name their kernels."""
    events, now, corr = [], at, 0
    vendor = "hip" if named else "cuda"
    for nodes in graphs:
        for suffix, inside in (("BeginCapture", nodes), ("EndCapture", ())):
            corr, now = corr + 1, now + 10
            events.append(_call(f"{vendor}Stream{suffix}", now, corr))
            for node in inside:
                corr, now = corr + 1, now + 10
                sizes = [list(node.sizes)] * 2
                told = {"External id": corr, "Input Dims": sizes, "Input type": ["float"] * 2}
                events.append(op(node.op, now, 8, **told))
                size = {"kernel": node.kernel, "grid": [*node.grid], "block": [64, 1, 1]}
                if not node.lost:
                    call = _call(f"{vendor}LaunchKernel", now + 3, corr, **(size if named else {}))
                    events.append(call)
    return events


def _call(name: str, ts: float, corr: int, **args: object) -> Event:
    return event("cuda_runtime", name, ts, 1, correlation=corr, **args)


def replayed(
    steps: Iterable[tuple[str, Sequence[Replay]]], *, amd: bool = True, graph: int = 0
) -> list[Event]:
    """Write the events of a trace in which graphs are replayed, each step in a range of its name.

    AMD's kernels have no grid; NVIDIA's have one and, where `graph` is given, the number of their
    node in that graph and those after it.
    """
    events, now, corr = [], 1e6, 100_000
    for name, replays in steps:
        begun = now
        for number, replay in enumerate(replays):
            now, corr = now + 1000, corr + 1
            events.append(_call("hipGraphLaunch" if amd else "cudaGraphLaunch", now, corr))
            for place, which in enumerate(replay.order or range(len(replay.nodes))):
                node = replay.nodes[which]
                args: dict[str, object] = {"device": 0, "stream": node.stream, "correlation": corr}
                if not amd:
                    args |= {"grid": [*node.grid], "block": [64, 1, 1]}
                if graph:
                    args["graph node id"] = (graph + number << 32) + which + 1
                ran = event("kernel", node.kernel, now + 10 + 5 * place, 4, pid=0, tid=7, **args)
                if which not in replay.lost:
                    events.append(ran)
        now += 2000
        if name:
            events.append(event("user_annotation", name, begun + 1, now - begun - 2))
    return events


def write(
    folder: Path, main: list[Event], captures: dict[str, list[Event]], details: object = None
) -> Path:
    beside = folder / "capture_traces"
    beside.mkdir(parents=True, exist_ok=True)
    for name, events in captures.items():
        (beside / name).write_text(text(events))
    if details is not None:
        (beside / "execution_details.json").write_text(json.dumps(details))
    path = folder / "replay.json"
    path.write_text(text(main))
    return path
