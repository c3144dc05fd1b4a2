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
from pyprof.records.records import DictionaryColumn, combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    in_frames: bool = False
    """No op is around it, but Python frames: the script launches it itself."""
    replayed: bool = False
    """A CUDA graph launched it."""
    unlaunched: bool = False
    """The call that launched it is unknown, though the tool records when things ran."""
    result: tuple[int, ...] | None = None
    """Size of the innermost call's result, if recorded."""
    call_context: CallContext = EMPTY_CONTEXT

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements around it, by position."""
        return (*self.markers, *self.seqs)


def distinct_contexts(records: Records) -> DictionaryColumn:
    """Find the context of each row."""
    own, seqs = records.dictionary("marker"), records.templates()
    forward, forward_seqs = records.dictionary("fwdMarker"), records.dictionary("fwdSeqMarker")
    result = records.dictionary("resultSize")
    backward = records.dictionary("dir").is_in(BPROP)
    on_cpu = records.of_kind(schema.CPU)
    in_range, in_frames = (
        records.dictionary(name).matches() & ~own.matches() & ~seqs.matches()
        for name in ("layer", "trace")
    )
    replayed = records.numpy("replay") >= 0
    unlaunched = ~(on_cpu | replayed | np.asarray(records.arrow("launch").is_valid()))
    unlaunched &= "start" in records.columns
    texts = (column.index for column in (own, seqs, forward, forward_seqs, result))
    masks = (backward, on_cpu, in_range, in_frames, replayed, unlaunched)
    flags = (mask.astype(np.int8) for mask in masks)
    first, number = combinations(*texts, *flags)
    order = records.arrow("callIds").take(pa.array(first)).to_pylist()
    contexts = [
        KernelContext(
            markers=_statements(own.at(row)),
            seqs=_statements(seqs.at(row)),
            fwd_markers=_statements(forward.at(row)),
            fwd_seqs=_statements(forward_seqs.at(row)),
            backward=bool(backward[row]),
            # Ids ascend inward; files without them list texts outermost first.
            order=tuple(np.argsort(ids, kind="stable").tolist()) if ids else (),
            on_cpu=bool(on_cpu[row]),
            in_range=bool(in_range[row]),
            in_frames=bool(in_frames[row]),
            replayed=bool(replayed[row]),
            unlaunched=bool(unlaunched[row]),
            result=None if (size := result.at(row)) is None else tuple(size),
        )
        for row, ids in zip(first.tolist(), order, strict=True)
    ]
    return DictionaryColumn(number, contexts)


def _statements(texts: Sequence[str] | None) -> tuple[Statement, ...]:
    return tuple(map(statement, texts or ()))
