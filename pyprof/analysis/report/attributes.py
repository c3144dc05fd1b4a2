"""What selections on the page are made from: time by everything that identifies a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.analysis.summary.layer_tree import layer_path
from pyprof.analysis.summary.source_lines import user_lines
from pyprof.answers.page.report_answer import ATTRIBUTES, STACK_SEPARATOR
from pyprof.prof.columns.column_values import format_distinct
from pyprof.records.records import combinations, totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import IntArray, Mask
    from pyprof.prof.table import Table


@dataclass(frozen=True, slots=True)
class RowAttributes:
    """The distinct combinations of a table's texts, and the combination of each row."""

    combinations: pa.Table
    """ATTRIBUTES, and the time (`ns`) and number (`rows`) of the rows that were chosen."""
    of_row: IntArray

    @property
    def chosen(self) -> pa.Table:
        """The combinations that chosen rows have."""
        rows = np.asarray(self.combinations.column("rows"))
        return self.combinations.filter(pa.array(rows > 0))


def row_attributes(table: Table, rows: Mask | None = None) -> RowAttributes:
    """Number the combinations of all rows; sum up all rows, or those chosen."""
    derived = {
        "stack": format_distinct(table.own_or_forward("trace"), _format_stack),
        "layer": format_distinct(
            table.own_or_forward("layer"), lambda names: ".".join(layer_path(names)) or None
        ),
    }
    columns = {
        name: derived[name] if name in derived else table.dictionary_array(name)
        for name in ATTRIBUTES
    }
    first, of_row = combinations(
        *(column.indices.fill_null(-1).to_numpy() for column in columns.values())
    )
    count = len(first)
    texts = {
        name: column.take(pa.array(first)).cast(pa.string()) for name, column in columns.items()
    }
    chosen = slice(None) if rows is None or rows.all() else rows
    ns = totals(of_row[chosen], table.duration_ns[chosen], count)
    number = np.bincount(of_row[chosen], minlength=count)
    return RowAttributes(pa.table({**texts, "ns": ns, "rows": number}), of_row)


def _format_stack(frames: Sequence[str]) -> str | None:
    lines = dict.fromkeys(f"{path}:{number}" for path, number in user_lines(frames))
    return STACK_SEPARATOR.join(line.replace(STACK_SEPARATOR, " ") for line in lines) or None
