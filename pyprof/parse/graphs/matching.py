"""Which launch of a capture each kernel of a replay is, by names and order. Pure functions.

A kernel is identified by keys of several levels, the finest first: its whole name with grid and
block, the name alone, the function without its template arguments. Both sides are compared at the
finest level at which they have the same keys; equal keys are matched in their order. If rows were
lost on one side, the rest is aligned with the other side.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyprof.arrays import MISSING
from pyprof.gpu.kernel_roles import role
from pyprof.gpu.role_rules import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from pyprof.arrays import Int64Array


MIN_SIMILARITY = 0.75
"""The share of both sides that has to match if some was lost; with less it is another graph."""

NEARLY_ALL = 0.9
"""The share of a graph's kernels that has to be there if launches do not name their kernels."""


class Kernels(NamedTuple):
    """The launches of a capture in their order, or the kernels of a replay in that of the nodes."""

    levels: tuple[Int64Array, ...]
    """Keys, the finest level first; MISSING where something is not known."""
    stream: Int64Array

    def __len__(self) -> int:
        return len(self.stream)

    def take(self, rows: Int64Array) -> Kernels:
        """Choose rows."""
        return Kernels(tuple(level[rows] for level in self.levels), self.stream[rows])


def share(launches: Kernels, kernels: Kernels) -> float:
    """Share of both sequences that matches by the coarsest key; 0 if some key is not known."""
    longer = max(len(launches), len(kernels))
    ours, theirs = kernels.levels[-1], launches.levels[-1]
    if not longer or (ours == MISSING).any() or (theirs == MISSING).any():
        return 0.0
    return (Counter(ours.tolist()) & Counter(theirs.tolist())).total() / longer


def match_launches(launches: Kernels, kernels: Kernels) -> Int64Array:
    """Return the index of each kernel's launch; MISSING if uncertain.

    If both sides have each key equally often, every kernel has a launch. If one side lost some,
    the rest is aligned with the other side. If each side has what the other lacks, they
    contradict each other, and nothing matches.
    """
    for theirs, ours in zip(launches.levels, kernels.levels, strict=True):
        known = (theirs != MISSING).all() and (ours != MISSING).all()
        if known and np.array_equal(np.sort(theirs), np.sort(ours)):
            # match each kernel with the launch of its key, the first with the first
            launch_of_kernel = np.full(len(ours), MISSING)
            order = np.argsort(ours, kind="stable")
            launch_of_kernel[order] = np.argsort(theirs, kind="stable")
            # Drop matches that contradict stream order. A stream runs in launch order, so of two
            # swapped matches at least one is wrong.
            in_order = launch_of_kernel.copy()
            for number in np.unique(kernels.stream).tolist():
                rows = np.flatnonzero((kernels.stream == number) & (launch_of_kernel != MISSING))
                at = launch_of_kernel[rows]
                before = np.maximum.accumulate(np.concatenate([[MISSING], at]))[:-1]
                behind = np.minimum.accumulate(np.concatenate([[len(theirs)], at[::-1]]))[:-1][::-1]
                in_order[rows[(before > at) | (behind < at)]] = MISSING
            return in_order
    fewer, more = sorted((len(launches), len(kernels)))
    if MIN_SIMILARITY * more <= fewer < more:
        for theirs, ours in zip(launches.levels, kernels.levels, strict=True):
            if (index := _align(theirs, ours, kernels.stream)) is not None:
                return index
    return np.full(len(kernels), MISSING)


def _align(launches: Int64Array, kernels: Int64Array, stream: Int64Array) -> Int64Array | None:
    """Align the side that lost some with the complete one; None if they contradict each other."""
    if len(kernels) < len(launches):
        return align(kernels, _rows_of_key(launches), stream, len(launches))
    # Only if all kernels ran on one stream is their order that of the launches.
    one_stream = bool((stream == stream[0]).all())
    order = np.zeros(len(launches), np.int64) if one_stream else np.arange(len(launches))
    kernel_of_launch = align(launches, _rows_of_key(kernels), order, len(kernels))
    if kernel_of_launch is None:
        return None
    index = np.full(len(kernels), MISSING)
    rows = np.flatnonzero(kernel_of_launch != MISSING)
    index[kernel_of_launch[rows]] = rows
    return index


def align(
    part: Int64Array, rows_of_key: Mapping[int, list[int]], stream: Int64Array, count: int
) -> Int64Array | None:
    """Align a sequence that has gaps with the rows of a complete one.

    `part` holds keys, `rows_of_key` the rows, of `count`, at which each key may stand. Keys of one
    stream, and equal keys, keep their order. A row is certain if the earliest and the latest
    alignment agree on it, else it is MISSING. None if no alignment exists.
    """
    first = _find_earliest(part.tolist(), rows_of_key, stream.tolist())
    if first is None:
        return None
    mirrored = {key: [count - 1 - row for row in rows[::-1]] for key, rows in rows_of_key.items()}
    last = _find_earliest(part.tolist()[::-1], mirrored, stream.tolist()[::-1])
    if last is None:
        return None
    earliest, latest = np.array(first, np.int64), count - 1 - np.array(last[::-1], np.int64)
    return np.where(earliest == latest, earliest, MISSING)


def _find_earliest(
    part: Sequence[int], rows_of_key: Mapping[int, list[int]], stream: Sequence[int]
) -> list[int] | None:
    """Put each key on the first row that the keys before it leave; None if there is none."""
    last_on_stream: dict[int, int] = {}
    last_of_key: dict[int, int] = {}
    chosen = []
    for key, on in zip(part, stream, strict=True):
        rows = rows_of_key.get(key, [])
        after = max(last_on_stream.get(on, -1), last_of_key.get(key, -1))
        index = bisect_right(rows, after)
        if index == len(rows):
            return None
        chosen.append(rows[index])
        last_on_stream[on] = last_of_key[key] = rows[index]
    return chosen


def _rows_of_key(keys: Int64Array) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row, key in enumerate(keys.tolist()):
        if key != MISSING:
            rows.setdefault(key, []).append(row)
    return rows


def match_by_order(
    launches: Sequence[Hashable], kernels: Sequence[Hashable], fits: Callable[[Any, Any], bool]
) -> Int64Array:
    """Return the index of each kernel's launch by order alone; MISSING if uncertain.

    Both are in the order in which nodes were made; `fits` is whether a launch can be that of a
    kernel. Either each launch has its kernel, or a few kernels are missing from a long sequence,
    and a match is certain only if all alignments of the rest agree on it.
    """
    nothing = np.full(len(kernels), MISSING)
    if len(kernels) == len(launches):
        pairs = set(zip(launches, kernels, strict=True))
        return np.arange(len(kernels)) if all(fits(*pair) for pair in pairs) else nothing
    if not NEARLY_ALL * len(launches) <= len(kernels) < len(launches):
        return nothing
    numbers: dict[Hashable, int] = {}
    part = np.array([numbers.setdefault(kernel, len(numbers)) for kernel in kernels], np.int64)
    rows_of_launch: dict[Hashable, list[int]] = {}
    for row, launch in enumerate(launches):
        rows_of_launch.setdefault(launch, []).append(row)
    rows_of_key = {
        number: sorted(
            row for launch, rows in rows_of_launch.items() if fits(launch, kernel) for row in rows
        )
        for kernel, number in numbers.items()
    }
    index = align(part, rows_of_key, np.zeros(len(part), np.int64), len(launches))
    return nothing if index is None else index


def find_eager_runs(sequence: Sequence[int], within: Int64Array) -> Int64Array:
    """Return the indices at which a sequence of keys begins in another one."""
    wanted = np.asarray(sequence, np.int64)
    if not len(wanted) or len(wanted) > len(within) or (wanted == MISSING).any():
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(within[: len(within) - len(wanted) + 1] == wanted[0])
    keys, inverse = np.unique(wanted, return_inverse=True)
    ordered = np.sort(within)
    often = np.searchsorted(ordered, keys, "right") - np.searchsorted(ordered, keys, "left")
    for index in np.argsort(often[inverse]).tolist():  # the rarest rule out most starts
        starts = starts[within[starts + index] == wanted[index]]
    return starts


_DOMINANT = frozenset({Role.GEMM, Role.CONV, Role.ATTENTION, Role.RNN, Role.COMM})
"""Work that only an op of its kind does."""

_PRODUCT = r"mm|matmul|linear|gemm|conv|einsum|dot|mv|bilinear|tensordot|lstm|gru|rnn|inner|outer"
_OPS = (
    (r"attention|attn|sdpa|flash|mha|fmha", _DOMINANT - {Role.COMM}),
    (_PRODUCT, {Role.GEMM, Role.CONV, Role.RNN}),
    (r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send|recv|c10d", {Role.COMM}),
)
"""Names of PyTorch's ops, and which dominant work they may launch."""
_PLAIN = re.compile(r"^aten::|^[a-z_0-9]+$")
"""PyTorch's ops, whose name implies what they do. A library's op may do anything."""

_LIGHT = re.compile(
    r"^(?:aten::)?_?(?:add|sub|mul|div|neg|exp|log|sqrt|rsqrt|relu|gelu|silu|sigmoid|tanh|clamp|where|"
    r"copy|clone|to|_to_copy|contiguous|fill|zero|zeros|ones|full|cat|stack|masked_fill)_?$"
)
"""Light ops: like products, they launch none of `_OTHER_WORK`."""
_OTHER_WORK = frozenset({Role.NORM, Role.SOFTMAX, Role.LOSS, Role.POOL, Role.OPTIMIZER})


def fits(op: str | None, kernel: str) -> bool:
    """Whether an op can have launched a kernel; True unless something speaks against it."""
    kind = role(kernel)
    if op is None:
        return kind not in _DOMINANT
    name = op.split(", ", 1)[0]
    if kind in _DOMINANT:
        if not _PLAIN.search(name):
            return True
        return any(kind in kinds and re.search(words, name, re.IGNORECASE) for words, kinds in _OPS)
    if re.search(rf"^(?:aten::)?_?(?:{_PRODUCT}|addmm|baddbmm|bmm)$", name):
        return kind not in _OTHER_WORK
    return not (_LIGHT.search(name) and kind in _OTHER_WORK)
