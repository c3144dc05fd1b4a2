"""What every answer can become: a dict, DataFrames of its tables, HTML in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import orjson

from pyprof.answers import document, json_fields, kind_of, plain
from pyprof.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

_SHOWN_ROWS = 10

HTML_VIEWS: dict[type, Callable[[Any], str]] = {}
"""Notebook views of answers that show more than their tables; views register themselves."""


class Answer:
    """Base of all answers."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` writes, without the command's warnings."""
        content: dict[str, Any] = orjson.loads(document(self))
        return content

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The answer's lists of rows, by the path of their names: `ops`, `devices[0].timeline`.

        Units are in the names of columns (`_ns`, `_bytes`); unknown values are <NA>.
        """
        import pandas as pd  # noqa: PLC0415 - only here

        tables = {
            name: pd.json_normalize(plain(rows)).convert_dtypes() for name, rows in _rows(self)
        }
        for name, columns in table_columns(
            type(self)
        ).items():  # a list that is empty is a table, too
            tables.setdefault(name, pd.DataFrame(columns=columns))
        return tables

    def __repr__(self) -> str:
        """Name the tables; all values would fill screens."""
        names = ", ".join(f"{name}[{len(rows)}]" for name, rows in _rows(self) if "[" not in name)
        return f"<pyprof {kind_of(self)}: {names or 'no tables'}; to_dict() has everything>"

    def _repr_html_(self) -> str:
        if view := HTML_VIEWS.get(type(self)):
            return view(self)
        parts = [f"<h4>pyprof {escape(kind_of(self))}</h4>"]
        for name, frame in self.tables.items():
            if "[" in name or frame.empty:
                continue
            shown: str = frame.head(_SHOWN_ROWS).to_html(index=False, na_rep="")
            parts.append(f"<p><b>{escape(name)}</b></p>{shown}")
            if (more := len(frame) - _SHOWN_ROWS) > 0:
                parts.append(f"<p>... and {counted(more, 'more row')}</p>")
        return "".join(parts)


def _rows(value: object, name: str = "") -> Iterator[tuple[str, Sequence[object]]]:
    """Yield the sequences of dataclasses in an answer and in its parts."""
    if isinstance(value, (tuple, list)) and value and is_dataclass(value[0]):
        yield name, value
        for index, each in enumerate(value):
            yield from _rows(each, f"{name}[{index}]")
    elif is_dataclass(value):
        for each in json_fields(type(value)):
            yield from _rows(getattr(value, each.name), f"{name}.{each.name}".lstrip("."))


def table_columns(cls: type) -> dict[str, list[str]]:
    """Return the columns of the tables of an answer itself."""
    hints = get_type_hints(cls, localns={"Mapping": Mapping, "Sequence": Sequence})
    row_types = {each.name: get_args(hints[each.name])[:1] for each in json_fields(cls)}
    return {
        name: [column.name for column in json_fields(row[0])]
        for name, row in row_types.items()
        if row
        and isinstance(row[0], type)
        and is_dataclass(row[0])
        and get_origin(hints[name]) is tuple
    }
