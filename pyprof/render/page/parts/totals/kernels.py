"""The kernels and copies that take most time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

    from pyprof.answers.page.report_answer import KernelTime
    from pyprof.render.page.parts import Page
    from pyprof.render.page.tables import Column

TITLE, ORDER = "Kernels", 110
_MAX_ROWS = 500


def section(page: Page) -> Mapping[str, Any]:
    """Return the table of kernels; the full name shows under the pointer."""
    columns: Sequence[Column[KernelTime]] = (
        (of_texts("kernel"), lambda one: text(one.kernel, note=one.full_name)),
        (of_numbers("time", "time", "ns"), lambda one: time(one.time_ns)),
        (of_numbers("share", "share", "%"), lambda one: share(one.share)),
        (of_texts("op"), lambda one: text(one.op)),
        (of_numbers("calls"), lambda one: amount(one.calls)),
        (of_numbers("mean", "mean", "ns"), lambda one: time(one.time_ns / one.calls)),
        (of_numbers("TFLOP/s", "tflops"), lambda one: rate(one.flops_per_s, 1e12)),
        (of_numbers("GB/s", "gbs"), lambda one: rate(one.bytes_per_s, 1e9)),
        (TENSOR_CORES, lambda one: tensor_cores(one.tc)),
    )

    def key(one: KernelTime) -> str | None:
        return page.selectable.key(kernel=one.kernel, op=one.op, tc=one.tc)

    kernels = page.report.kernels
    table = sortable(kernels, columns, _MAX_ROWS, time_ns=lambda one: one.time_ns, key=key)
    return {"kernels": table}
