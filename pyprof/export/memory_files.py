"""Live memory at the peaks of devices, or at another moment: blocks as CSV, collapsed stacks."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from pyprof import sanitize
from pyprof.answers.memory_answer import HeldBlock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.answers.memory_answer import Memory


def as_csv(rows: Iterable[tuple[int | None, str, HeldBlock]]) -> bytes:
    """Write the live blocks, each with its rank and device."""
    names = [field.name for field in fields(HeldBlock)]
    lines = (
        (rank, device, *(getattr(block, name) for name in names)) for rank, device, block in rows
    )
    text = sanitize.csv_text([("rank", "device", *names), *lines])
    return text.encode(errors="backslashreplace")


_NO_STACK = "(no stack)"


def as_collapsed(answer: Memory) -> bytes:
    """Write a line per call stack for flame graphs: frames from the outermost, then bytes.

    With several devices, the device is the outermost frame.
    """
    lines = []
    for device in answer.devices:
        rank = [] if device.rank is None else [f"rank {device.rank}"]
        root = [", ".join([*rank, device.device])] if len(answer.devices) > 1 else []
        for stack in (device if device.at is None else device.at).stacks:
            frames = [*root, *(stack.frames or (_NO_STACK,))]
            text = ";".join(sanitize.single_line(frame).replace(";", ",") for frame in frames)
            lines.append(f"{text} {stack.bytes}\n")
    return "".join(sorted(lines)).encode(errors="backslashreplace")
