"""A Parquet dataset with one file per rank: `FOLDER/rank=N/part-0.parquet`, as Hive does.

pyarrow, pandas, Dask, Spark and DuckDB read the column `rank` from the folders' names. A file
appears only when complete, and records its source capture, so that an interrupted run can continue.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyprof import sanitize, schema
from pyprof.errors import CaptureError, PyprofError
from pyprof.inputs.counters import with_counters
from pyprof.inputs.files import files_of, is_url, names, writing
from pyprof.inputs.find import PARTITION, fetch, parts
from pyprof.inputs.ranks import rank_in, ranked_captures, with_ranks
from pyprof.parse import parse_file
from pyprof.process import atomic_files
from pyprof.readers import settings
from pyprof.records import parquet
from pyprof.records.merging import merge_sums, merge_unique, merged_by
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.inputs.executor import Executor
    from pyprof.inputs.files import FileSystem
    from pyprof.inputs.ranks import RankedCapture

COLUMNS = pa.schema([field for field in schema.PARQUET if field.name != "rank"])
"""Columns of each file; the rank is in the folder's name."""

_PART = "part-0.parquet"
_SOURCE = b"pyprof.source"
"""Key in a file's metadata for what it was made from."""


@dataclass(frozen=True, slots=True)
class WrittenRanks:
    """The outcome of writing captures."""

    ranks: tuple[int, ...]
    written: int
    """How many of the ranks are new."""
    rows: int
    """Rows of all the ranks."""
    warnings: tuple[str, ...] = merged_by(merge_unique, default=())
    """Warnings about the captures, without duplicates."""


def write_all(
    captures: Sequence[str], folder: str, executor: Executor, *, kernels_only: bool = False
) -> WrittenRanks:
    """Write every rank of a set of captures that is missing; each where its capture is read.

    Raises CaptureError if none can be read or, with a strict executor, one cannot; PyprofError if
    nothing can be written.
    """
    files = files_of(folder)
    location = files.absolute(folder)
    if not is_url(location):
        with writing(folder):
            Path(location).mkdir(parents=True, exist_ok=True)  # fails before the work, not after it
        for rank in Path(location).glob(f"{PARTITION}*"):
            if rank.is_symlink():  # the file would go elsewhere
                raise PyprofError(f"{rank}: is a link; remove it, or choose another folder with -o")
    work = partial(write, folder=location, kernels_only=kernels_only)
    try:
        captures_by_rank = ranked_captures(captures, executor)
        if any(_is_in(member.url, location) for member in captures_by_rank):
            raise PyprofError(f"{folder}: contains the captures; choose another place with -o")
        done = executor.reduce(merge_sums, executor.map(work, captures_by_rank, "parsing"))
    finally:
        if not is_url(location):
            remove_leftovers(Path(location))
    there = {rank_in(part) for part in parts(files, location)}
    if lost := sorted(set(done.ranks) - there):
        raise PyprofError(
            f"{folder}: rank {lost[0]} is missing; the workers wrote it where this process "
            "cannot see it: use a folder that all of them share"
        )
    if more := sorted(rank for rank in there.difference(done.ranks) if rank is not None):
        text = f"{folder} also contains rank {', '.join(map(str, more))}, not from these captures"
        done = replace(done, warnings=(*done.warnings, text))
    return done


def part(folder: str, rank: int) -> str:
    """Return the path of a rank's file."""
    return f"{folder}/{PARTITION}{rank}/{_PART}"


def write(member: RankedCapture, folder: str, *, kernels_only: bool = False) -> WrittenRanks:
    """Write the ranks of a capture that are missing.

    Raises CaptureError if the capture cannot be read, PyprofError if nothing can be written.
    """
    files = files_of(folder)
    source_of_rank = {
        rank: _identify_source(member.url, pid, kernels_only) for pid, rank in member.ranks
    }
    rows = {
        rank: _rows(files, part(folder, rank), source) for rank, source in source_of_rank.items()
    }
    missing = [rank for rank, row_count in rows.items() if row_count is None]
    warnings: tuple[str, ...] = ()
    if missing:
        for rank in missing:
            files.remove(part(folder, rank))  # made from another capture, or damaged
        with fetch(member.url) as path:
            records = with_ranks(parse_file(path, kernels_only=kernels_only), member)
        records = with_counters(records)
        warnings = records.warnings
        for rank in missing:
            chosen = np.flatnonzero(records.numpy("rank") == rank)
            of_rank = records if len(chosen) == records.rows else records.take(chosen)
            rows[rank] = of_rank.rows
            try:
                with files.output(part(folder, rank)) as file:
                    metadata = {_SOURCE: source_of_rank[rank]}
                    parquet.write(of_rank, file, COLUMNS.with_metadata(metadata))
            except PyprofError:
                if not is_url(folder):
                    remove_leftovers(Path(folder))  # again: others may have been first
                raise
    return WrittenRanks(
        tuple(rows), len(missing), sum(row_count or 0 for row_count in rows.values()), warnings
    )


def remove_leftovers(folder: Path) -> None:
    """Remove files of processes that died while writing, and empty folders."""
    ranks = [*folder.glob(f"{PARTITION}*")]
    for rank in ranks:
        for left in rank.glob(f".{_PART}.*"):
            atomic_files.remove_if_stale(left, young_s=0)  # workers have just ended
    for location in (*ranks, folder):
        with suppress(OSError):  # not empty; another process may have just written to it
            location.rmdir()


def _is_in(url: str, folder: str) -> bool:
    """Whether a capture is directly in a folder, or in a rank's folder of the dataset there."""
    outer, inner = names(folder), names(url)
    if not is_url(url):  # links may lead to its folder
        outer = names(str(Path(folder).resolve()))
        inner = [*names(str(Path(url).parent.resolve())), inner[-1]]
    first, *more = inner[len(outer) :] or [""]
    return inner[: len(outer)] == outer and (not more or first.startswith(PARTITION))


def _identify_source(url: str, pid: int | None, kernels_only: bool) -> bytes:  # noqa: FBT001 - one of few
    """Return what identifies a capture and the options it is read with."""
    about = [
        names(sanitize.redact_credentials(url))[-1],
        files_of(url).stamp(url),
        pid,
        kernels_only,
        __version__,
    ]
    about += settings.graph_captures()
    if counters := settings.counters():
        about += [names(counters)[-1], files_of(counters).stamp(counters)]
    return json.dumps(about).encode()


def captured_in(path: Path) -> str | None:
    """Identify the capture of a rank's file, if that capture has several ranks; else None."""
    try:
        name, stamp, pid, *_ = json.loads((pq.read_metadata(path).metadata or {})[_SOURCE])
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError):
        return None
    return None if pid is None else f"{name} {stamp}"


def _rows(files: FileSystem, location: str, made_from: bytes) -> int | None:
    """Return the row count of a file made from this source; None if it is another, or damaged."""
    try:
        with files.opened(location) as file:
            metadata = pq.read_metadata(file)
    except (OSError, CaptureError, pa.ArrowException):
        return None
    return int(metadata.num_rows) if (metadata.metadata or {}).get(_SOURCE) == made_from else None
