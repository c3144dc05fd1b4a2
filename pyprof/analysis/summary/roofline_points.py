"""Sums up what ops achieve below the roofs of their device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.summary.overview import gpus
from pyprof.analysis.time.steps import chosen_rows
from pyprof.answers.page.roofline_answer import Chart, Point, Roof
from pyprof.arrays import ratio_if_known
from pyprof.errors import PyprofError
from pyprof.gpu.roofline import NS_PER_S
from pyprof.prof.group import add_up_rows
from pyprof.prof.kernels.counter_rates import dram_bytes
from pyprof.prof.processor import processor
from pyprof.quantities import number
from pyprof.records.merging import add_up, first, merge_unique, merged_by
from pyprof.records.records import time_by_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from pyprof.arrays import Floats, Int64Array, Mask
    from pyprof.inputs.source import Source
    from pyprof.prof.table import KernelClass, Table

_KEYS = ("op", "dir", "kernel", "bound")
_KEYS_BY_LINE = (*_KEYS, "line")
_SUMS = dict.fromkeys(
    ("ns", "flops", "bytes", "eff_ns", "eff_known_ns", "dram", "dram_flops"), "sum"
)


@dataclass(frozen=True, slots=True)
class Achieved:
    """What a roofline is drawn from: sums over rows. Those of several captures add up."""

    ops: pa.Table
    """A row for each op by kernel and line that does arithmetic on memory; see `_KEYS_BY_LINE`
    and `_SUMS`."""
    whole_ns: int
    """Time of all rows."""
    roofs: Mapping[Roof, int]
    """Time in ns of the arithmetic that is measured against each."""


def achieved(table: Table, rows: Mask | None) -> Achieved:
    """Total all rows, or those chosen."""
    chosen = np.ones(len(table.duration_ns), bool) if rows is None else rows
    costs = table.costs
    works = chosen & (costs.flops > 0) & (costs.bytes > 0) & (table.duration_ns > 0)
    keys = {name: table.dictionary_array(name) for name in _KEYS_BY_LINE}
    ops = add_up_rows(keys, _numbers(table), works)
    roofs = table.classified.map(_roof)
    times = time_by_value(roofs, table.duration_ns, chosen & (costs.flops > 0))
    return Achieved(
        ops,
        int(table.duration_ns[chosen].sum()),
        {roof: time.ns for roof, time in times.items() if roof and time.ns},
    )


def _numbers(table: Table) -> Iterator[tuple[str, Int64Array | Floats]]:
    """Yield the columns that `_SUMS` names, in that order, with a value for each row."""
    costs, share = table.costs, table.roofline.share
    yield "ns", table.duration_ns
    yield "flops", costs.flops.astype(float)
    yield "bytes", costs.bytes.astype(float)
    yield "eff_ns", np.where(np.isnan(share), 0, share * table.duration_ns)
    yield "eff_known_ns", table.duration_ns * ~np.isnan(share)
    traffic = dram_bytes(table)
    is_measured = np.isfinite(traffic)
    yield "dram", np.where(is_measured, traffic, 0.0)
    yield "dram_flops", np.where(is_measured, costs.flops, 0.0)


def _roof(classified: KernelClass) -> Roof | None:
    flops, memory = classified.flops_peak, classified.bandwidth_peak
    if flops is None or memory is None:
        return None
    return Roof(flops.value, memory.value, f"{number(flops.value / 1e12)} TFLOP/s {flops.label}")


def points(achieved: Achieved, limit: int) -> list[Point]:
    """Return at most `limit` ops by kernel, the longest first."""
    order = [("ns", "descending"), *((name, "ascending") for name in _KEYS)]
    summed = add_up(achieved.ops, _KEYS, _SUMS).sort_by(order)
    # the lines of each point, the slowest first
    lines_of: dict[tuple[str | None, ...], list[str | None]] = {}
    rows = achieved.ops.sort_by([("ns", "descending"), ("line", "ascending")])
    for *key, line in zip(*(rows.column(name).to_pylist() for name in _KEYS_BY_LINE), strict=True):
        lines_of.setdefault(tuple(key), []).append(line)
    return [
        Point(
            op=row["op"],
            dir=row["dir"],
            kernel=row["kernel"],
            bound=row["bound"],
            line=lines[0],
            lines=len(lines),
            efficiency=ratio_if_known(row["eff_ns"], row["eff_known_ns"]),
            intensity=row["flops"] / row["bytes"],
            flops_per_s=row["flops"] / row["ns"] * NS_PER_S,
            bytes_per_s=row["bytes"] / row["ns"] * NS_PER_S,
            time_ns=row["ns"],
            share=row["ns"] / max(achieved.whole_ns, 1),
            measured=ratio_if_known(row["dram_flops"], row["dram"]),
        )
        for row in summed.slice(0, limit).to_pylist()
        for lines in [lines_of[tuple(row[name] for name in _KEYS)]]
    ]


def roofs(achieved: Achieved) -> list[Roof]:
    """Return the peaks that the rows are measured against, those with most time first."""
    ordered = sorted(achieved.roofs, key=lambda roof: (-achieved.roofs[roof], roof.label))
    by_peaks: dict[tuple[float, float], Roof] = {}
    for roof in ordered:
        by_peaks.setdefault((roof.flops_per_s, roof.bytes_per_s), roof)
    return list(by_peaks.values())[:_MAX_ROOFS]


_MAX_ROOFS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineSums:
    """What a chart is made from, small enough to send; several captures make one."""

    gpus: tuple[str | None, ...] = merged_by(merge_unique)
    asked: str | None = merged_by(first)
    """The device whose peaks are used instead of those of `gpus`."""
    achieved: Achieved
    warnings: tuple[str, ...] = merged_by(merge_unique)

    def chart(self, limit: int) -> Chart:
        """Return the ops that compute on data in memory, at most `limit`.

        Raises PyprofError if there is none: an op needs FLOPs and bytes, both known.
        """
        op_points = points(self.achieved, limit)
        if not op_points:
            raise PyprofError(
                "no op in this file has known FLOPs and bytes; see the column why of pyprof prof"
            )
        names = ", ".join(name for name in self.gpus if name) or "a GPU without a name"
        title = f"{names}, against {self.asked}" if self.asked else names
        return Chart(title, op_points, roofs(self.achieved), processor(self.gpus))


def summarise_roofline(source: Source, chosen: str | None = None) -> RooflineSums:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter if `chosen` names no step.
    """
    table = source.table
    op_work = achieved(table, chosen_rows(source, chosen))
    return RooflineSums(
        gpus=gpus(source),
        asked=table.override.gpu,
        achieved=op_work,
        warnings=(*table.source.warnings, *table.doubts),
    )
