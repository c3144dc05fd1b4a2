"""Times of single steps and ranks, and kernels, shapes and types of each key's rows.

Small enough to send, and additive: the samples of several captures make one side of a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.analysis.diff.keys import KEYS
from pyprof.arrays import ints, numbered
from pyprof.records.merging import add_up, texts_of
from pyprof.records.records import combinations, distinct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.time.steps import Steps
    from pyprof.arrays import Floats, Int64Array, IntArray, Mask
    from pyprof.prof.table import Table

TRAITS = ("kernel", "shape", "dtype")
"""What may differ between the captures for the same key."""
_TRAIT = "{} of rows"
TRIED = "tried"
_NS = {"ns": "sum"}
_OF_STEPS = {"rows": "sum", "flops": "sum", "bytes": "sum"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Sums of time, in ns, by key and step, by key and rank, and by key and traits."""

    by_step: pa.Table
    """Rows of the counted steps: keys, `step`, `ns`; added up over ranks. As there are many, keys
    may be dictionaries of distinct texts.
    """
    by_rank: pa.Table
    """Keys, `rank`, counted from 0, time of all rows (`ns`), and per counted step (`step_ns`)."""
    steps: pa.Table
    """`step`, and its `rows`, known `flops` and `bytes`."""
    traits: pa.Table
    """Keys, traits, whether rows were `tried` by autotuning, and the time of all rows (`ns`)."""
    ranks: int
    resolution_ns: int
    """The resolution of the clock, of which times are multiples."""

    def plus(self, other: Samples, stepped: Sequence[Samples]) -> Samples:
        """Add other ranks; sums by step come from `stepped`, one of the two or both."""
        by_step, of_steps = stepped[0].by_step, stepped[0].steps
        for each in stepped[1:]:
            by_step = _added(by_step, each.by_step, _NS)
            of_steps = _added(of_steps, each.steps, _OF_STEPS)
        number = pc.add(other.by_rank.column("rank"), self.ranks)
        index = other.by_rank.column_names.index("rank")
        later = other.by_rank.set_column(index, "rank", number)
        return Samples(
            by_step=by_step,
            by_rank=pa.concat_tables([self.by_rank, later]),
            steps=of_steps,
            traits=_added(self.traits, other.traits, _NS),
            ranks=self.ranks + other.ranks,
            resolution_ns=min(self.resolution_ns, other.resolution_ns),
        )


def _added(a: pa.Table, b: pa.Table, sums: Mapping[str, str]) -> pa.Table:
    names = [name for name in a.column_names if name not in sums]
    both = pa.concat_tables([texts_of(a), texts_of(b)])
    return add_up(both, names, sums).select(a.column_names)


def samples(
    table: Table,
    names: Sequence[str],
    loop_steps: Steps,
    counted: tuple[int, int] | None,
    rows: Mask | None,
) -> Samples:
    """Take the samples of a capture: of its `counted` steps, and of all rows, or those chosen."""
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    no_rows = np.zeros(len(chosen), bool)
    inside: Mask = no_rows if counted is None else np.asarray(loop_steps.rows(counted))
    columns = {name: KEYS[name](table) for name in dict.fromkeys((*names, *TRAITS))}
    first, code = _number(table.records.rows, *(columns[name] for name in names))
    keys = {name: _few(columns[name].take(pa.array(first)).cast(pa.string())) for name in names}
    duration = table.duration_ns
    by_step = _sums(keys, code, {"step": loop_steps.of_row.astype(np.int32)}, inside, ns=duration)
    # count the processes from 0, in the order of their ids
    pid = table.records.numpy("pid")
    one = not len(pid) or pid.min() == pid.max()
    rank = np.broadcast_to(np.int64(0), len(pid)) if one else numbered(pid)[1]
    step_ns = np.where(inside, duration, 0) / (counted[1] - counted[0] if counted else 1)
    return Samples(
        by_step=by_step,
        by_rank=texts_of(_sums(keys, code, {"rank": rank}, chosen | inside,
                       ns=duration * chosen, step_ns=step_ns)),
        steps=_of_steps(table, loop_steps.of_row, inside),
        traits=_traits(table, keys, code, chosen, [columns[name] for name in TRAITS]),
        ranks=int(rank.max(initial=-1)) + 1,
        resolution_ns=_resolution_ns(table, chosen),
    )  # fmt: skip


def _few(texts: pa.Array) -> pa.DictionaryArray:
    """Encode texts with the smallest index type: indices are repeated for each step."""
    encoded = texts.dictionary_encode()
    kind = pa.from_numpy_dtype(np.min_scalar_type(-len(encoded.dictionary) - 1))
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(kind), encoded.dictionary)


_COARSEST_NS = 1000
"""Old traces of torch have whole microseconds; a larger divisor is chance, not the clock."""


def _resolution_ns(table: Table, chosen: Mask) -> int:
    """Find what durations, and times from start to start, are multiples of; 0 without rows."""
    rows = np.flatnonzero(table.timed & chosen)
    common = int(np.gcd.reduce(table.duration_ns[rows])) if len(rows) else 0
    if len(rows) and "start" in table.records.columns:
        start = table.records.numpy("start")[rows]
        common = int(np.gcd(common, np.gcd.reduce(start - start[0])))
    return min(common, _COARSEST_NS)


def _number(rows: int, *columns: pa.DictionaryArray) -> tuple[Int64Array, IntArray]:
    """Number the combinations of some columns' values: a row of each, and the number of each."""
    return combinations(np.zeros(rows, np.int32), *(ints(column.indices) for column in columns))


def _sums(
    keys: Mapping[str, pa.DictionaryArray],
    code: IntArray,
    other: Mapping[str, Int64Array],
    chosen: Mask,
    **values: Int64Array | Floats,
) -> pa.Table:
    """Sum values of rows by their key and one more number."""
    ((name, number),) = other.items()
    taken = np.flatnonzero(chosen)
    first, group = combinations(code[taken], number[taken])
    of_group = taken[first]
    sums = {
        each: np.bincount(group, value[taken].astype(float), len(first))
        for each, value in values.items()
    }
    columns = {each: column.take(pa.array(code[of_group])) for each, column in keys.items()}
    return pa.table({**columns, name: number[of_group], **sums})


def _of_steps(table: Table, of_row: Int64Array, inside: Mask) -> pa.Table:
    step = of_row[inside]
    first, group = distinct(step)
    sums = {"rows": np.bincount(group, minlength=len(first)).astype(float)}
    for name in ("flops", "bytes"):
        cost = np.maximum(getattr(table.costs, name)[inside], 0)
        sums[name] = np.bincount(group, cost, len(first)).astype(float)
    return pa.table({"step": step[first], **sums})


def _traits(
    table: Table,
    keys: Mapping[str, pa.DictionaryArray],
    code: IntArray,
    chosen: Mask,
    own: Sequence[pa.Array],
) -> pa.Table:
    first, trait = _number(table.records.rows, *own)
    tried = table.costs.autotuning.astype(np.int64)
    sums = texts_of(_sums(keys, code, {"trait": trait * 2 + tried}, chosen, ns=table.duration_ns))
    number = sums.column("trait").to_numpy()
    row = pa.array(first[number // 2])
    named = {
        _TRAIT.format(name): values.take(row).cast(pa.string())
        for name, values in zip(TRAITS, own, strict=True)
    }
    columns = {name: sums.column(name) for name in (*keys, "ns")}
    return pa.table({**columns, **named, TRIED: pa.array(number % 2 == 1)})


def trait(name: str) -> str:
    """Name the column of a trait; the plain name may be that of a key."""
    return _TRAIT.format(name)
