"""Traces of graphs as literals: their captures and their replays."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyprof import readers
from pyprof.parse import parse
from pyprof.records.records import Records
from tests.readers.kineto_json import Event, event, kernel, launch, op, text, trace_file


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
    return trace_file(folder, main)


PLAIN = (Node("my::a", "first"), Node("my::b", "second"), Node("my::c", "first"))
STEP = "step[DECODE bs=8]"


def details(**sizes: int) -> list[dict[str, object]]:
    """List files of captures, each of a batch size."""
    return [
        {"file": f"{name}.json", "batch_size": size, "mode": "FULL"} for name, size in sizes.items()
    ]


def records(path: Path, *, kernels_only: bool = False) -> Records:
    return parse(readers.read(path), kernels_only=kernels_only)


def rows(path: Path) -> list[dict[str, Any]]:
    return records(path).table().to_pylist()  # type: ignore[no-any-return]


def ops(path: Path) -> list[str | None]:
    """Return the innermost op of each row."""
    return [row["op"][-1] if row["op"] else None for row in rows(path)]


def unattributed(path: Path, *said: str) -> None:
    """Check that no kernel of PLAIN has an op, and that warnings say why."""
    parsed = records(path)
    entries = parsed.table().to_pylist()
    assert [row["op"] for row in entries] == [[]] * len(PLAIN)
    assert {row["via"] for row in entries} <= {None, "user range"}  # no op
    warned = " ".join(parsed.warnings)
    assert all(text in warned for text in said), warned


LAYERS = [
    Node(f"my::{name}_{layer}", name) for layer in range(6) for name in ("norm", "qkv", "mlp")
] + [Node("my::head", "head"), Node("my::sample", "sample")]


def eager(ops: Sequence[str], names: Sequence[str], at: float, corr: int) -> list[Event]:
    events = []
    for place, (name, run) in enumerate(zip(ops, names, strict=True)):
        now = at + 20 * place
        ran = kernel(corr + place, now + 8, 4, name=run)
        ran["args"] |= {"block": [64, 1, 1]}
        events += [op(name, now, 15, External_id=corr + place), launch(corr + place, now + 2), ran]
    return events


LONG = PLAIN * 3
"""As many kernels as are needed to distinguish sequences."""


def eager_long(
    at: float = 100, corr: int = 1, ops: Sequence[str] = ("my::a", "my::b", "my::c")
) -> list[Event]:
    """Write the kernels of LONG outside of graphs, by these ops in turn."""
    return eager([*ops] * 3, [node.kernel for node in LONG], at, corr)
