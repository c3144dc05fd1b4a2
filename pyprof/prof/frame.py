"""`pyprof.load`: a capture or parsed records as a pandas DataFrame."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pandas as pd
import pyarrow as pa

from pyprof.parse.members import items
from pyprof.parse.members import load as load_records
from pyprof.prof.columns import COLUMNS, FLOAT, INT, TEXT
from pyprof.prof.table import Table
from pyprof.sets.engine import opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyprof.parse.members import Item
    from pyprof.prof.table import Override

_Path: TypeAlias = "str | os.PathLike[str]"

_MORE = {
    # name: the record's key, its pandas dtype, its meaning
    "long_name": ("kLongName", "string", "Full name of the kernel, demangled."),
    "sizes": ("sizes", "object", "Shape of each input tensor of its op call: a list of lists."),
    "dtypes": ("dtypes", "object", "Dtype of each input tensor of its op call: a list of texts."),
}
_DTYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.string(): pd.StringDtype("pyarrow"),
}


def load(
    path: _Path | Iterable[_Path], override: Override | None = None, *, workers: int = 1
) -> pd.DataFrame:
    """Load a capture, dict lines or Parquet: a row per activity, in GPU-start order.

    Several paths, a folder, a glob or a URL are the captures of one run: the rows of each rank
    follow those of the one before, read by `workers` processes.

    Columns are those of `pyprof prof` under their names there, then `long_name`, `sizes` and
    `dtypes`; docs/frame.md says what each holds, in which unit. All columns are always there.
    Dtypes are Int64, Float64 and string with <NA> for what is not known, and object for the two
    columns of lists, with None. `override` stands for what is known of the device.

    Raises PyprofError where a file cannot be used.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    with opened(workers, strict=True) as engine:
        chosen = items([os.fspath(each) for each in paths], engine)
        parts = engine.map(partial(_of, override=override), chosen, "loading captures")
        whole = pa.concat_tables(engine.gather(parts))
    frame: pd.DataFrame = whole.to_pandas(types_mapper=_DTYPES.get)
    return frame


def _of(item: Item, override: Override | None) -> pa.Table:
    records = load_records(item)
    return as_arrow(Table(records, override) if override else Table(records))


def as_arrow(table: Table) -> pa.Table:
    """Give the same columns as an Arrow table."""
    columns = {name: column.values(table) for name, column in COLUMNS.items()}
    columns |= {name: table.records.arrow(key) for name, (key, _, _) in _MORE.items()}
    return pa.table(columns)


class Meaning(NamedTuple):
    """What a column of the frame holds."""

    name: str
    dtype: str
    unit: str
    help: str


def meanings() -> Iterator[Meaning]:
    """Describe the frame's columns, in their order."""
    dtypes = {INT: "Int64", FLOAT: "Float64", TEXT: "string"}
    for column in COLUMNS.values():
        yield Meaning(column.name, dtypes[column.kind], column.unit, column.help)
    for name, (_, dtype, text) in _MORE.items():
        yield Meaning(name, dtype, "", text)
