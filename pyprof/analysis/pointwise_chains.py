"""Chains of point-wise kernels on a stream, or ops on a CPU, and their time as one kernel each.

A compiler fuses such a chain into one kernel. Norms, reductions, softmax, copies and fills belong
to it, too. Between chains is what it does not fuse: products, convolutions, indexing, collectives.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.gpu.role_rules import Role
from pyprof.gpu.roofline import NS_PER_S, SHORTEST_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Int64Array, Mask

_ROLES = (
    *(Role.ELEMENTWISE, Role.RANDOM, Role.NORM, Role.REDUCE, Role.SOFTMAX),
    *(Role.COPY, Role.LAYOUT, Role.FILL, Role.MEMSET),
)
_FAMILIES = ("pointwise", "norm", "reduction", "softmax", "loss", "copy")
"""The same of ops on a CPU, whose rows are not kernels with roles."""
_NOT_FUSED = re.compile(
    r"(?i)multinomial|randperm|sampling|_sample"  # draws from a whole row
    r"|fft|winograd|^aten::(?:.*cum(?:sum|prod|max|min)|quantize|dequantize)"
)
"""Kernels of these roles that compilers leave to libraries; scans on a CPU only."""
_BANDWIDTH_SHARE = 0.75
"""Share of the peak bandwidth that generated kernels reach."""


def pointwise_chains(context: RuleContext, wanted: Mask) -> tuple[Int64Array, Int64Array]:
    """Return rows of two or more consecutive point-wise kernels of a step, and the chain of each.

    A row that repeats the op and line of the one before starts a new chain: see `_mark_repeats`.
    """
    order, same = context.by_stream
    fusible = context.role(*_ROLES) | (context.kind(schema.CPU) & context.family(*_FAMILIES))
    fusible &= ~context.named(_NOT_FUSED)
    wanted = (wanted & fusible & ~context.is_one("dir", "optim", "comm"))[order]
    linked = same & wanted[1:] & wanted[:-1] & ~_mark_repeats(context)[1:]
    linked &= np.diff(context.table.records.numpy("step")[order]) == 0
    member = np.r_[False, linked] | np.r_[linked, False] if len(order) else np.zeros(0, bool)
    begins = member & ~np.r_[False, linked][: len(order)]
    chain = np.cumsum(begins)[member] - 1
    return order[member], chain


def _mark_repeats(context: RuleContext) -> Mask:
    """Mark rows that repeat, in a new call, the op and line of the row before.

    They may be a loop over tensors. The mask is in the order of `context.by_stream`. Where no op is
    known, the kernel stands for it; where no line is known, the sizes of the op's inputs.
    """
    order, _ = context.by_stream
    number = context.table.records.numpy("opId")[order]
    again = (np.diff(number) != 0) | (number[1:] < 0)
    op, line = context.op.index[order], context.line.index[order]
    kernel = context.table.records.dictionary("kLongName").index[order]
    sizes = context.table.records.dictionary("sizes").index[order]
    what, where = np.where(op < 0, -2 - kernel, op), np.where(line < 0, -2 - sizes, line)
    same = again & (np.diff(what) == 0) & (np.diff(where) == 0)
    return np.asarray(np.r_[False, same][: len(order)])


def chain_ns(
    ns: NDArray[np.float64],
    moved: NDArray[np.float64],
    chain: Int64Array,
    bandwidth: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the time of each chain as one kernel that moves its outer inputs and outputs once.

    If a row's bytes or the bandwidth are unknown, its own time counts.
    """
    moving = moved / (_BANDWIDTH_SHARE * bandwidth) * NS_PER_S
    moving = np.where(np.isfinite(moving), moving, ns)
    # What a row reads of the previous one's output is saved twice: one writes it, the next reads
    # it. It is at most half of what either of the two moves.
    kept = np.where(np.diff(chain) == 0, np.minimum(moving[1:], moving[:-1]), 0.0)
    fused = np.bincount(chain, moving - np.r_[0.0, kept])
    return np.asarray(np.maximum(fused, SHORTEST_NS))
