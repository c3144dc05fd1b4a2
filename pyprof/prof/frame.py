"""`pyprof.load`: a capture or parsed records as a pandas DataFrame."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from pyprof.parse.recordfile import load as load_records
from pyprof.prof.columns import COLUMNS
from pyprof.prof.table import Table

if TYPE_CHECKING:
    from pyprof.prof.table import Override

_MORE = {"long_name": "kLongName", "sizes": "sizes", "dtypes": "dtypes"}
_DTYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.string(): pd.StringDtype("pyarrow"),
}


def load(path: str | os.PathLike[str], override: Override | None = None) -> pd.DataFrame:
    """Load a capture, dict lines or Parquet: a row per activity, in GPU-start order.

    Columns are those of `pyprof prof` under their names there, times in ns; then `long_name` and,
    per input tensor, `sizes` and `dtypes`. Dtypes are Int64, Float64 and string, with <NA> for
    what is not known. Raises PyprofError where the file cannot be used.
    """
    records = load_records(os.fspath(path))
    table = Table(records, override) if override else Table(records)
    frame: pd.DataFrame = as_arrow(table).to_pandas(types_mapper=_DTYPES.get)
    return frame


def as_arrow(table: Table) -> pa.Table:
    """Give the same columns as an Arrow table."""
    columns = {name: column.values(table) for name, column in COLUMNS.items()}
    columns |= {ours: table.records.arrow(theirs) for ours, theirs in _MORE.items()}
    return pa.table(columns)
