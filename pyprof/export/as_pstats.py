"""GPU time by Python stack, op and kernel, for pstats and snakeviz.

The format is what `cProfile.Profile.dump_stats` writes: a marshalled dict from (file, line, name)
to (primitive calls, calls, own time, cumulative time, callers), times in seconds. An activity
counts as a call; own time is the kernels'.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

from pyprof.analysis.summary import stacks
from pyprof.analysis.summary.stacks import NO_FILE, Frame, StackSums
from pyprof.inputs.user_source import LineNames, Sources
from pyprof.prof.processor import processor_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.analysis.summary.stacks import Stack
    from pyprof.inputs.source import Source

KIND = "sums"
SUFFIXES = (".prof", ".pstats")
OPTIONS = ("folder",)

_NS = 1e-9
_VERSION = 2
"""The last format of marshal that writes equal values as equal bytes."""

Entry = list[float]
"""Primitive calls, calls, own ns, cumulative ns."""


def sums(source: Source) -> StackSums:
    """Sum up a capture, below a root that names the processor."""
    root = Frame(NO_FILE, 0, f"<{processor_of(source.table.records)} time>")
    return {(root, *stack): total for stack, total in stacks.sums(source.table).items()}


def write(sums: StackSums, file: BinaryIO, *, folder: Path | None = None) -> None:
    """Write the profile; its total is the summed time.

    Lines are named by their function in the source below `folder`, else by their text.
    """
    frames: dict[Frame, Entry] = defaultdict(lambda: [0] * 4)
    edges: dict[Frame, dict[Frame, Entry]] = defaultdict(lambda: defaultdict(lambda: [0] * 4))
    names = LineNames(None if folder is None else Sources(folder))
    for stack, (time_ns, calls) in sums.items():
        named = tuple(
            frame._replace(name=names.name(frame.file, frame.line)) if frame.line else frame
            for frame in stack
        )
        _add(named, calls, time_ns, frames, edges)
    marshal.dump(
        {
            tuple(frame): (
                *_seconds(entry),
                {tuple(f): _seconds(e) for f, e in edges[frame].items()},
            )
            for frame, entry in frames.items()
        },
        file,
        _VERSION,
    )


def _add(
    stack: Stack,
    calls: int,
    time_ns: int,
    frames: dict[Frame, Entry],
    edges: dict[Frame, dict[Frame, Entry]],
) -> None:
    """Add a stack to its frames and edges; a recursive frame or edge counts once."""
    for frame in stack:
        frames[frame][1] += calls
    for frame in set(stack):
        frames[frame][0] += calls
        frames[frame][3] += time_ns
    frames[stack[-1]][2] += time_ns
    pairs = list(pairwise(stack))
    for caller, callee in pairs:
        edges[callee][caller][1] += calls
    for caller, callee in set(pairs):
        edges[callee][caller][0] += calls
        edges[callee][caller][3] += time_ns
    if pairs:
        edges[stack[-1]][stack[-2]][2] += time_ns


def _seconds(entry: Entry) -> tuple[int, int, float, float]:
    primitive, calls, own, cumulative = entry
    return int(primitive), int(calls), own * _NS, cumulative * _NS
