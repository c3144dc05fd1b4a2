"""Values of columns as Arrow arrays, one per row: texts as dictionaries, null if unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.prof.calls.attributed_call import family
from pyprof.prof.kernels.counters import rounded, with_counters
from pyprof.prof.op_names import op_name
from pyprof.records.records import DictionaryColumn, combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.arrays import Floats, IntArray
    from pyprof.prof.costs import Costs
    from pyprof.prof.table import Table
    from pyprof.records.records import Records


def row_numbers(records: Records) -> pa.Array:
    """Number the rows from 1."""
    return pa.array(np.arange(1, records.rows + 1))


def integers(values: IntArray) -> pa.Array:
    """An IntArray without nulls."""
    return pa.array(values.astype(np.int64, copy=False))


def floats(values: Floats) -> pa.Array:
    """Numbers, null if not finite."""
    return pa.array(values, mask=~np.isfinite(values))


def rounded_integers(values: Floats) -> pa.Array:
    """Rounded numbers, null if not finite."""
    return pa.array(rounded(values), mask=~np.isfinite(values))


def or_else(values: Floats, others: Floats) -> Floats:
    """The first values, replaced by the others where they are not finite."""
    return np.where(np.isfinite(values), values, others)


def standard_errors(table: Table, *counters: str) -> pa.Array:
    """Standard error in percent of the first counter that has values, or of the last."""
    measured = (name for name in counters if np.isfinite(table.measured.values(name)).any())
    name = next(measured, counters[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return floats(100 * table.measured.values(f"{name}_err") / table.measured.values(name))


def format_distinct(column: DictionaryColumn, format_value: Callable[..., str | None]) -> pa.Array:
    """Format each distinct value once; a null stays null."""
    formatted = [format_value(value) if value is not None else None for value in column.values]
    return DictionaryColumn(column.index, formatted).dictionary_array()


def format_lists(lists: pa.Array) -> pa.Array:
    """Format lists of numbers with commas; null for an empty list."""
    flat = lists.values.cast(pa.string())
    formatted = pc.binary_join(
        pa.ListArray.from_arrays(lists.offsets, flat, mask=lists.is_null()), ","
    )
    return pc.if_else(pc.equal(formatted, ""), None, formatted)


def commas(numbers: Sequence[int]) -> str | None:
    """Format numbers with commas; None if there are none."""
    return ",".join(map(str, numbers)) or None


def outermost_module(names: Sequence[str]) -> str | None:
    """The outermost module; None for `na`, which the original wrote for a missing one."""
    return names[0] if names and names[0] != "na" else None


def ops(table: Table) -> pa.Array:
    """Name the op that was called; `bias` for the bias of a linear."""
    mods, ops = table.own_or_forward("mod"), table.own_or_forward("op")
    first, index = combinations(mods.index, ops.index)
    pairs = ((mods.at(row), ops.at(row)) for row in first.tolist())
    names = [op_name(mod[0] if mod else None, op[0]) if op else None for mod, op in pairs]
    linear = np.array([name == "linear" for name in names], bool)[index]
    # a bias is added element by element, and its gradient is a sum; additions in the backward pass
    # join the gradients of an input that several ops take
    inner = table.costs.work.map(family)
    backward = table.records.dictionary("dir").is_in("bprop")
    bias = np.where(backward, inner.is_in("reduction"), inner.is_in("pointwise"))
    index = np.where(linear & bias, len(names), index)
    return DictionaryColumn(index, [*names, "bias"]).dictionary_array()


def params(costs: Costs) -> pa.Array:
    """Format what the cost of each row's op call was computed from."""

    def formatted(params: Mapping[str, object]) -> str | None:
        texts = (f"{key}={value}".replace(" ", "") for key, value in params.items())
        return "".join(f"{each}," for each in texts) or None

    return costs.params.map(formatted).dictionary_array()


def via(table: Table) -> pa.Array:
    """Say how each row's op was found."""
    return with_counters(table.records.dictionary("via"), table.measured).dictionary_array()
