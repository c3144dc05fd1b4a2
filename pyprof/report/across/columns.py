"""The table of collectives as NumPy: times, and numbers that stand for texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.report.across.placing import Placed

    Ints = NDArray[np.int64]

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Columns:
    """One entry per collective of a rank; UNKNOWN where nothing tells."""

    rank: Ints
    stream: Ints
    start_ns: Ints
    end_ns: Ints
    step: Ints
    size: Ints
    bytes: Ints
    kind: Ints
    kinds: list[str]
    algorithm: Ints
    algorithms: list[str]
    group: Ints
    groups: list[str]
    members: Ints
    sort: Ints
    """Equal where kind, algorithm and bytes are."""

    @classmethod
    def of(cls, table: pa.Table) -> Columns:
        """Take the columns of `facts.COLLECTIVES`."""
        kind, kinds = _coded(table.column("kind"))
        algorithm, algorithms = _coded(table.column("algorithm"))
        group, groups = _coded(table.column("group"))
        members, _ = _coded(table.column("members"))
        moved = _ints(table.column("bytes"))
        numbers = {
            name: _ints(table.column(name))
            for name in ("rank", "stream", "start_ns", "end_ns", "step", "size")
        }
        return cls(
            **numbers, bytes=moved, kind=kind, kinds=kinds, algorithm=algorithm,
            algorithms=algorithms, group=group, groups=groups, members=members,
            sort=numbered(kind, algorithm, moved),
        )  # fmt: skip

    def rank_of(self, one: Placed) -> int:
        """Give the rank whose rows these are."""
        return int(self.rank[one.rows[0]])

    def name_of(self, one: Placed) -> str:
        """Name the process group of some rows, or the stream that stands for it."""
        row = one.rows[0]
        return (
            self.groups[self.group[row]] if self.group[row] >= 0 else f"stream {self.stream[row]}"
        )

    def text(self, names: list[str], code: int) -> str | None:
        """Give the text that a number stands for."""
        return names[code] if code >= 0 else None


def numbered(*columns: Ints) -> Ints:
    """Number the combinations of values, in the order of their appearance."""
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values = pa.array(column).dictionary_encode()
        found = found * len(values.dictionary) + values.indices.to_numpy()
        found = np.asarray(pa.array(found).dictionary_encode().indices.to_numpy(), np.int64)
    return found


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(pc.fill_null(column.cast(pa.int64()), UNKNOWN).to_numpy(), np.int64)


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Number texts; in the order of the texts, so that the order of captures decides nothing."""
    unified = column.unify_dictionaries()
    if not unified.num_chunks:
        return np.zeros(0, np.int64), []
    names = unified.chunk(0).dictionary.to_pylist()
    place = np.argsort(np.argsort(np.array(names, object), kind="stable"))
    indices = [pc.fill_null(chunk.indices, UNKNOWN).to_numpy() for chunk in unified.chunks]
    codes = np.append(place, UNKNOWN)[np.concatenate(indices)]
    return np.asarray(codes, np.int64), sorted(names)
