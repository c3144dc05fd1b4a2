"""Writes captures in a format: rows some at a time, sums added up, sets rank by rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.analysis.summary.phases import with_steps
from pyprof.errors import PyprofError
from pyprof.export import Part
from pyprof.frame import as_arrow, encoded_column
from pyprof.inputs.source import STAGES, items, load, map_reduce
from pyprof.process import atomic_files
from pyprof.prof.group import counts, renumber
from pyprof.records.merging import merge_sums, merge_unique, merged_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyprof.export import Format
    from pyprof.inputs.executor import Executor
    from pyprof.inputs.ranks import RankedCapture
    from pyprof.inputs.source import Source
    from pyprof.prof.columns.standard import Column
    from pyprof.prof.table import Override, Table
    from pyprof.records.records import Records

_ROWS, _TEXT_BYTES = 1 << 17, 1 << 27
"""Maximum written at once."""
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def tables(table: Table) -> Iterator[pa.Table]:
    """Yield the columns of `pyprof.load`, some rows at a time; at least one table."""
    return _decode_slices(_compact(table))


def _write_rows(source: Source, file: BinaryIO) -> None:
    """Write the rows of a capture, to be read by `_renumbered_tables`."""
    rows = _compact(with_steps(source))
    with pa.ipc.new_stream(file, rows.schema, options=_OPTIONS) as stream:
        stream.write_table(rows)


def _renumbered_tables(parts: Iterable[Part]) -> Iterator[pa.Table]:
    """Yield the rows of captures as `tables` does, with continued `idx` and `opid`."""

    def read(path: Path) -> pa.Table:
        with path.open("rb") as file, pa.ipc.open_stream(file) as stream:
            return stream.read_all()

    for rows in renumber((read(part.path), part.counts) for part in parts):
        yield from _decode_slices(rows)


def _compact(table: Table) -> pa.Table:
    """Return columns with dictionary-encoded texts and lists: formatted ones are large."""

    def recorded(records: Records, name: str) -> pa.Array:
        if pa.types.is_string(schema.PARQUET.field(name).type):
            return records.dictionary(name).dictionary_array()
        return encoded_column(records, name)

    def held(column: Column, table: Table) -> pa.Array:
        values = column.held(table)
        return values.dictionary_encode() if pa.types.is_string(values.type) else values

    return as_arrow(table, recorded, held)


def _decode_slices(rows: pa.Table) -> Iterator[pa.Table]:
    """Decode the columns, so many rows at once that their texts stay small."""
    size = 0
    for column in rows.columns:
        if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
            for chunk in column.chunks:
                used = np.bincount(chunk.indices.drop_null(), minlength=len(chunk.dictionary))
                size += int(used @ np.asarray(pc.binary_length(chunk.dictionary)))
    at_once = max(1, min(_ROWS, _TEXT_BYTES * rows.num_rows // max(1, size)))
    for start in range(0, rows.num_rows or 1, at_once):
        part = rows.slice(start, at_once)
        yield pa.table([*map(_decode, part.columns)], part.column_names)


def _decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    parts = [chunk.dictionary.take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(parts, column.type.value_type)


@dataclass(frozen=True, slots=True)
class _Summed:
    sums: Any
    warnings: tuple[str, ...] = merged_by(merge_unique)


WRITE_STAGES = STAGES + 1
"""Number of stages that `write` reports for a single file."""


def write(
    paths: Sequence[str],
    form: Format,
    target: str,
    file: BinaryIO,
    override: Override,
    executor: Executor,
    begin: Callable[[str], object] = str,
    **options: Any,  # noqa: ANN401 - by name
) -> tuple[str, ...]:
    """Write one capture, or all of a set, to `file`, opened for `target`; return warnings.

    `options` are those that the format takes. Rows of a set are first written rank by rank to files
    beside the target. Raises as `load` does.
    """
    exporter = form.load()
    if exporter.KIND == "sums":
        summarise = partial(_summarise_sums, exporter.sums)
        summed: _Summed = map_reduce(paths, summarise, merge_sums, executor, override, begin)
        begin("writing")
        exporter.write(summed.sums, file, **options)
        return summed.warnings
    chosen = items(paths, executor)
    if len(chosen) == 1:  # which needs no intermediate file
        alone = load(chosen[0], override, begin)
        begin("writing")
        if exporter.KIND == "events":
            exporter.write(alone, file)
        else:
            with_steps(alone)
            alone = replace(alone, capture=None)  # large, and not in the table
            exporter.write(tables(alone.table), file, **options)
        return alone.table.source.warnings
    keep = exporter.write if exporter.KIND == "events" else _write_rows
    # beside the target, which workers on other machines may see, too
    with atomic_files.temp_directory(Path(target)) as scratch:
        work = partial(_part, keep=keep, folder=scratch, override=override)
        written = [*executor.gather(executor.map(work, chosen, "writing captures"))]
        parts = [part for part, _ in written]
        if exporter.KIND == "events":
            exporter.join(parts, file)
        else:
            exporter.write(_renumbered_tables(parts), file, **options)
    return tuple(dict.fromkeys(text for _, warnings in written for text in warnings))


def _summarise_sums(sums: Callable[[Source], Any], source: Source) -> _Summed:
    return _Summed(sums(source), source.table.source.warnings)


def _part(
    item: RankedCapture, keep: Callable[[Source, BinaryIO], None], folder: str, override: Override
) -> tuple[Part, tuple[str, ...]]:
    """Write the file of one capture of a set; return it, and the capture's warnings."""
    ranks = [str(rank) for _, rank in item.ranks]
    path = Path(folder, ranks[0])
    name = f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(ranks)}"
    source = load(item, override)
    try:
        with path.open("wb") as file:
            keep(source, file)
    except OSError as error:
        raise PyprofError(
            f"{path}: {error.strerror or error}; workers write beside the output: choose a place "
            "where both they and you can write"
        ) from None
    return Part(name, path, counts(source.table)), source.table.source.warnings
