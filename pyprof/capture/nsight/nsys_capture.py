"""A script captured by Nsight Systems: its command line, and its outcome in plain words."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.capture import machine
from pyprof.capture.nsight.join_exports import join_nsys_windows
from pyprof.capture.request import Outcome, add_rank, check_place, make_room_for_snapshot, rank
from pyprof.capture.under_profiler import profiler_process
from pyprof.capture.under_profiler.database import connect, nonempty_tables, tables
from pyprof.capture.under_profiler.script_process import Files
from pyprof.process import child_programs, overwrite_guard, scratch, signals
from pyprof.process.messages import say
from pyprof.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.capture.request import Request

_EXPORT = ".sqlite"
_SUFFIXES = (_EXPORT, ".qdstrm", *overwrite_guard.REPORTS)
_WORK = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
_GPU_API = "cuda,nvtx,cublas,cudnn"
_GRAPH_TRACE = "--cuda-graph-trace"
"""nsys 2022 or newer: whether to record the nodes of CUDA graphs, or only their launches."""


_GAVE_WAY = "gave way"
"""File that the script's process leaves once it starts a range of its own."""


def command(nsys: str, request: Request, name: str, folder: Path, *, gpu: bool) -> list[str]:
    """Return the nsys command line; the script's process reports in `folder`.

    Sampling and context switches are off: no report uses them, and they need privileges.
    `--capture-range-end` is set, since by default nsys ends the script at the end of its range. A
    script that may start a range is recorded from its first use of the GPU until it does.
    """
    ranged = gpu and profiler_process.is_ranged(request)
    options = [
        f"--trace={_GPU_API if gpu else 'nvtx'}",
        *("--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "--export=sqlite"),
        f"--output={name}",
    ]
    if ranged:
        once = request.steps is not None and request.steps.repeat == 1
        end = "stop" if once else "repeat"  # after one window, or after the last
        options += ["--capture-range=cudaProfilerApi", f"--capture-range-end={end}"]
    if gpu and request.graph_nodes:
        known = machine.output(nsys, "profile", "--help") or ""
        options += [f"{_GRAPH_TRACE}=node"] if _GRAPH_TRACE in known else []
    if gpu and request.metrics:
        options += _metrics_options(nsys)
    inside = []
    if gpu and request.memory:
        options += ["--cuda-memory-usage=true"]
        inside += [f"--memory={overwrite_guard.snapshot_beside(Path(name + _EXPORT)).absolute()}"]
    if ranged and request.steps is None:
        inside += [f"--provisional={folder / _GAVE_WAY}"]
    script_line = profiler_process.script_command(request, folder, *inside)
    return [nsys, "profile", *options, *script_line]


def run(request: Request, nsys: str) -> Outcome:
    """Run the script under nsys and write all windows to NAME.sqlite."""
    name = add_rank(request.output)
    database = Path(name + _EXPORT)

    def is_ours(path: Path) -> bool:  # for a report, its export shows it
        return any(map(overwrite_guard.recorded, (path, path.with_suffix(_EXPORT), database)))

    check_place(Path(name))
    before = _find_written(name)
    for path in before:
        check_place(path, is_ours)
    if request.memory:
        make_room_for_snapshot(database)
    gpu, began_s = bool(machine.find_gpus()), time.time()
    with scratch.directory() as folder:
        line = command(nsys, request, name, folder, gpu=gpu)
        code = profiler_process.wait(line, Files.within(folder))
        gave_way = (Path(folder) / _GAVE_WAY).exists()
    new = {path: time for path, time in _find_written(name).items() if before.get(path) != time}
    with signals.postponed():
        outcome = _outcome(code, name, _drop_provisional(new) if gave_way else new, nsys, request)
        return outcome.with_old_set_aside(began_s)


def _find_written(name: str) -> dict[Path, int]:
    """Return the files that nsys wrote under a name, with or without a window's number."""
    folder, stem = Path(name).parent, re.escape(Path(name).name)
    ours = re.compile(rf"{stem}(?:\.\d+)?(?:{'|'.join(map(re.escape, _SUFFIXES))})")
    return {path: path.stat().st_mtime_ns for path in folder.iterdir() if ours.fullmatch(path.name)}


def _drop_provisional(new: dict[Path, int]) -> dict[Path, int]:
    """Drop what was recorded before the script's first range, unless nothing would be left."""
    first = min(map(_window, new), default=0)
    kept = {path: time for path, time in new.items() if _window(path) != first}
    if not kept:
        return new
    for path in new.keys() - kept.keys():
        path.unlink()
    return kept


def _outcome(code: int, name: str, new: dict[Path, int], nsys: str, request: Request) -> Outcome:
    reports = [path for path in new if path.suffix in overwrite_guard.REPORTS]
    exports = {path for path in new if path.suffix == _EXPORT}
    if not exports and not reports:
        note = _IMPORTER_MISSING
        if not any(path.suffix == ".qdstrm" for path in new):
            note = profiler_process.why_nothing(request, "nsys wrote no report")
        return Outcome(code=code, path=None, notes=(note,))
    for report in reports:
        if (export := report.with_suffix(_EXPORT)) not in exports:
            line = [nsys, "export", "--type=sqlite", "--force-overwrite=true", f"--output={export}"]
            subprocess.run(child_programs.bind([*line, str(report)]), check=False)  # noqa: S603 - the same nsys
            if not export.exists():
                again = f"{nsys} export --type sqlite {report}"
                note = f"{report} could not be exported; try: {again}"
                return Outcome(code=code, path=None, notes=(note,))
            exports.add(export)
    database = Path(name + _EXPORT)
    windows = sorted(exports, key=_window)
    try:
        _gather(windows, reports, database)
    except (sqlite3.Error, OSError) as error:
        note = f"{database}: {error}; its windows are in {', '.join(map(str, windows))}"
        return Outcome(code=code, path=None, notes=(note,))
    with suppress(sqlite3.Error), closing(sqlite3.connect(database)) as base:
        base.execute(f"PRAGMA application_id = {overwrite_guard.APPLICATION_ID}")
    notes = [f"recorded {len(windows)} windows"] if len(windows) > 1 else []
    empty = not nonempty_tables(database, _WORK)  # tables without rows are not exported
    if empty:
        notes.append(_no_work(request, launches(database)))
    elif count := count_unseen_kernels(database):
        notes.append(
            f"{counted(count, 'kernel')} ran in CUDA graphs that were captured before recording "
            "began: such kernels have no op; begin recording before graphs are captured, with "
            "--all or earlier --steps"
        )
    return Outcome(code=code, path=database, notes=tuple(notes), empty=empty, memory=request.memory)


def _window(export: Path) -> int:
    """Return the window's number in a report's name: NAME.12.sqlite."""
    number = export.with_suffix("").suffix[1:]
    return int(number) if number.isdecimal() else 0


def _gather(windows: Sequence[Path], reports: Sequence[Path], database: Path) -> None:
    """Join the databases of the windows; reports cannot be joined."""
    if list(windows) == [database]:
        return
    join_nsys_windows(windows, database)
    for path in windows:
        path.unlink()
    if len(windows) == 1:
        for path in reports:
            path.replace(database.with_suffix(path.suffix))


_IMPORTER_MISSING = (
    "nsys could not import its recording (its importer was not found); link "
    "/usr/lib/nsight-systems/host-linux-x64 to where nsys looks, or reinstall nsys"
)


def _no_work(request: Request, launched: int) -> str:
    if launched:
        return (
            f"kernels were launched ({launched:,}), but nsys recorded none: another profiler was "
            "attached, or this machine does not let nsys trace the GPU; try --tool torch"
        )
    why = "nothing ran on the GPU while nsys recorded"
    why = why if machine.find_gpus() else "there is no GPU here"
    return f"no GPU work was captured: {why}; {request.on_cpu()}"


_NODES = "CUDA_GRAPH_NODE_EVENTS"
_UNSEEN = f"""
SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE graphNodeId > 0 AND graphNodeId NOT IN (
  SELECT graphNodeId FROM {_NODES} WHERE coalesce(originalGraphNodeId, 0) = 0
    OR originalGraphNodeId IN (SELECT graphNodeId FROM {_NODES}))
"""  # noqa: S608 - our own name


_LAUNCHED = """
SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON StringIds.id = nameId
WHERE value LIKE 'cu%LaunchKernel%' OR value LIKE 'cu%GraphLaunch%'
"""


def count_unseen_kernels(path: Path) -> int:
    """Count the kernels in an nsys export whose graph was captured before recording began."""
    return _count(path, _UNSEEN if _NODES in tables(path) else _UNSEEN.partition(" AND ")[0])


def launches(path: Path) -> int:
    """Count the launches of kernels and graphs in an nsys export."""
    return _count(path, _LAUNCHED)


def _count(path: Path, query: str) -> int:
    try:
        with connect(path) as base:
            return int(base.execute(query).fetchone()[0])
    except sqlite3.Error:  # no such table, or no such column in old exports
        return 0


_OPTIONS = ("--gpu-metrics-devices", "--gpu-metrics-device")
"""The name since 2024.2, and the one before."""
_REFUSED = ("ERR_NVGPUCTRPERM", "privilege")
"""In nsys's answer if the driver lets it read no counters."""


def _metrics_options(nsys: str) -> list[str]:
    """Return options that sample metrics; none, with a message, if impossible.

    nsys is asked which GPUs it can sample: told to sample any other, it ends at once.
    """
    options = machine.output(nsys, "profile", "--help") or ""
    option = next((name for name in _OPTIONS if f"{name}=" in options), None)
    listing = (option and machine.output(nsys, "profile", f"{option}=help")) or ""
    device = _device(listing)
    if option is None:
        why = "this nsys cannot sample them; install a newer one"
    elif any(word in listing for word in _REFUSED):
        why = (
            "the driver lets only root read counters (ERR_NVGPUCTRPERM): see docs/capture.md for "
            "the fix"
        )
    elif device is None:
        why = "nsys can sample none of these GPUs (Turing and later)"
    else:
        return [f"{option}={device}"]
    say(f"no GPU metrics: {why}")
    return []


def _device(listing: str) -> str | None:
    """Choose the GPUs: a rank's own, since only one nsys can sample a GPU."""
    offered = {line.split(":", 1)[0].strip() for line in listing.splitlines() if ":" in line}
    local = os.environ.get("LOCAL_RANK", "")
    if rank() is not None and local in offered:
        return local
    return next((choice for choice in ("cuda-visible", "all") if choice in offered), None)
