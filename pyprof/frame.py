"""`pyprof.load`: a capture or parsed records as a pandas DataFrame."""

from __future__ import annotations

import os
from functools import partial
from operator import add
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from pyprof import schema
from pyprof.analysis.summary.phases import with_steps
from pyprof.inputs.executor import open_executor
from pyprof.inputs.source import Source, map_reduce
from pyprof.process.threads import thread_pool
from pyprof.prof.columns.standard import COLUMNS, FLOAT, INT, NUMBERS, TEXT, Column
from pyprof.prof.group import Counts, counts, renumber
from pyprof.readers import settings
from pyprof.records.records import Records, concat_dictionaries, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyprof.prof.table import Override, Table

_Path: TypeAlias = "str | os.PathLike[str]"
Paths: TypeAlias = "_Path | Iterable[_Path]"

_MORE = {
    # name: the record's key, its pandas dtype, its meaning
    "long_name": ("kLongName", "string", "Full name of the kernel, demangled."),
    "sizes": ("sizes", "object", "Shape of each input tensor of its op call: a list of lists."),
    "dtypes": ("dtypes", "object", "Dtype of each input tensor of its op call: a list of texts."),
}
_LOADED = "pyprof"
"""Attribute of a frame that names its captures."""
_AT_ONCE = 2
"""Columns computed at a time: each temporarily holds some of its texts twice."""
_DTYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.string(): pd.StringDtype("pyarrow"),
}


def load(
    path: Paths,
    override: Override | None = None,
    *,
    workers: int = 1,
    graph_captures: _Path | Iterable[_Path] = (),
    counters: _Path | None = None,
) -> pd.DataFrame:
    """Load a capture, dict lines or Parquet: one row per activity, in the order of GPU starts.

    Several paths, a folder, a glob or a URL are the captures of one run: the rows of each rank
    follow those of the previous one, read by `workers` processes; `idx` and `opid` continue.

    Columns are those of `pyprof prof` under the same names, then `long_name`, `sizes` and
    `dtypes`; docs/frame.md lists the meaning and unit of each. All columns are always present.
    Dtypes are Int64, Float64 and string with <NA> for unknown values, and object for the two
    columns of lists: arrays, one for all rows with the same value, or None. `override` replaces
    what is known of the device. `graph_captures` are traces of the capture of CUDA graphs, or
    folders of them; the default is capture_traces/ beside each trace. `counters` is the CSV of a
    run of the same kernels under Nsight Compute.

    Raises PyprofError if a file cannot be used.
    """
    paths = paths_of(path, "load", override)
    with (
        settings.using_files(graph_captures, counters),
        open_executor(workers, strict=True) as executor,
    ):
        parts = map_reduce(paths, summarise_frame, add, executor, override)
        frame = _frame(pa.concat_tables(renumber(parts)))
        frame.attrs[_LOADED] = {"paths": paths, "rows": len(frame)}
        return frame


def paths_of(given: Paths, function: str, override: object = None) -> list[str]:
    """Return the paths that a user gave to a function; raises TypeError for anything else.

    A path in the place of the function's `override` was meant as a second capture.
    """
    if isinstance(override, (str, os.PathLike)):
        raise TypeError(f"pyprof.{function}() takes several captures as one list")
    if hasattr(given, "columns"):
        raise TypeError(f"pyprof.{function}() takes the path of a capture, not a frame")
    several = [given] if isinstance(given, (str, os.PathLike)) else given
    try:
        paths = [os.fspath(each) for each in several]
    except TypeError:
        raise TypeError(
            f"pyprof.{function}() takes the path of a capture, or a list of paths, not {given!r}"
        ) from None
    if not paths:
        raise ValueError(f"pyprof.{function}() got no path; name a capture")
    return paths


def loaded_paths(frame: pd.DataFrame, function: str) -> list[str]:
    """Return the paths of a frame; raises ValueError if its rows are not those of `load`."""
    loaded = frame.attrs.get(_LOADED)
    if loaded is None or loaded["rows"] != len(frame):
        raise ValueError(
            f"pyprof.{function}() takes all rows that pyprof.load() returned, or the path"
        )
    return [*loaded["paths"]]


def summarise_frame(source: Source) -> tuple[tuple[pa.Table, Counts], ...]:
    """Compute the columns of one capture: the only part of a tuple, to which others are added."""
    table = with_steps(source)
    return ((as_arrow(table, encoded_column), counts(table)),)


def as_arrow(
    table: Table,
    recorded: Callable[[Records, str], pa.Array] = Records.arrow,
    column_values: Callable[[Column, Table], pa.Array] = Column.values,
) -> pa.Table:
    """Return the columns of `load` as an Arrow table.

    `column_values` returns those of `pyprof prof`, perhaps dictionary-encoded, and `recorded` the
    others.
    """
    _ = table.costs, table.classified, table.roofline  # shared by the columns below
    with thread_pool(_AT_ONCE) as pool:  # Arrow works outside Python's lock
        columns = pool.map(lambda column: column_values(column, table), COLUMNS.values())
        more = pool.map(partial(recorded, table.records), (key for key, _, _ in _MORE.values()))
        return pa.table([*columns, *more], [*COLUMNS, *_MORE])


def encoded_column(records: Records, name: str) -> pa.Array:
    """Return a column of records; lists are dictionary-encoded."""
    kind = schema.PARQUET.field(name).type
    if not pa.types.is_list(kind):
        return records.arrow(name)
    coded = records.dictionary(name)
    return pa.DictionaryArray.from_arrays(coded.arrow_index(), pa.array(coded.values, kind))


def _frame(rows: pa.Table) -> pd.DataFrame:
    lists = [field.name for field in rows.schema if pa.types.is_dictionary(field.type)]
    others = rows.drop_columns(lists)
    frame: pd.DataFrame = others.to_pandas(types_mapper=_DTYPES.get, split_blocks=True)
    for name in lists:
        # convert lists to arrays as Arrow does, but only one per distinct list
        column = rows.column(name)
        coded = concat_dictionaries([encode(chunk) for chunk in column.chunks])
        with_null = [*coded.values, None]  # noqa: PD011 - no Series
        arrays = pa.array(with_null, column.type.value_type).to_pandas().to_numpy()
        frame.insert(rows.column_names.index(name), name, np.asarray(arrays[coded.index]))
    return frame


class Meaning(NamedTuple):
    """The meaning of a column of the frame."""

    name: str
    dtype: str
    unit: str
    help: str


def meanings() -> Iterator[Meaning]:
    """Describe the frame's columns, in order."""
    dtypes = {INT: "Int64", FLOAT: "Float64", TEXT: "string", NUMBERS: "string"}
    for column in COLUMNS.values():
        yield Meaning(column.name, dtypes[column.kind], column.unit, column.help)
    for name, (_, dtype, text) in _MORE.items():
        yield Meaning(name, dtype, "", text)
