"""`pyprof.load`: a capture or parsed records as a pandas DataFrame."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from pyprof.parse.recordfile import load as load_records
from pyprof.parse.records import encode
from pyprof.prof.columns import COLUMNS
from pyprof.prof.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    per input tensor, `sizes` and `dtypes`: arrays, one for all rows that have the same. Dtypes are
    Int64, Float64 and string, with <NA> for what is not known. Raises PyprofError where the file
    cannot be used.
    """
    records = load_records(os.fspath(path))
    table = Table(records, override) if override else Table(records)
    return _frame(as_arrow(table))


def as_arrow(table: Table) -> pa.Table:
    """Give the same columns as an Arrow table."""
    _ = table.costs, table.judged, table.roofline  # what columns share, before they are made
    with ThreadPoolExecutor() as pool:  # Arrow works outside Python's lock
        columns = pool.map(lambda column: column.values(table), COLUMNS.values())
        more = pool.map(table.records.arrow, _MORE.values())
        return pa.table([*columns, *more], [*COLUMNS, *_MORE])


def _frame(rows: pa.Table) -> pd.DataFrame:
    lists = [name for name in rows.column_names if pa.types.is_list(rows.schema.field(name).type)]
    frame: pd.DataFrame = rows.drop_columns(lists).to_pandas(
        types_mapper=_DTYPES.get, split_blocks=True
    )
    for name in lists:
        frame.insert(rows.column_names.index(name), name, _objects(rows.column(name)))
    return frame


def _objects(column: pa.ChunkedArray) -> NDArray[np.object_]:
    """Make arrays of lists as Arrow does, but one of each distinct list."""
    coded = encode(column.combine_chunks())
    with_null = [*coded.values, None]  # noqa: PD011 - no Series
    arrays = pa.array(with_null, column.type).to_pandas().to_numpy()
    return np.asarray(arrays[coded.index])  # null is the last
