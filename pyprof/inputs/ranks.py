"""The ranks in a set of captures: by a file's content, its name, or its position."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyprof import readers, schema
from pyprof.errors import CaptureError
from pyprof.inputs.files import is_url, names
from pyprof.inputs.find import NUMBERS, fetch, find
from pyprof.readers import read_head
from pyprof.records import parquet
from pyprof.records.records import Records
from pyprof.schema import Identity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyprof.inputs.executor import Executor


def _identity_of_records(path: Path) -> Identity:
    """Return the rank that all rows of a Parquet file have, or of the first dict line.

    If rows of a Parquet file have no rank, their processes, as for the capture that they were
    parsed from. Empty if it is not a file of records. Raises CaptureError if it does not exist.
    """
    if read_head(path).startswith(parquet.MAGIC):
        try:
            file = pq.ParquetFile(path)
            column = file.read(["rank"])
            ranks = pc.unique(column["rank"]).to_pylist() if column.num_columns else [None]
            if ranks == [None]:
                return Identity(pids=_processes(file.read(["pid", "device", "kind"])))
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):  # reported when read
            return Identity()
        rank = ranks[0] if len(ranks) == 1 else None
    else:
        with path.open("rb") as dict_lines:
            line = dict_lines.readline(_LONGEST)
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            return Identity()
        rank = record.get("rank") if isinstance(record, dict) else None
    return Identity(rank if type(rank) is int and 0 <= rank <= MAX_RANK else None)


_LONGEST = 1 << 20
"""Maximum bytes of a dict line; a file with a longer line is something else."""
MAX_RANK = 2**31 - 1
"""Larger numbers are not ranks."""


def _processes(rows: pa.Table) -> tuple[int, ...]:
    """Return the processes with GPU work, by device."""
    if rows.num_columns < 3:  # noqa: PLR2004 - some other table
        return ()
    rows = rows.filter(pc.not_equal(rows["kind"].cast(pa.string()), schema.KINDS[schema.CPU]))
    first = rows.group_by("pid", use_threads=False).aggregate([("device", "min")]).drop_null()
    first = first.sort_by([("device_min", "ascending"), ("pid", "ascending")])
    return tuple(first["pid"].to_pylist())


_NAMED = re.compile(
    r"(?<![a-z])rank[ ._=-]?(\d+)(?!\d)"  # net.rank3, rank_3.json, rank=3/part-0.parquet
    r"|(?<!\d)(\d+)of\d+(?!\d)",  # net_3of8
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RankedCapture:
    """A capture of a set."""

    url: str
    """Absolute path, or URL."""
    ranks: tuple[tuple[int | None, int], ...]
    """Process and rank of each rank in it; process None if the whole file is one rank's."""


def identify(url: str) -> Identity:
    """Return the rank or processes of a capture or file of records, reading little of it.

    The content takes precedence over the name; processes are returned if there are several. An
    unreadable file, reported by whoever reads all of it, and a URL with a rank in its name, which
    would have to be copied, are identified by name only.
    """
    named = rank_in(url)
    if named is not None and is_url(url):
        return Identity(named)
    try:
        with fetch(url) as path:
            if not readers.is_capture(path):
                identity = _identity_of_records(path)
            elif named is None or readers.tells_rank(path):
                identity = readers.identity(path)
            else:
                identity = Identity()
    except CaptureError:
        return Identity(named)
    if identity.rank is not None and 0 <= identity.rank <= MAX_RANK:
        return Identity(identity.rank)
    return Identity(named, identity.pids if named is None and len(identity.pids) > 1 else ())


def rank_in(url: str) -> int | None:
    """Return the last rank in a file's name, else that of a folder with only a rank as name."""
    *folders, name = names(url)
    matches = [*_NAMED.finditer(name)] or [*filter(None, map(_NAMED.fullmatch, folders))]
    return _rank_of_digits(matches[-1][1] or matches[-1][2]) if matches else None


def _rank_of_digits(digits: str) -> int | None:
    number = int(digits) if len(digits) <= _DIGITS else MAX_RANK + 1
    return number if number <= MAX_RANK else None


_DIGITS = 1000
"""Python refuses to parse very long numbers."""


def ranked_captures(sources: Sequence[str], executor: Executor) -> list[RankedCapture]:
    """Return the captures of a set by rank; `sources` are those of `find`.

    Files without a rank get the ranks that no file claims, in the order of their names. Raises
    CaptureError if two files claim the same rank, or come from the same process.
    """
    urls = find(sources)
    seen = executor.map(identify, urls, "looking at captures")
    identity_by_url = {
        one.item: identity_seen
        for one, identity_seen in zip(seen, executor.gather(seen), strict=True)
    }
    identities = [
        identity_by_url.get(url, Identity(rank_in(url))) for url in urls
    ]  # a lost worker reports nothing
    claims: Sequence[int | None] = [identity.rank for identity in identities]
    if all(identity == Identity() for identity in identities):
        claims = _ranks_in_names(urls)
    _check_claims(urls, claims)
    taken = {*claims}
    free = (rank for rank in count() if rank not in taken)
    captures = [
        RankedCapture(url, ((None, rank),))
        if rank is not None
        else RankedCapture(url, tuple((pid, next(free)) for pid in identity.pids or (None,)))
        for url, rank, identity in zip(urls, claims, identities, strict=True)
    ]
    return sorted(captures, key=lambda member: member.ranks[0][1])


_OF_CYCLE = re.compile(r"(.+)\.\d{10,}\.pt\.trace\.json(?:\.gz)?")
"""A name by `torch.profiler.tensorboard_trace_handler`: the process, and when it wrote the file."""


def _check_claims(urls: Sequence[str], claims: Sequence[int | None]) -> None:
    """Raise CaptureError if two files claim one rank or, without ranks, are of one process."""
    claimed: dict[int, str] = {}
    for url, rank in zip(urls, claims, strict=True):
        if rank is not None and (before := claimed.setdefault(rank, url)) != url:
            raise CaptureError(
                f"{before} and {url} are both rank {rank}; "
                "name the captures of one run, each rank once"
            )
    cycles: dict[str, str] = {}
    for url, rank in zip(urls, claims, strict=True):
        cycle = _OF_CYCLE.fullmatch(url) if rank is None else None
        if cycle and (before := cycles.setdefault(cycle[1], url)) != url:
            raise CaptureError(
                f"{before} and {url} are cycles of one process, not ranks; name one of them"
            )


def _ranks_in_names(urls: Sequence[str]) -> Sequence[int | None]:
    """Take the only number in which names differ as the rank, if it starts at 0."""
    nothing = [None] * len(urls)
    parts = [NUMBERS.split(url) for url in urls]
    if len(urls) < 2 or len({len(part) for part in parts}) > 1:  # noqa: PLR2004 - two differ
        return nothing
    differing = [column for column in zip(*parts, strict=True) if len(set(column)) > 1]
    if len(differing) != 1 or not all(text.isdecimal() for text in differing[0]):
        return nothing
    ranks = [_rank_of_digits(text) for text in differing[0]]
    valid = [rank for rank in ranks if rank is not None]
    return ranks if len(set(valid)) == len(ranks) and min(valid) == 0 else nothing


def with_ranks(records: Records, member: RankedCapture) -> Records:
    """Fill in `rank`, by process if the capture has several.

    A row of any other process keeps its rank.
    """
    if len(member.ranks) == 1:
        ranks = np.full(records.rows, member.ranks[0][1], np.int64)
    else:
        pid, ranks = records.numpy("pid"), records.numpy("rank").copy()
        for process, rank in member.ranks:
            ranks[pid == process] = rank
    columns = {**records.columns, "rank": pa.array(ranks, mask=ranks < 0)}
    return Records(records.rows, columns, records.devices, records.warnings)
