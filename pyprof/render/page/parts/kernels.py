"""The kernels and copies that take most time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyprof.analysis.summary import op_totals
from pyprof.records.merging import merged_by
from pyprof.records.records import distinct
from pyprof.render.page.tables import (
    TENSOR_CORES,
    amount,
    of_numbers,
    of_texts,
    rate,
    share,
    sortable,
    tensor_cores,
    text,
    time,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyprof.analysis.summary.op_totals import Total
    from pyprof.prof.table import Table
    from pyprof.render.page.parts import Page, PartInput
    from pyprof.render.page.tables import Column

TITLE, ORDER = "Kernels", 110
_KEYS = ("kernel", "op", "tc")
_MAX_ROWS = 500


def _both(a: Mapping[str, str], b: Mapping[str, str]) -> Mapping[str, str]:
    return {**b, **a}


@dataclass(frozen=True, slots=True)
class Kernels:
    """What the table is made from."""

    sums: pa.Table
    """`op_totals.sums` by `_KEYS`."""
    full_names: Mapping[str, str] = merged_by(_both)
    """By the short name of a kernel."""


def summarise(gathered: PartInput) -> Kernels:
    """Sum up the chosen rows by kernel."""
    table = gathered.source.table
    return Kernels(op_totals.sums(table, _KEYS, gathered.overview.rows), _full_names(table))


def _full_names(table: Table) -> dict[str, str]:
    full, short = (table.records.dictionary(name) for name in ("kLongName", "kShortName"))
    rows, _ = distinct(short.index)
    pairs = zip(short.index[rows].tolist(), full.index[rows].tolist(), strict=True)
    return {
        short.values[index].replace(" ", "_"): full.values[name]
        for index, name in sorted(pairs)
        if index >= 0 and name >= 0
    }


def section(page: Page) -> Mapping[str, Any]:
    """Return the table of kernels; the full name shows under the pointer."""
    kernels: Kernels = page.data
    full = kernels.full_names
    columns: Sequence[Column[Total]] = (
        (of_texts("kernel"), lambda one: text(one.key[0], note=full.get(one.key[0] or "", ""))),
        (of_numbers("time", "time", "ns"), lambda one: time(one.time_ns)),
        (of_numbers("share", "share", "%"), lambda one: share(one.share)),
        (of_texts("op"), lambda one: text(one.key[1])),
        (of_numbers("calls"), lambda one: amount(one.calls)),
        (of_numbers("mean", "mean", "ns"), lambda one: time(one.time_ns / one.calls)),
        (of_numbers("TFLOP/s", "tflops"), lambda one: rate(one.flops_per_s, 1e12)),
        (of_numbers("GB/s", "gbs"), lambda one: rate(one.bytes_per_s, 1e9)),
        (TENSOR_CORES, lambda one: tensor_cores(one.key[2])),
    )

    def key(one: Total) -> str | None:
        return page.selectable.key(**dict(zip(_KEYS, one.key, strict=True)))

    totals = op_totals.totals(kernels.sums)
    table = sortable(totals, columns, _MAX_ROWS, time_ns=lambda one: one.time_ns, key=key)
    return {"kernels": table}
