"""What is stated around kernels: distinct contexts are numbered, so that each is looked at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.marker import Statement, statement
from pyprof.ops.registry import BPROP
from pyprof.ops.work import EMPTY_CONTEXT, CallContext
from pyprof.records.records import DictionaryColumn, first_rows, number_combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import IntArray
    from pyprof.records.records import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelContext:
    """What ranges state around a kernel, and around its forward call."""

    markers: tuple[Statement, ...]
    seqs: tuple[Statement, ...]
    """PyTorch's own ranges, without their numbers."""
    fwd_markers: tuple[Statement, ...] = ()
    fwd_seqs: tuple[Statement, ...] = ()
    backward: bool = False
    order: tuple[int, ...] = ()
    """Positions of markers and then seqs, outermost first."""
    on_cpu: bool = False
    in_range: bool = False
    """No op is around it, but a named range."""
    replayed: bool = False
    """A CUDA graph launched it."""
    result: tuple[int, ...] | None = None
    """Size of the innermost call's result, if recorded."""
    call_context: CallContext = EMPTY_CONTEXT

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements around it, by position."""
        return (*self.markers, *self.seqs)


def distinct_contexts(records: Records) -> tuple[IntArray, list[KernelContext]]:
    """Number the distinct contexts: the number of each row, and the contexts."""
    inside = records.numpy("replay") >= 0
    parts = [
        records.dictionary("marker"),
        records.templates(),
        records.dictionary("fwdMarker"),
        records.dictionary("fwdSeqMarker"),
        _is(records, "dir", BPROP),
        _is(records, "kind", schema.KINDS[schema.CPU]),
        _only_named(records),
        DictionaryColumn(inside.astype(np.int64), [False, True]),
        records.dictionary("resultSize"),
    ]
    number, first = _combine(parts)
    order = records.arrow("callIds").take(pa.array(first)).to_pylist()
    own, seqs, forward, forward_seqs, backward, on_cpu, in_range, replayed, result = parts
    contexts = [
        KernelContext(
            markers=_statements(own, row),
            seqs=_statements(seqs, row),
            fwd_markers=_statements(forward, row),
            fwd_seqs=_statements(forward_seqs, row),
            backward=bool(backward.index[row]),
            # Ids ascend inward; files without them list texts outermost first.
            order=tuple(np.argsort(ids, kind="stable").tolist()) if ids else (),
            on_cpu=bool(on_cpu.index[row]),
            in_range=bool(in_range.index[row]),
            replayed=bool(replayed.index[row]),
            result=_sizes(result, row),
        )
        for row, ids in zip(first.tolist(), order, strict=True)
    ]
    return number, contexts


def _combine(parts: Sequence[DictionaryColumn]) -> tuple[IntArray, NDArray[np.int64]]:
    """Number distinct combinations: the number of each row, and the first row of each."""
    number = number_combinations(*(part.index for part in parts))
    return number, first_rows(number)


def _only_named(records: Records) -> DictionaryColumn:
    """Mask of the rows that lie in a layer or user range, and in no op."""
    layer, marker, seq = (
        np.array([*(bool(value) for value in column.values), False]).take(column.index)
        for column in (
            records.dictionary("layer"),
            records.dictionary("marker"),
            records.templates(),
        )
    )
    return DictionaryColumn((layer & ~marker & ~seq).astype(np.int64), [False, True])


def _statements(part: DictionaryColumn, row: int) -> tuple[Statement, ...]:
    index = part.index[row]
    return tuple(map(statement, part.values[index])) if index >= 0 else ()


def _sizes(part: DictionaryColumn, row: int) -> tuple[int, ...] | None:
    index = part.index[row]
    return tuple(part.values[index]) if index >= 0 else None


def _is(records: Records, name: str, wanted: str) -> DictionaryColumn:
    column = records.dictionary(name)
    equal = np.array([*(value == wanted for value in column.values), False])
    return DictionaryColumn(equal.take(column.index).astype(np.int64), [False, True])
