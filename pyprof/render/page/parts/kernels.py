"""The kernels and copies that take most time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyprof.analysis.summary import op_totals
from pyprof.records.merging import merged_by
from pyprof.render.page import sections

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyprof.render.page.parts import Page, PartInput

TITLE, ORDER = "Kernels", 110


def _both(a: Mapping[str, str], b: Mapping[str, str]) -> Mapping[str, str]:
    return {**b, **a}


@dataclass(frozen=True, slots=True)
class Kernels:
    """What the table is made from."""

    sums: pa.Table
    """`op_totals.sums` by `sections.KERNELS`."""
    full_names: Mapping[str, str] = merged_by(_both)
    """By the short name of a kernel."""


def summarise(gathered: PartInput) -> Kernels:
    """Sum up the chosen rows by kernel."""
    table = gathered.source.table
    sums = op_totals.sums(table, sections.KERNELS, gathered.overview.rows)
    return Kernels(sums, sections.full_names(table))


def section(page: Page) -> Mapping[str, Any]:
    """Return the table of kernels."""
    kernels: Kernels = page.data
    return {"kernels": sections.kernels(kernels.sums, kernels.full_names, page.selectable)}
