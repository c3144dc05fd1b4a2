"""The recordings of a rocpd file: tables in columns that all schemas share; numbers of processes.

The tables of a recording have its id as a suffix; a merged file has several suffixes, or rows with
several `guid`. Ids are unique within a recording only, so each is read for itself. In containers
many processes have the same number: `Processes` makes them unique in a file.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import MISSING, ints, or_null
from pyprof.readers.sqlite import tables as _sqlite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyprof.arrays import Int64Array
    from pyprof.readers.sqlite.tables import Database, Strings


_WORK = re.compile(r"_?rocpd_(?:kernel_dispatch|memory_copy)((?:_[0-9a-f]+)*)")
"""Tables of GPU work; what follows is the suffix of their recording."""
_NAMES = ("rocpd_info_{}", "rocpd_{}", "_rocpd_{}")
"""Names of a table, newest first."""
_IDENTIFIED = ("process", "node", "thread", "agent")
"""Small tables whose rows identify recordings."""

_TIMES = {"start": "start_id", "end": "end_id"}
"""Schema 4 refers to its table of timestamps."""
_PLACES = ("nid", "pid", "tid", "agent_id", "queue_id", "stream_id")
"""Schema 4 has these in its table of tracks."""
_OLD_NAMES = {"nid": "node_id"}
"""Names of such a column in schemas without tracks."""


def suffixes(tables: frozenset[str]) -> list[str]:
    """Return the suffixes of all recordings of a file, sorted; empty if it is not a rocpd file."""
    matches = (_WORK.fullmatch(name) for name in tables)
    return sorted({match[1] for match in matches if match})


def recordings(db: Database) -> list[Recording]:
    """Return all recordings of a file."""
    listed: list[Recording] = []
    for suffix in suffixes(db.tables()):
        all_rows = Recording(db, suffix)
        several = [Recording(db, suffix, guid) for guid in all_rows.guids()]
        listed += several if len(several) > 1 else [all_rows]
    return listed


class Recording:
    """The tables of one profiled process, or of one run of a profiler over several."""

    def __init__(self, db: Database, suffix: str, guid: str | None = None) -> None:
        self.db = db
        self._suffix = suffix
        self._guid = guid
        """The id in the rows of this recording; None if all rows of its tables are its own."""

    def guids(self) -> list[str]:
        """Return the distinct ids of recordings among the rows of small tables."""
        guids: set[str] = set()
        for name in _IDENTIFIED:
            guids.update(self.read(name, {"guid": str}).column("guid").to_pylist())
        return sorted(guids - {None, ""})

    def table(self, name: str) -> str:
        """Return the name of a table in the file; that of the newest schema if it is missing."""
        names = [form.format(name) + self._suffix for form in _NAMES]
        return next((each for each in names if each in self.db.tables()), names[0])

    def columns(self, name: str) -> frozenset[str]:
        """Return the columns of a table; empty if it does not exist."""
        return self.db.columns(self.table(name))

    def read(
        self,
        name: str,
        columns: Mapping[str, type],
        piece: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    ) -> pa.Table:
        """Read the recording's rows of a table, as `Database.read` does."""
        if self._guid is None or "guid" not in self.columns(name):
            return self.db.read(self.table(name), columns, piece)
        guid = self._guid

        def own(rows: pa.Table) -> pa.Table:
            ours = rows.filter(pc.equal(rows.column("guid"), guid))
            return piece(ours if "guid" in columns else ours.drop_columns(["guid"]))

        return self.db.read(self.table(name), {**columns, "guid": str}, own)

    def spans(self, name: str, *columns: str, texts: Sequence[str] = ()) -> pa.Table:
        """Read rows with their times and places, which schema 4 keeps in tables of their own.

        Returns `start`, `end`, `event_id`, those of `_PLACES` and `columns`, all int64, and
        `texts`, which are strings.
        """
        there = self.columns(name)
        theirs = {ours: _TIMES[ours] if _TIMES[ours] in there else ours for ours in _TIMES}
        wanted = (*theirs.values(), "event_id", "track_id", *_PLACES, *_OLD_NAMES.values())
        needed = set(columns[:1]).difference(_PLACES)  # which may be in the table of tracks
        self.db.require(self.table(name), *theirs.values(), *needed)
        kinds: dict[str, type] = dict.fromkeys((*wanted, *columns), int)
        rows = self.read(name, {**kinds, **dict.fromkeys(texts, str)})
        taken = {column: rows.column(column) for column in ("event_id", *columns, *texts)}
        taken |= {ours: self._time(rows.column(theirs[ours]), theirs[ours]) for ours in theirs}
        taken |= {index: self._place(rows, index) for index in _PLACES}
        return pa.table(taken)

    def _time(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        if name in _TIMES:
            return column
        values, rows = self._timestamps
        return values.take(or_null(rows.rows(ints(column))))

    def _place(self, rows: pa.Table, name: str) -> pa.ChunkedArray:
        if rows.column(name).null_count < rows.num_rows:
            return rows.column(name)
        if name in _OLD_NAMES and "track_id" not in rows.column_names:
            return rows.column(_OLD_NAMES[name])
        tracks, index = self._tracks
        return tracks.column(name).take(or_null(index.rows(ints(rows.column("track_id")))))

    @cached_property
    def _timestamps(self) -> tuple[pa.ChunkedArray, Rows]:
        rows = self.read("timestamp", {"id": int, "value": int})
        return rows.column("value"), Rows(ints(rows.column("id")))

    @cached_property
    def _tracks(self) -> tuple[pa.Table, Rows]:
        rows = self.read("track", dict.fromkeys(("id", *_PLACES), int))
        return rows, Rows(ints(rows.column("id")))

    @cached_property
    def strings(self) -> Strings:
        """The texts that other tables refer to."""
        if self._guid is None:
            return _sqlite.read(self.db, self.table("string"), "id", "string")
        return _sqlite.of_rows(self.read("string", {"id": int, "string": _sqlite.Numbered}), "id")


class Rows:
    """The row of each id of a table; if several rows have the same id, the last counts."""

    def __init__(self, ids: Int64Array) -> None:
        self._distinct, index = np.unique(ids, return_inverse=True)
        self._row = np.empty(len(self._distinct), np.int64)
        self._row[index] = np.arange(len(ids))

    def rows(self, ids: Int64Array) -> Int64Array:
        """Return the row of each id; MISSING for an unknown one."""
        if not len(self._distinct):
            return np.full(len(ids), MISSING)
        index = np.searchsorted(self._distinct, ids).clip(max=len(self._distinct) - 1)
        known = (self._distinct[index] == ids) & (ids != MISSING)
        return np.where(known, self._row[index], MISSING)


_APART = 10_000_000
"""Greater than every number of a process, which Linux limits to 22 bits."""
_MAX_LISTED = 5


class Processes:
    """The processes of all recordings of a file, which are requested in order."""

    def __init__(self) -> None:
        self._taken: dict[int, tuple[int, int]] = {}
        self._again: set[int] = set()

    def by_id(self, number: int, recording: Recording) -> Callable[[Int64Array], Int64Array]:
        """Return the function from ids of a recording's processes to their numbers."""
        column = "pid" if "pid" in recording.columns("process") else "id"
        processes = recording.read("process", dict.fromkeys(("id", column), int))
        unique = [
            self._make_unique((number, row), pid) if pid >= 0 else MISSING
            for row, pid in enumerate(ints(processes.column(column)).tolist())
        ]
        known, rows = np.array([*unique, MISSING]), Rows(ints(processes.column("id")))
        return lambda ids: known[rows.rows(ids)]

    def _make_unique(self, process: tuple[int, int], pid: int) -> int:
        wanted = pid
        while self._taken.setdefault(wanted, process) != process:
            self._again.add(pid)
            wanted += _APART
        return wanted

    def warnings(self) -> Iterator[str]:
        """Name the numbers that several processes have."""
        if self._again:
            listed = ", ".join(map(str, sorted(self._again)[:_MAX_LISTED]))
            yield (
                f"several processes have the same number ({listed}), as in containers: "
                f"{_APART:,} is added to those of later recordings"
            )
