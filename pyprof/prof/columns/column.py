"""What a column of a report is; the columns are in `standard`, their values in `column_values`.

Names and meanings are at hand without Arrow, which takes longer to load than a help text may.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pyprof.prof.table import Table


class _LazyModule(ModuleType):
    """Stands for a module, and looks attributes up there."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> ModuleType:
    """Return a module that is imported on first use; type checkers need its import."""
    return _LazyModule(name)


if not TYPE_CHECKING:
    pa = lazy_module("pyarrow")

Values: TypeAlias = "Callable[[Table], pa.Array]"

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
    help: str
    held: Values
    """Returns one Arrow value per row, null if unknown; texts dictionary-encoded."""
    unit: str = ""
    """"" for texts, and for numbers that count or name something."""
    exact: bool = False
    """Its last digits distinguish rows, so it is never shown with fewer."""
    choices: tuple[str, ...] = ()
    """All values that it can have, if they are few; a condition on another is a mistake."""

    def values(self, table: Table) -> pa.Array:
        """One Arrow value per row, texts written out."""
        column = self.held(table)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def dictionary_array(self, table: Table) -> pa.DictionaryArray:
        """The texts, dictionary-encoded."""
        column = self.held(table)
        return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def measure(name: str, header: str, kind: str, unit: str, text: str = "") -> Column:
    """A column of groups of rows, which a single row has no value for."""

    def values(table: Table) -> pa.Array:
        raise TypeError(f"{name} belongs to groups of rows, not to each of {table.records.rows}")

    # no wider than needed, so that names of kernels have the room
    return Column(name, header, kind, len(header), text, values, unit)
