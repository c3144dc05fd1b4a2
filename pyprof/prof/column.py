"""What a column of a report is, and how its values are made; the columns are in `columns`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.parse.records import Coded
from pyprof.prof.apportion import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.prof.table import Table

Values: TypeAlias = Callable[["Table"], pa.Array]

INT, FLOAT, TEXT, NUMBERS = "int", "float", "text", "numbers"
"""Kinds of values; NUMBERS are several in one text, with commas between them."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what users type, what they see above it, and where its values come from."""

    name: str
    header: str
    kind: str
    width: int
    """Least width in a fixed-width table; 0: whatever room is left."""
    held: Values
    """Gives one Arrow value a row, null where it is not known; texts as a dictionary."""
    help: str
    unit: str = ""
    """"" for texts, and for numbers that count or name something."""
    exact: bool = False
    """Rows are told apart by its last digits, so that it is never shown with fewer."""

    def values(self, table: Table) -> pa.Array:
        """Give one Arrow value a row, texts written out."""
        column = self.held(table)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def numbered(self, table: Table) -> pa.DictionaryArray:
        """Give texts as numbers of the distinct ones."""
        column = self.held(table)
        return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


COLUMNS: dict[str, Column] = {}


def column(
    name: str, header: str, kind: str, width: int, unit: str = "", *, exact: bool = False
) -> Callable[[Values], Values]:
    """Register a column; its docstring is its help."""

    def register(values: Values) -> Values:
        if name in COLUMNS:
            raise ValueError(f"column {name!r} is there already")
        text = " ".join((values.__doc__ or "").split())
        COLUMNS[name] = Column(name, header, kind, width, values, text, unit, exact)
        return values

    return register


def spelt(coded: Coded, spell: Callable[..., str | None]) -> pa.Array:
    """Spell each distinct value once; a null stays null."""
    spelt = [spell(value) if value is not None else None for value in coded.values]
    return Coded(coded.index, spelt).numbered()


def spelt_lists(lists: pa.Array) -> pa.Array:
    """Spell lists of numbers with commas; null for none."""
    flat = lists.values.cast(pa.string())
    spelt = pc.binary_join(pa.ListArray.from_arrays(lists.offsets, flat, mask=lists.is_null()), ",")
    return pc.if_else(pc.equal(spelt, ""), None, spelt)


def commas(numbers: Sequence[int]) -> str | None:
    """Spell numbers with commas; None for none."""
    return ",".join(map(str, numbers)) or None


def null_if_unknown(values: NDArray[np.int64]) -> pa.Array:
    """Give numbers with null for UNKNOWN."""
    return pa.array(values, mask=values == UNKNOWN)


def floats(values: NDArray[np.float64]) -> pa.Array:
    """Give numbers with null for what is not finite."""
    return pa.array(values, mask=~np.isfinite(values))
