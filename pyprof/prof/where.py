"""Conditions on columns: `tc=0`, `op~attention`, `eff<20`, `sil>1e6`; which rows fulfil them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.prof.columns.standard import COLUMNS, FLOAT, INT
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.arrays import Mask
    from pyprof.prof.table import Table

_CONDITION = re.compile(r"\s*(\w+)\s*(!=|!~|<=|>=|==|=|~|<|>)")
_AND = re.compile(r"(?<=\s)and(?=\s)|&&", re.IGNORECASE)
_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_SURROGATE = re.compile("[\ud800-\udfff]")
"""What Python makes of bytes of a command line that are not UTF-8."""
_OF_TEXTS = ("=", "!=", "~", "!~")


@dataclass(frozen=True, slots=True)
class Condition:
    """What a column's values have to be."""

    name: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}{self.operator}{self.value}"

    @property
    def negated(self) -> bool:
        """Whether rows with an unknown value fulfil it."""
        return self.operator.startswith("!")

    def rows(self, table: Table) -> Mask:
        """Find the rows that fulfil it. `name=` asks for those without a value."""
        return self.holds(COLUMNS[self.name].held(table))

    def holds(self, values: pa.Array) -> Mask:
        """Mask of the values that fulfil it."""
        if not self.value and self.operator in ("=", "!="):
            absent: Mask = np.asarray(values.is_null())
            return ~absent if self.negated else absent
        if pa.types.is_dictionary(values.type):
            holds = self._texts(values.dictionary).take(values.indices)
        elif pa.types.is_string(values.type):
            holds = self._texts(values)
        else:
            number = pa.scalar(float(self.value))
            holds = _COMPARE[self.operator](values.cast(pa.float64(), safe=False), number)
        fulfilled: Mask = np.asarray(pc.fill_null(holds, self.negated))
        return fulfilled

    def _texts(self, values: pa.Array) -> pa.Array:
        if self.operator in ("=", "!="):
            return _COMPARE[self.operator](values, self.value)
        # Arrow's engine (RE2) takes time linear in the text, whatever the pattern.
        matches = pc.match_substring_regex(values, self.value)
        return pc.invert(matches) if self.negated else matches


def conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Parse conditions; a text may hold several, joined by `and`.

    Raises ValueError, with a line on what to write, if a condition is invalid.
    """
    return tuple(_condition(part) for text in texts for part in _AND.split(text))


def _condition(text: str) -> Condition:
    if _SURROGATE.search(text):
        raise ValueError(f"{text!r} is not UTF-8, as names in captures are")
    match = _CONDITION.match(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a condition; write tc=0, op~attention, eff<20 or sil>1e6"
        )
    name, operator, value = match[1], match[2].replace("==", "="), text[match.end() :].strip()
    if name not in COLUMNS:
        raise ValueError(
            f"no column {name!r}{suggestion(name, COLUMNS) or ';'} columns are {', '.join(COLUMNS)}"
        )
    _check(name, operator, value)
    return Condition(name, operator, value)


def _check(name: str, operator: str, value: str) -> None:
    column = COLUMNS[name]
    numeric = column.kind in (INT, FLOAT)
    allowed = tuple(_COMPARE) if numeric else _OF_TEXTS
    if operator not in allowed:
        held = "numbers" if numeric else "texts"
        raise ValueError(
            f"{name} contains {held}: compare it with {' '.join(allowed)}, not {operator}"
        )
    if numeric and not (_number(value) or (not value and operator in ("=", "!="))):
        unit = f" (unit: {column.unit})" if column.unit else ""
        raise ValueError(f"{name} contains numbers{unit}, but {value!r} is not a number")
    if operator in ("=", "!=") and value and column.choices and value not in column.choices:
        raise ValueError(f"{name} is one of {', '.join(column.choices)}, not {value!r}")
    if operator.endswith("~"):
        try:
            pc.match_substring_regex(pa.scalar(""), value)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{value!r} is not a regular expression in RE2 syntax: "
                f"{str(error).removeprefix('Invalid regular expression: ')}"
            ) from None


def _number(text: str) -> bool:
    try:
        return not np.isnan(float(text))
    except ValueError:
        return False


def rows(table: Table, asked: Iterable[Condition]) -> Mask | None:
    """Return a mask of the rows that fulfil all conditions; None if there are no conditions."""
    masks = [condition.rows(table) for condition in asked]
    return np.logical_and.reduce(masks) if masks else None
