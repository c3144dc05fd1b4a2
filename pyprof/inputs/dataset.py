"""A folder of Parquet files, one a rank: `FOLDER/rank=N/part-0.parquet`, as Hive lays it out.

pyarrow, pandas, Dask, Spark and DuckDB read the column `rank` from the folders' names. A file is
there only when it is whole, and tells which capture it was made from, so that a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import json
import operator
from contextlib import suppress
from dataclasses import dataclass
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
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.inputs.executor import Executor
    from pyprof.inputs.files import FileSystem
    from pyprof.inputs.ranks import RankedCapture
    from pyprof.records.records import Records

COLUMNS = pa.schema([field for field in schema.PARQUET if field.name != "rank"])
"""Of each file; the rank is in the folder's name."""

_PART = "part-0.parquet"
_SOURCE = b"pyprof.source"


@dataclass(frozen=True, slots=True)
class WrittenRanks:
    """What became of some captures."""

    ranks: tuple[int, ...]
    written: int
    """How many of the ranks were not there before."""
    rows: int
    """Of all the ranks."""
    warnings: tuple[str, ...] = ()
    """What hides or distorts something, each once."""

    def __add__(self, other: WrittenRanks) -> WrittenRanks:
        return WrittenRanks(
            self.ranks + other.ranks,
            self.written + other.written,
            self.rows + other.rows,
            tuple(dict.fromkeys(self.warnings + other.warnings)),
        )


def write_all(
    captures: Sequence[str], folder: str, executor: Executor, *, kernels_only: bool = False
) -> WrittenRanks:
    """Write every rank of a set of captures that is not there yet; each is done where it is read.

    Raises CaptureError where none can be read or, when the executor is strict, one cannot;
    PyprofError where nothing can be written.
    """
    files = files_of(folder)
    place = files.absolute(folder)
    if not is_url(place):
        with writing(folder):
            Path(place).mkdir(parents=True, exist_ok=True)  # wrong before the work, not behind it
        _check_links(Path(place))
    work = partial(write, folder=place, kernels_only=kernels_only)
    try:
        captures_by_rank = ranked_captures(captures, executor)
        if any(_is_in(member.url, place) for member in captures_by_rank):
            raise PyprofError(f"{folder}: contains the captures; choose another place with -o")
        done = executor.reduce(operator.add, executor.map(work, captures_by_rank, "parsing"))
    finally:
        if not is_url(place):
            tidy(Path(place))
    there = {rank_in(part) for part in parts(files, place)}
    if lost := sorted(set(done.ranks) - there):
        raise PyprofError(
            f"{folder}: rank {lost[0]} is missing; the workers wrote it where this process "
            "cannot see it: use a folder that all of them share"
        )
    if more := sorted(rank for rank in there.difference(done.ranks) if rank is not None):
        text = f"{folder} also contains rank {', '.join(map(str, more))}, not from these captures"
        done += WrittenRanks((), 0, 0, (text,))
    return done


def _check_links(folder: Path) -> None:
    """Raise PyprofError where a rank's folder is a link: what is written would be elsewhere."""
    for place in folder.glob(f"{PARTITION}*"):
        if place.is_symlink():
            raise PyprofError(f"{place}: is a link; remove it, or choose another folder with -o")


def part(folder: str, rank: int) -> str:
    """Name the file of a rank."""
    return f"{folder}/{PARTITION}{rank}/{_PART}"


def write(member: RankedCapture, folder: str, *, kernels_only: bool = False) -> WrittenRanks:
    """Write the ranks of a capture that are not there yet.

    Raises CaptureError where the capture cannot be read, PyprofError where nothing can be written.
    """
    files = files_of(folder)
    source_of_rank = {rank: _made_from(member.url, pid, kernels_only) for pid, rank in member.ranks}
    rows = {
        rank: _rows(files, part(folder, rank), source) for rank, source in source_of_rank.items()
    }
    missing = [rank for rank, row_count in rows.items() if row_count is None]
    warnings: tuple[str, ...] = ()
    if missing:
        for rank in missing:
            files.remove(part(folder, rank))  # of another capture, or damaged
        with fetch(member.url) as path:
            records = with_ranks(parse_file(path, kernels_only=kernels_only), member)
        records = with_counters(records)
        warnings = records.warnings
        for rank in missing:
            of_rank = _of_rank(records, rank)
            rows[rank] = of_rank.rows
            try:
                with files.output(part(folder, rank)) as file:
                    metadata = {_SOURCE: source_of_rank[rank]}
                    parquet.write(of_rank, file, COLUMNS.with_metadata(metadata))
            except PyprofError:
                if not is_url(folder):
                    tidy(Path(folder))  # others may have tidied up before
                raise
    return WrittenRanks(
        tuple(rows), len(missing), sum(row_count or 0 for row_count in rows.values()), warnings
    )


def tidy(folder: Path) -> None:
    """Remove what processes left that ended while they wrote, and folders without files."""
    ranks = [*folder.glob(f"{PARTITION}*")]
    for rank in ranks:
        for left in rank.glob(f".{_PART}.*"):
            atomic_files.remove_if_stale(left, young_s=0)  # workers have just ended
    for place in (*ranks, folder):
        with suppress(OSError):  # it holds something, perhaps since a moment ago
            place.rmdir()


def _is_in(url: str, folder: str) -> bool:
    """Tell whether a capture is directly in a folder, or in a rank's of the dataset there."""
    outer, inner = names(folder), names(url)
    if not is_url(url):  # links may lead to its folder
        outer = names(str(Path(folder).resolve()))
        inner = [*names(str(Path(url).parent.resolve())), inner[-1]]
    first, *more = inner[len(outer) :] or [""]
    return inner[: len(outer)] == outer and (not more or first.startswith(PARTITION))


def _of_rank(records: Records, rank: int) -> Records:
    rows = np.flatnonzero(records.numpy("rank") == rank)
    return records if len(rows) == records.rows else records.take(rows)


def _made_from(url: str, pid: int | None, kernels_only: bool) -> bytes:  # noqa: FBT001 - one of few
    """Tell captures, and ways to read them, apart."""
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
    """Tell the captures apart from which files of ranks were made that were captured as one.

    None for what is no such file, or the only one of its capture.
    """
    try:
        name, stamp, pid, *_ = json.loads((pq.read_metadata(path).metadata or {})[_SOURCE])
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError):
        return None
    return None if pid is None else f"{name} {stamp}"


def _rows(files: FileSystem, place: str, made_from: bytes) -> int | None:
    """Count the rows of a file made from this; None where it is another or not whole."""
    try:
        with files.opened(place) as file:
            metadata = pq.read_metadata(file)
    except (OSError, CaptureError, pa.ArrowException):
        return None
    return int(metadata.num_rows) if (metadata.metadata or {}).get(_SOURCE) == made_from else None
