"""Merges what was found in several captures.

A sum is a frozen dataclass of numbers, Arrow tables and mappings. `merge_sums` adds two of them
field by field: the type of a value decides how, and a field that is not a plain sum states its own
rule with `merged_by`. The rules that come with a type are associative, and all but those for lists
do not depend on the order of captures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
_RULE = "merge"


def merged_by(rule: Callable[[Any, Any], Any], **default: Any) -> Any:  # noqa: ANN401 - as `field`
    """A field whose two values, None among them, `rule` merges, whatever their type."""
    return field(metadata={_RULE: rule}, **default)


def merge_sums(a: T, b: T) -> T:
    """Merge the sums of two captures; if one is None, the result is the other.

    Numbers and NumPy arrays add up (arrays as far as both reach), tables by their keys, mappings
    key by key, dataclasses and named tuples field by field; tuples are concatenated. A class with a
    method `merged(other)` merges itself. Raises TypeError for any other type.
    """
    if a is None or b is None:
        return b if a is None else a
    if hasattr(a, "merged"):
        merged: T = a.merged(b)
        return merged
    if is_dataclass(a) and not isinstance(a, type):
        parts = {
            each.name: each.metadata.get(_RULE, merge_sums)(
                getattr(a, each.name), getattr(b, each.name)
            )
            for each in fields(a)
        }
        return cast("T", type(a)(**parts))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        both = {**a, **{key: merge_sums(a.get(key), value) for key, value in b.items()}}
        return cast("T", both)
    if hasattr(a, "_fields"):
        return type(a)(*map(merge_sums, a, b))  # type: ignore[call-overload]
    rule = next((rule for types, rule in _RULES if isinstance(a, types)), None)
    if rule is None or isinstance(a, bool):
        raise TypeError(f"no rule for merging {type(a).__name__}")
    return cast("T", rule(a, b))


def _add_arrays(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    both = min(len(a), len(b))
    return np.asarray(a[:both] + b[:both])


def _add_tables(a: pa.Table, b: pa.Table) -> pa.Table:
    """Add the numbers of rows with the same keys: the columns that are not numbers."""
    keys = [one.name for one in a.schema if not _is_number(one.type)]
    sums = {one.name: "sum" for one in a.schema if _is_number(one.type)}
    return add_up(pa.concat_tables([a, b]), keys, sums)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def rows_of_both(a: pa.Table, b: pa.Table) -> pa.Table:
    """Put the rows of one table under those of the other."""
    return pa.concat_tables([a, b])


_RULES: tuple[tuple[Any, Callable[[Any, Any], Any]], ...] = (
    (pa.Table, _add_tables),
    (np.ndarray, _add_arrays),
    ((int, float, tuple, np.number), add),
)


def merge_unique(a: Sequence[T], b: Sequence[T]) -> tuple[T, ...]:
    """Concatenate two sequences without duplicates."""
    return tuple(dict.fromkeys((*a, *b)))


def lists_by_key(
    a: Mapping[str, tuple[T, ...]], b: Mapping[str, tuple[T, ...]]
) -> Mapping[str, tuple[T, ...]]:
    """Merge the lists under each key, without duplicates."""
    return {key: merge_unique(a.get(key, ()), b.get(key, ())) for key in (*a, *b)}


def at_most(count: int) -> Callable[[tuple[T, ...], tuple[T, ...]], tuple[T, ...]]:
    """The rule for a list that is cut after the first `count`."""
    return lambda a, b: (*a, *b)[:count]


def same_or_none(a: T | None, b: T | None) -> T | None:
    """The value that both have; None if they differ."""
    return a if a == b else None


def known_in_both(a: T | None, b: T | None) -> T | None:
    """Both merged; None if either is unknown."""
    return None if a is None or b is None else merge_sums(a, b)


def first(a: T, _: T) -> T:
    """The value of the first capture, where both are equal anyway or only its own is shown."""
    return a


def add_up(rows: pa.Table, keys: Sequence[str], how: Mapping[str, str]) -> pa.Table:
    """Group rows by `keys`; `how` maps each other column to its aggregate function.

    Keys may be dictionary-encoded; the result has plain texts. Single-threaded, so that sums of
    floats do not depend on the number of threads.
    """
    grouped = rows.combine_chunks().group_by(list(keys), use_threads=False)
    sums = grouped.aggregate([*how.items()])
    renamed = {f"{name}_{function}": name for name, function in how.items()}
    names = [renamed.get(name, name) for name in sums.column_names]
    return texts_of(sums.rename_columns(names).select([*keys, *how]))


def texts_of(table: pa.Table) -> pa.Table:
    """Decode the dictionary-encoded columns."""
    for index, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            name = table.column_names[index]
            table = table.set_column(index, name, column.cast(column.type.value_type))
    return table
