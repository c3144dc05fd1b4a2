"""From a `Capture` to records: every piece of GPU work tied to the op that caused it.

Knows neither the tool that captured nor what an op costs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.errors import CaptureError
from pyprof.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyprof.records.records import Records
    from pyprof.schema import Capture

__all__ = ["parse", "parse_file", "parse_with_host"]


def parse(capture: Capture, *, kernels_only: bool = False, raw: bool = True) -> Records:
    """Tie every activity of a capture to its op, layer, source line and forward op.

    One record per activity, in GPU-start order; `kernels_only` leaves out copies, sets and graphs.
    `raw` is that of `parse_with_host`.
    """
    from pyprof.parse.assemble import assemble  # noqa: PLC0415 - NumPy and Arrow take time to load

    return assemble(capture, kernels_only=kernels_only, raw=raw)


def parse_file(path: Path, *, kernels_only: bool = False, raw: bool = True) -> Records:
    """Read and parse a capture; `raw` is that of `parse_with_host`.

    Raises CaptureError if it holds no GPU work or, with `kernels_only`, no kernels.
    """
    records = parse(_read_with_work(path), kernels_only=kernels_only, raw=raw)
    if not records.rows:
        raise CaptureError(f"{path}: no kernels, only copies; parse it without --kernels-only")
    return records


def parse_with_host(
    path: Path, begin: Callable[[str], object] = str, *, raw: bool = True
) -> tuple[Records, Capture]:
    """Read and parse a capture; also return its host side: the capture without GPU work.

    Calls `begin` when parsing begins. Without `raw`, texts are left out that costs, columns and
    frames do not need. Raises CaptureError if the capture holds no GPU work.
    """
    from pyprof.schema import ACTIVITIES  # noqa: PLC0415 - loads Arrow

    capture = _read_with_work(path)
    host = replace(capture, activities=ACTIVITIES.empty_table())
    begin("parsing")
    return parse(capture, raw=raw), host


def _read_with_work(path: Path) -> Capture:
    """Read a capture; raise CaptureError if it holds no GPU work."""
    from pyprof import readers  # noqa: PLC0415 - as above

    capture = readers.read(path)
    if not capture.activities.num_rows:
        raise CaptureError(f"{path}: {describe_no_work(capture)}")
    return capture


def describe_no_work(capture: Capture) -> str:
    """Say what a capture without GPU work holds, and how to capture some."""
    from pyprof import schema  # noqa: PLC0415 - loads Arrow
    from pyprof.parse.steps.profiler_windows import processes  # noqa: PLC0415 - as above
    from pyprof.readers.kernel_launches import none_recorded  # noqa: PLC0415 - as above

    if schema.TRUNCATED in capture.warnings:
        return schema.TRUNCATED
    if lost := none_recorded(capture.calls, processes(capture)):
        return lost
    advice = {
        "nsys": "capture with nsys profile -t cuda,nvtx on a machine with a GPU",
        "nvprof": "capture with nvprof --profile-from-start on, on a machine with a GPU",
        "rocpd": "capture with rocprofv3 --kernel-trace on a machine with a GPU",
    }.get(
        capture.tool,
        "record with ProfilerActivity.CUDA, or with CPU if there is no GPU; with a schedule, write"
        " the trace in on_trace_ready: torch clears it after each cycle",
    )
    ranges = capture.ranges.num_rows
    content = f"only {counted(ranges, 'range')}" if ranges else "nothing useful"
    if capture.traced_ops:
        content = f"only {capture.traced_ops:,} {schema.TRACED}"
        advice = "run the model on real tensors while recording"
    return f"no GPU work was captured ({content}); {advice}"
