"""Records as Parquet: the same columns under the same names, lists as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from pyprof import schema
from pyprof.errors import RecordsError
from pyprof.parse.records import Records

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"PAR1"

_ROWS = 1 << 17


def write(records: Records, file: BinaryIO, columns: pa.Schema = schema.RECORD) -> None:
    """Write all records, row group by row group; `columns` are all or some of the schema's."""
    with pq.ParquetWriter(file, columns, compression="zstd") as writer:
        for start in range(0, records.rows, _ROWS):
            writer.write_table(records.slice(start, _ROWS).table().select(columns.names))


def read(path: Path) -> Records:
    """Read a file that `write` wrote; raise RecordsError for any other."""
    try:
        table = pq.read_table(path, partitioning=None)  # "rank=0/" in a path is no column
    except (pa.ArrowException, OSError) as error:
        raise RecordsError(
            f"{path}: a damaged Parquet file ({_line(error)}); parse again"
        ) from None
    if missing := [name for name in schema.OLD_RECORD.names if name not in table.column_names]:
        raise RecordsError(
            f"{path}: a Parquet file without the columns {', '.join(missing[:3])}; "
            "expected one that pyprof parse -o FILE.parquet wrote"
        )
    known = [name for name in schema.RECORD.names if name in table.column_names]
    try:
        table = table.select(known).cast(pa.schema([schema.RECORD.field(name) for name in known]))
        table.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        raise RecordsError(
            f"{path}: a Parquet file with columns of other types ({_line(error)}); parse again"
        ) from None
    return Records(table.num_rows, {name: table.column(name) for name in known})


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
