"""Tables of each rank, concatenated rank by rank, and the collectives of all as NumPy.

They grow with the number of collectives and layers, not with that of kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.ops.torch.collectives import ALL_REDUCE, ONE_WAY
from pyprof.records.merging import merged_by, rows_of_both
from pyprof.records.records import DictionaryColumn, number_combinations

if TYPE_CHECKING:
    from pyprof.answers.ranks_answer import RankUse
    from pyprof.arrays import IntArray

_TEXT = pa.dictionary(pa.int32(), pa.string())

LAYERS = pa.schema({"rank": pa.int64(), "layer": _TEXT, "gpu_ns": pa.int64()})
"""One row per layer of a rank: the summed time of its own rows, communication left out."""

SIGNATURES = pa.schema(
    {
        "rank": pa.int32(),
        "stream": pa.int64(),
        "kind": _TEXT,  # as ops.collectives.kind has it; null: unknown
        "algorithm": _TEXT,  # RING, TREE; null: unknown
        "group": _TEXT,  # the process group as the capture names it; null: it does not
        "members": _TEXT,  # the ranks in it, as the capture writes them
        "size": pa.int32(),  # the number of ranks in it
        "bytes": pa.int64(),  # algorithm bytes
        "description": _TEXT,  # what the process group is for, as described by its creator
        "total_ns": pa.int64(),  # of all its kernels on the rank, overlaps counted once
        "exposed_ns": pa.int64(),  # of that, while nothing was computed
        "received_bytes": pa.int64(),  # by all calls; null: unknown for any
    }
)
"""One row per kind of collective of a rank; training repeats itself, so they are few."""

COLLECTIVES = pa.schema(
    {
        "rank": pa.int32(),
        "signature": pa.int32(),  # which of the rank's rows in `SIGNATURES`
        "start_ns": pa.int64(),  # on the rank's own clock
        "end_ns": pa.int64(),
        "step": pa.int32(),  # null: in none
    }
)
"""One row per kernel of a collective, in GPU-start order: 28 bytes, for there are very many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A rank, with its clock and steps."""

    number: int
    clock: str
    """Equal for ranks whose times come from one clock."""
    origin: str
    """How steps were found; "" for none."""
    own_ns: float | None
    """Median step after warm-up without exposed communication; None without steps."""
    own_low_ns: float | None
    """Lower quartile of the same."""
    gpus: tuple[RankUse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTables:
    """One rank or many: times, tables, and sentences about their captures."""

    ranks: tuple[Rank, ...]
    layers: pa.Table = merged_by(rows_of_both)
    signatures: pa.Table = merged_by(rows_of_both)
    collectives: pa.Table = merged_by(rows_of_both)
    warnings: tuple[tuple[str, str], ...] = ()
    """Whose capture, and what it hides or distorts."""


def table(columns: pa.Schema, rank: int, length: int, **values: object) -> pa.Table:
    """Make a table of the facts of one rank."""
    return schema.table(columns, {"rank": np.full(length, rank), **values}, length)


_EVEN = (ALL_REDUCE, ONE_WAY, "reduce")
"""Every rank contributes the same number of bytes; in other kinds, ranks' pieces may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signatures:
    """What collectives are, one entry per kind of a rank; MISSING if unknown."""

    rank: IntArray
    stream: IntArray
    kind: DictionaryColumn
    algorithm: DictionaryColumn
    group: DictionaryColumn
    members: DictionaryColumn
    size: IntArray
    bytes: IntArray
    description: DictionaryColumn
    total_ns: IntArray
    exposed_ns: IntArray
    received_bytes: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """One entry per collective of a rank, ordered by rank and by start within each."""

    rank: IntArray
    start_ns: IntArray
    end_ns: IntArray
    step: IntArray
    """MISSING: in none."""
    signature: IntArray
    """Entry of `signatures`."""
    signatures: Signatures
    same: IntArray
    """Per signature; equal where ranks can be in the same collective."""

    @classmethod
    def from_tables(cls, facts: RankTables) -> Collectives:
        """Take the collectives in the order of ranks, whatever the order of the captures."""
        table = facts.collectives
        rank = _ints(table.column("rank"))
        if (np.diff(rank) < 0).any():
            table = table.take(pa.array(np.argsort(rank, kind="stable")))
            rank = _ints(table.column("rank"))
        columns: dict[str, Any] = {
            each.name: (_dictionary if each.type == _TEXT else _ints)(
                facts.signatures.column(each.name)
            )
            for each in SIGNATURES
        }
        signatures = Signatures(**columns)
        even = np.where(signatures.kind.is_in(*_EVEN), signatures.bytes, MISSING)
        # each rank counts its own signatures: number them over all ranks
        order = np.argsort(signatures.rank, kind="stable")
        last = int(signatures.rank.max(initial=-1))
        first = np.searchsorted(signatures.rank[order], np.arange(last + 1))
        signature = order[first[rank] + _ints(table.column("signature"))]
        return cls(
            rank=rank,
            start_ns=_ints(table.column("start_ns")),
            end_ns=_ints(table.column("end_ns")),
            step=_ints(table.column("step")),
            signature=np.asarray(signature, np.int32),
            signatures=signatures,
            same=number_combinations(signatures.kind.index, signatures.algorithm.index, even),
        )

    def of_row(self, row: int) -> int:
        """Return the entry of `signatures` of a collective."""
        return int(self.signature[row])

    def rank_of(self, rows: IntArray) -> int:
        """Return the rank whose rows these are."""
        return int(self.rank[rows[0]])

    def name_of(self, rows: IntArray) -> str:
        """Name the process group of some rows, or the stream that stands for it."""
        one = self.of_row(rows[0])
        name = self.signatures.group.at(one)
        return f"stream {self.signatures.stream[one]}" if name is None else str(name)


def _ints(column: pa.ChunkedArray) -> IntArray:
    return np.asarray(pc.fill_null(column, MISSING).to_numpy())


def _dictionary(column: pa.ChunkedArray) -> DictionaryColumn:
    """Number texts in sorted order, so that the order of captures has no effect."""
    unified = column.unify_dictionaries()
    if not unified.num_chunks:
        return DictionaryColumn(np.zeros(0, np.int32), [])
    names = unified.chunk(0).dictionary.to_pylist()
    index = np.argsort(np.argsort(np.array(names, object), kind="stable")).astype(np.int32)
    indices = [pc.fill_null(chunk.indices, MISSING).to_numpy() for chunk in unified.chunks]
    codes = np.append(index, np.int32(MISSING))[np.concatenate(indices)]
    return DictionaryColumn(codes, sorted(names))
