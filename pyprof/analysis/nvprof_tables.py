"""nvprof's two tables, from any capture: where GPU time went, and where API time went.

For a capture without a GPU, the first lists the ops on the CPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import readers, schema
from pyprof.answers.prof_answer import SECTIONS, NvprofLine, NvprofTables
from pyprof.errors import CaptureError
from pyprof.parse import parse
from pyprof.parse.record_file import STDIN, load
from pyprof.process.messages import warn
from pyprof.prof.processor import CPU, processor_of

if TYPE_CHECKING:
    from pyprof.records.records import Records


def nvprof_tables(source: str, *, quiet: bool = False) -> NvprofTables:
    """Tabulate a capture; for records, which hold no API calls, only the GPU activities.

    Warns on stderr that API calls are missing, unless `quiet`.
    """
    path = Path(source)
    if source == STDIN or not readers.is_capture(path):
        tables = _activities(load(source))
        if not quiet:
            warn(["records have no API calls; use the capture itself to see them"])
        return NvprofTables(tuple(tables))
    capture = readers.read(path)
    tables = _activities(parse(capture)) if capture.activities.num_rows else []
    work = capture.activities
    ops = work.filter(pc.equal(work.column("kind"), schema.CPU)).column("corr")
    calls = capture.calls.filter(pc.invert(pc.is_in(capture.calls.column("corr"), ops)))
    duration = pc.subtract(calls.column("end"), calls.column("start"))
    tables += _section(SECTIONS[2], calls.column("name").cast(pa.string()), duration)
    if not tables:
        raise CaptureError(f"{source}: contains neither GPU work nor API calls; capture again")
    return NvprofTables(tuple(tables))


def _activities(records: Records) -> list[NvprofLine]:
    section = SECTIONS[processor_of(records) == CPU]
    return _section(section, records.arrow("kLongName"), records.arrow("kDuration"))


def _section(section: str, names: pa.Array, duration: pa.Array) -> list[NvprofLine]:
    measures = [("ns", name) for name in ("sum", "mean", "min", "max")]
    ones = np.ones(len(names), np.int64)
    rows = pa.table({"name": names, "ns": duration, "row": ones})
    sums = rows.group_by("name", use_threads=False).aggregate([*measures, ("row", "sum")])
    total_ns = max(pc.sum(sums.column("ns_sum")).as_py() or 0, 1)
    ordered = sums.sort_by([("ns_sum", "descending"), ("name", "ascending")]).to_pylist()
    return [
        NvprofLine(
            section=section,
            name=row["name"],
            share=None if row["ns_sum"] is None else 100 * row["ns_sum"] / total_ns / 100,
            total_ns=row["ns_sum"],
            calls=row["row_sum"],
            mean_ns=row["ns_mean"],
            min_ns=row["ns_min"],
            max_ns=row["ns_max"],
        )
        for row in ordered
    ]
