"""A script captured by AMD's rocprofv3: its command line, and its outcome in plain words."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.capture import machine
from pyprof.capture.request import Outcome, add_rank, check_place, make_room_for_snapshot
from pyprof.capture.under_profiler import profiler_process
from pyprof.capture.under_profiler.script_process import Files
from pyprof.errors import PyprofError
from pyprof.process import atomic_files, overwrite_guard, scratch, signals
from pyprof.process.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyprof.capture.request import Request

DATABASE = ".db"
_TRACES = (
    *("--kernel-trace", "--memory-copy-trace", "--hip-runtime-trace", "--marker-trace"),
    "--rccl-trace",
)
_REGIONS = "--selected-regions"
_WORK = ("kernel_dispatch", "memory_copy")


def command(rocprofv3: str, request: Request, results: Path, folder: Path) -> list[str]:
    """Return the command line of rocprofv3, which writes to `results`.

    The script's process reports in `folder`. With steps to record, or if the script may start a
    range, only what is between the start and the stop is recorded.
    """
    options = [*_TRACES, "--output-format", "rocpd", "--output-directory", str(results)]
    inside = []
    if request.memory:
        options.append("--memory-allocation-trace")
        snapshot = overwrite_guard.snapshot_beside(Path(add_rank(request.output) + DATABASE))
        inside.append(f"--memory={snapshot.absolute()}")
    if profiler_process.is_ranged(request):
        options.append(_REGIONS)
        inside.append("--roctx")
    return [rocprofv3, *options, "--", *profiler_process.script_command(request, folder, *inside)]


def run(request: Request, rocprofv3: str) -> Outcome:
    """Run the script under rocprofv3 and write the recordings of all its processes to NAME.db."""
    database = Path(add_rank(request.output) + DATABASE)
    check_place(database)
    if request.memory:
        make_room_for_snapshot(database)
    if request.metrics:
        say("rocprofv3 samples no metrics; --tool torch samples power, clocks and temperature")
    began_s = time.time()
    with scratch.directory() as folder, atomic_files.temp_directory(database) as beside:
        results = Path(beside)  # recordings are moved from it
        line = command(rocprofv3, request, results, folder)
        if _REGIONS in line and _REGIONS not in (machine.output(rocprofv3, "--help") or ""):
            raise PyprofError(
                f"{rocprofv3} is too old to record a range ({_REGIONS}); use --all, or ROCm 7"
            )
        code = profiler_process.wait(line, Files.within(folder))
        with signals.postponed():
            # %hostname%/%pid%_results.db, or where the user's settings of rocprofv3 put it
            outcome = _outcome(code, sorted(results.rglob(f"*{DATABASE}")), database, request)
    return outcome.with_old_set_aside(began_s)


def _outcome(code: int, files: Sequence[Path], database: Path, request: Request) -> Outcome:
    recorded = {path: count for path in files if (count := _rows(path)) is not None}
    if not recorded:
        note = profiler_process.why_nothing(request, "rocprofv3 wrote no database")
        return Outcome(code=code, path=None, notes=(note,))
    first = max(recorded, key=lambda path: recorded[path])
    others = [path for path in recorded if path != first]
    try:
        _join(others, first)
        with closing(sqlite3.connect(first)) as base:
            base.execute(f"PRAGMA application_id = {overwrite_guard.APPLICATION_ID}")
        shutil.move(first, database)
    except (sqlite3.Error, OSError) as error:
        return Outcome(code=code, path=None, notes=(f"{database}: {error}",))
    notes = [f"recorded {len(recorded)} processes"] if others else []
    empty = not _rows(database)
    if empty:
        notes.append(
            "no GPU work was captured: nothing ran on the GPU while rocprofv3 recorded; "
            f"{request.on_cpu()}"
        )
    return Outcome(code=code, path=database, notes=tuple(notes), empty=empty, memory=request.memory)


def _rows(database: Path) -> int | None:
    """Count the rows of GPU work; None for a file that is not a database of rocprofv3."""
    try:
        with closing(sqlite3.connect(database)) as base:
            tables = _tables(base)
            work = [name for name in tables if name.startswith(tuple(f"rocpd_{w}" for w in _WORK))]
            counts = [base.execute(f'SELECT count(*) FROM "{name}"').fetchone() for name in work]  # noqa: S608
    except sqlite3.Error:
        return None
    return sum(count for (count,) in counts) if work else None


def _tables(base: sqlite3.Connection, schema: str = "main") -> dict[str, str]:
    query = f"SELECT name, sql FROM {schema}.sqlite_master WHERE type = 'table'"  # noqa: S608 - ours
    return {name: sql for name, sql in base.execute(query) if name.startswith("rocpd_")}


def _join(others: Iterable[Path], database: Path) -> None:
    """Copy the tables of other processes, whose names end in their own ids, into a database."""
    with closing(sqlite3.connect(database)) as base, base:
        there = _tables(base)
        for index, path in enumerate(others):
            base.execute(f"ATTACH ? AS other{index}", (str(path),))
            for name, sql in _tables(base, f"other{index}").items():
                if name not in there:
                    base.execute(sql)
                    base.execute(f'INSERT INTO main."{name}" SELECT * FROM other{index}."{name}"')  # noqa: S608
            base.commit()
            base.execute(f"DETACH other{index}")
