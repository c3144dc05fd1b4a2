"""Numbers that run on from rank to rank: of rows and of op calls, as if one file held them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyprof.prof.table import Table


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of each some rows have used up; those of several captures add up."""

    rows: int = 0
    calls: int = 0

    def plus(self, other: Counts) -> Counts:
        """Count those of other rows, too."""
        return Counts(self.rows + other.rows, self.calls + other.calls)

    def before(self, data: pa.Table) -> pa.Table:
        """Let the numbers of some columns go on behind these."""
        for name, first in (("idx", self.rows), ("opid", self.calls)):
            if first and name in data.column_names:
                moved = pc.add(data.column(name), first)
                data = data.set_column(data.column_names.index(name), name, moved)
        return data


def counts(table: Table) -> Counts:
    """Count the rows and the op calls of a capture."""
    return Counts(table.records.rows, int(table.costs.call.max(initial=-1)) + 1)


def run_on(parts: Iterable[tuple[pa.Table, Counts]]) -> Iterator[pa.Table]:
    """Let the numbers of each part go on behind those of the ones before."""
    so_far = Counts()
    for data, used in parts:
        yield so_far.before(data)
        so_far = so_far.plus(used)
