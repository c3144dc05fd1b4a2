"""Collapsed stacks with their time in ns, for flame graphs: flamegraph.pl, inferno, speedscope.

A line is a stack, outermost frame first, frames separated by semicolons, then a blank and the
weight. Frames are lines of Python, the op and the kernel.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, BinaryIO

from pyprof import sanitize
from pyprof.analysis.summary import stacks
from pyprof.analysis.summary.stacks import NO_FILE, StackSums
from pyprof.inputs.user_source import LineNames, Sources

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.analysis.summary.stacks import Frame
    from pyprof.inputs.source import Source

KIND = "sums"
SUFFIXES = (".collapsed", ".folded")
OPTIONS = ("folder",)


def sums(source: Source) -> StackSums:
    """Sum up a capture."""
    return stacks.sums(source.table)


def write(sums: StackSums, file: BinaryIO, *, folder: Path | None = None) -> None:
    """Write each stack that took time on a line, sorted by text.

    With `folder`, lines of Python are named by their function in the source there, else by their
    text.
    """
    names = LineNames(None if folder is None else Sources(folder))
    weight_ns: Counter[str] = Counter()
    for stack, (time_ns, _) in sums.items():
        weight_ns[";".join(_text(frame, names, named=folder is not None) for frame in stack)] += (
            time_ns
        )
    lines = (f"{stack} {ns}\n" for stack, ns in sorted(weight_ns.items()) if ns)
    file.writelines(line.encode() for line in lines)


def _text(frame: Frame, names: LineNames, *, named: bool) -> str:
    """Write a frame without the separators of frames."""
    if frame.file == NO_FILE:
        text = frame.name
    else:
        text = f"{frame.file}:{frame.line}" if frame.line else frame.file
        if named and frame.line:
            text = f"{names.name(frame.file, frame.line)} ({text})"
    return sanitize.single_line(text).replace(";", ",")
