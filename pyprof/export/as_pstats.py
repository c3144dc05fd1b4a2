"""GPU time by Python stack, op and kernel, for pstats and snakeviz.

The format is what `cProfile.Profile.dump_stats` writes: a marshalled dict from (file, line, name)
to (primitive calls, calls, own time, cumulative time, callers), times in seconds. An activity
counts as a call; own time is the kernels'.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from pyprof.analysis.summary import stacks
from pyprof.analysis.summary.stacks import NO_FILE, Frame, StackSums
from pyprof.inputs.user_source import LineNames, Sources
from pyprof.prof.processor import processor_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyprof.inputs.source import Source

K = TypeVar("K")

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
    edges: dict[tuple[Frame, Frame], Entry] = defaultdict(lambda: [0] * 4)
    names = LineNames(None if folder is None else Sources(folder))
    for stack, (time_ns, calls) in sums.items():
        named = tuple(
            frame._replace(name=names.name(frame.file, frame.line)) if frame.line else frame
            for frame in stack
        )
        _add(frames, named, calls, time_ns)
        _add(edges, [*pairwise(named)], calls, time_ns)
    callers: dict[Frame, dict[tuple[object, ...], object]] = defaultdict(dict)
    for (caller, callee), entry in edges.items():
        callers[callee][tuple(caller)] = _seconds(entry)
    profile = {tuple(frame): (*_seconds(entry), callers[frame]) for frame, entry in frames.items()}
    marshal.dump(profile, file, _VERSION)


def _add(entries: dict[K, Entry], keys: Sequence[K], calls: int, time_ns: int) -> None:
    """Add a stack to its frames, or to its edges; a recursive one counts once."""
    for key in keys:
        entries[key][1] += calls
    for key in set(keys):
        entries[key][0] += calls
        entries[key][3] += time_ns
    if keys:
        entries[keys[-1]][2] += time_ns


def _seconds(entry: Entry) -> tuple[int, int, float, float]:
    primitive, calls, own, cumulative = entry
    return int(primitive), int(calls), own * _NS, cumulative * _NS
