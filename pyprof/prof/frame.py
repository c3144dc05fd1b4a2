"""`pyprof.load`: a capture or parsed records as a pandas DataFrame."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
import pyarrow as pa

from pyprof.parse.recordfile import load as load_records
from pyprof.prof.columns import COLUMNS, FLOAT, INT, TEXT
from pyprof.prof.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.prof.table import Override

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


def load(path: str | os.PathLike[str], override: Override | None = None) -> pd.DataFrame:
    """Load a capture, dict lines or Parquet: a row per activity, in GPU-start order.

    Columns are those of `pyprof prof` under their names there, then `long_name`, `sizes` and
    `dtypes`; docs/frame.md says what each holds, in which unit. All columns are always there.
    Dtypes are Int64, Float64 and string with <NA> for what is not known, and object for the two
    columns of lists, with None. `override` stands for what is known of the device.

    Raises PyprofError where the file cannot be used.
    """
    records = load_records(os.fspath(path))
    table = Table(records, override) if override else Table(records)
    frame: pd.DataFrame = as_arrow(table).to_pandas(types_mapper=_DTYPES.get)
    return frame


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
