"""Times of single steps and ranks, and kernels, shapes and types of each key's rows.

Small enough to send, and additive: the samples of several captures make one side of a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.analysis.diff.keys import KEYS
from pyprof.arrays import ints
from pyprof.records.merging import add_up, merged_by, texts_of
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


def _add_by_step(a: pa.Table, b: pa.Table) -> pa.Table:
    """Add the numbers, which are floats, of rows with the same keys and step."""
    both = pa.concat_tables([texts_of(a), texts_of(b)])
    sums = {each.name: "sum" for each in both.schema if pa.types.is_floating(each.type)}
    return add_up(both, [name for name in both.column_names if name not in sums], sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSamples:
    """Sums over the rows of each counted step, added up over ranks."""

    by_key: pa.Table = merged_by(_add_by_step)
    """Keys, `step`, `ns`. As there are many, keys may be dictionaries of distinct texts."""
    steps: pa.Table = merged_by(_add_by_step)
    """`step`, and its `rows`, known `flops` and `bytes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Sums of time, in ns, by key and rank, and by key and traits."""

    ranks: tuple[pa.Table, ...]
    """For each rank: keys, time of all rows (`ns`), and per counted step (`step_ns`)."""
    traits: pa.Table
    """Keys, traits, whether rows were `tried` by autotuning, and the time of all rows (`ns`)."""
    resolution_ns: int = merged_by(min)
    """The resolution of the clock, of which times are multiples."""


def samples(
    table: Table,
    names: Sequence[str],
    loop_steps: Steps,
    counted: tuple[int, int] | None,
    rows: Mask | None,
) -> tuple[Samples, StepSamples]:
    """Take the samples of a capture: of all rows, or those chosen, and of its `counted` steps."""
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    no_rows = np.zeros(len(chosen), bool)
    inside: Mask = no_rows if counted is None else np.asarray(loop_steps.rows(counted))
    columns = {name: KEYS[name](table) for name in dict.fromkeys((*names, *TRAITS))}
    first, code = _number(table.records.rows, *(columns[name] for name in names))
    keys = {
        name: _encode_small(columns[name].take(pa.array(first)).cast(pa.string())) for name in names
    }
    duration = table.duration_ns
    step_ns = np.where(inside, duration, 0) / (counted[1] - counted[0] if counted else 1)
    pid = table.records.numpy("pid")
    ranks = [
        texts_of(_sums(keys, code, {}, (chosen | inside) & (pid == number),
                       ns=duration * chosen, step_ns=step_ns))
        for number in np.unique(pid)
    ]  # fmt: skip
    return Samples(
        ranks=tuple(ranks),
        traits=_traits(table, keys, code, chosen, [columns[name] for name in TRAITS]),
        resolution_ns=_resolution_ns(table, chosen),
    ), StepSamples(
        by_key=_sums(keys, code, {"step": loop_steps.of_row.astype(np.int32)}, inside, ns=duration),
        steps=_of_steps(table, loop_steps.of_row, inside),
    )


def _encode_small(texts: pa.Array) -> pa.DictionaryArray:
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
    """Sum values of rows by their key and further numbers."""
    taken = np.flatnonzero(chosen)
    first, group = combinations(code[taken], *(number[taken] for number in other.values()))
    of_group = taken[first]
    sums = {
        each: np.bincount(group, value[taken].astype(float), len(first))
        for each, value in values.items()
    }
    columns = {each: column.take(pa.array(code[of_group])) for each, column in keys.items()}
    numbers = {name: number[of_group] for name, number in other.items()}
    return pa.table({**columns, **numbers, **sums})


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
    columns = {name: sums.column(name) for name in keys}
    tried_rows = pa.array(number % 2 == 1)
    return pa.table({**columns, **named, TRIED: tried_rows, "ns": sums.column("ns")})


def trait(name: str) -> str:
    """Name the column of a trait; the plain name may be that of a key."""
    return _TRAIT.format(name)
