"""Reads a trace: gathers its events block by block, and makes a Capture of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof import schema
from pyprof.errors import CaptureError
from pyprof.readers import refusals
from pyprof.readers.kineto.file.stream import Trace
from pyprof.readers.kineto.gather import gather, rank
from pyprof.readers.kineto.graphs import captures
from pyprof.schema import Identity

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.schema import Capture


def read(path: Path) -> Capture:
    """Read a trace. Raises CaptureError if it has neither GPU work nor ops of torch.profiler."""
    gathered = gather(path)
    if gathered.is_jax:
        raise CaptureError(f"{path}: {refusals.JAX}")
    if "span_indx" in gathered.trace.header:
        raise CaptureError(f"{path}: {refusals.PADDLE}")
    if gathered.empty and gathered.unknown:
        raise CaptureError(f"{path}: {gathered.unknown[0]}; PyProf reads traces of torch.profiler")
    if gathered.empty and gathered.trace.cut:
        raise CaptureError(f"{path}: {schema.TRUNCATED}")
    if gathered.lacks_pairs:
        raise CaptureError(
            f"{path}: another tool rewrote this trace: its events are pairs of a begin and an end "
            "(ph B and E); name the file that torch.profiler wrote"
        )
    if gathered.empty:
        raise CaptureError(
            f"{path}: no GPU work and no ops of torch.profiler in this trace; "
            "record the part of the script that uses tensors, and with a schedule write the trace"
            " in on_trace_ready: torch clears it after each cycle"
        )
    return captures.attached(gathered.capture(), path, gathered.captured())


def identity(path: Path) -> Identity:
    """Read the rank, which precedes the events."""
    trace = Trace(path)
    trace.open()
    return Identity(rank=rank(trace.header))
