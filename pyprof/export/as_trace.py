"""Timeline for Perfetto, chrome://tracing and readers of torch.profiler's traces.

Chrome's JSON, which Perfetto opens under any name: its own protobuf would need another package and
hold no more. Times are in µs from `baseTimeNanoseconds`. Flows lead from each launch to its kernel.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import orjson
import pyarrow.compute as pc

from pyprof.errors import RecordsError
from pyprof.export import trace_gpu, trace_host, trace_lines
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyprof.export import Part
    from pyprof.inputs.source import Source

KIND = "events"
SUFFIXES = (".pt.trace.json", ".pt.trace.json.gz", ".perfetto", ".perfetto.gz", ".perfetto-trace")

_BATCH_ROWS = 1 << 16


def write(source: Source, file: BinaryIO) -> None:
    """Write the trace; raises RecordsError for records without times, such as the original's."""
    if "start" not in source.table.records.columns:
        raise RecordsError(
            "these records have no start times, so there is no timeline; parse the capture again"
        )
    begin_ns = _begin(source)
    devices = [
        {"id": row["device"], "name": row["name"], "numSms": row["sm_count"],
         "computeMajor": row["cc_major"], "computeMinor": row["cc_minor"],
         "totalGlobalMem": row["memory_bytes"]}
        for row in source.table.source.devices.to_pylist()
    ]  # fmt: skip
    file.write(_head(begin_ns, devices))
    separator = ""
    for group in _events(source, begin_ns):
        texts = [text for text in group if text is not None]  # nulls are not events
        if texts:
            file.write((separator + ",\n".join(texts)).encode())
            separator = ",\n"
    file.write(_END)


def join(parts: Sequence[Part], file: BinaryIO) -> None:
    """Concatenate the events of captures, with the rank on each process.

    Times are those of each host's clock. If captures share process numbers, later ones are
    renumbered; flows and op calls continue their numbering.
    """
    heads = [trace_lines.head(each.path) for each in parts]
    begin_ns = min(head["baseTimeNanoseconds"] for head in heads)
    devices = [device for head in heads for device in head["deviceProperties"]]
    file.write(_head(begin_ns, devices))
    separator = b""
    numbers = trace_lines.Numbers()
    for each, head in zip(parts, heads, strict=True):
        renumber = numbers.of_next(head["baseTimeNanoseconds"] - begin_ns)
        for block in trace_lines.events(each.path):
            file.write(separator + renumber(block))
            separator = b",\n"
        file.writelines(separator + label.encode() for label in numbers.labels(each.name))
        numbers.after(each.counts)
    file.write(_END)


def _head(begin_ns: int, devices: Sequence[object]) -> bytes:
    """Write everything before the events, on one line."""
    head = orjson.dumps(
        {
            "schemaVersion": 1,
            "writer": f"pyprof {__version__}",
            "displayTimeUnit": "ns",
            "baseTimeNanoseconds": begin_ns,
            "deviceProperties": devices,
        }
    )
    return head[:-1] + b',"traceEvents":[\n'


_END = b"\n]}\n"


def _begin(source: Source) -> int:
    """Return the earliest time of all, so that no time of the trace is negative."""
    if not source.table.records.rows:
        return 0
    firsts = [int(source.table.records.numpy("start").min())]
    launch = source.table.records.arrow("launch").flatten()
    firsts.append(pc.min(launch).as_py() if len(launch) else firsts[0])
    if source.capture:
        for frame in (source.capture.calls, source.capture.ranges):
            firsts += [pc.min(frame.column("start")).as_py()] if frame.num_rows else []
    return min(firsts)


def _events(source: Source, begin_ns: int) -> Iterator[Iterable[str | None]]:
    table, capture = source.table, source.capture
    tracks = trace_gpu.tracks(table)
    yield trace_host.described(table.records, capture)
    yield trace_gpu.described(table, tracks)
    arrays = chain(
        trace_host.calls(capture, begin_ns)
        if capture
        else trace_host.launches(table.records, begin_ns),
        trace_host.ranges(capture, begin_ns) if capture else (),
        trace_gpu.work(table, tracks, begin_ns, ops_on_host=capture is not None),
        trace_gpu.arrows(table, tracks, begin_ns),
    )
    for array in arrays:
        for start in range(0, len(array), _BATCH_ROWS):
            yield array.slice(start, _BATCH_ROWS).to_pylist()
    yield trace_gpu.spans(table, tracks, begin_ns)
