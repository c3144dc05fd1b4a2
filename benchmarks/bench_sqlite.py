"""Exports of nsys beside merely reading the same columns; sets of them by two workers.

Times are those of the clock, since two threads count: of several runs the shortest. Processor time
stands behind them, which tells more where others use the machine, too.

`BENCH_KERNELS=1000000` is the size of the capture, `BENCH_TIMES=5` measures one so many times as
large as well, `BENCH_FOLDER` keeps what is generated for the next time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import ranks
from processes import Cost, run
from table import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_KERNELS = int(os.environ.get("BENCH_KERNELS", "1000000"))
_TIMES = int(os.environ.get("BENCH_TIMES", "0"))
_RUNS, _RANKS, _KERNELS_OF_RANK, _WORKERS = 3, 8, 50_000, 2
_MAX_MEMORY = 800
_REPORTS = ("gpukernsum", "nvtxsum", "cudaapisum")
_BARE_READ = """
import sys
from adbc_driver_sqlite import dbapi

QUERIES = (
    "SELECT start, end, deviceId, streamId, correlationId, globalPid, demangledName,"
    " registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory,"
    " dynamicSharedMemory FROM CUPTI_ACTIVITY_KIND_KERNEL",
    "SELECT start, end, eventClass, globalTid, correlationId, nameId"
    " FROM CUPTI_ACTIVITY_KIND_RUNTIME",
    "SELECT start, coalesce(end, -1), eventType, globalTid, coalesce(text, ''),"
    " coalesce(textId, -1) FROM NVTX_EVENTS",
    "SELECT id, value FROM StringIds",
)
with dbapi.connect(f"file:{sys.argv[1]}?mode=ro") as db:
    for query in QUERIES:
        with db.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
            cursor.execute(query)
            cursor.fetch_arrow_table()
"""
"""The columns that parse needs: SQLite to Arrow, one query a table, nothing else."""


def rows() -> Iterator[Row]:
    """Measure one capture, one that is larger, what nsys itself takes, and sets of captures."""
    with _folder() as folder:
        capture = _generated(folder, _KERNELS)
        bare = _cheapest([sys.executable, "-c", _BARE_READ, str(capture)])
        costs = {}
        for work, aim, arguments in _works(capture, folder):
            cost = costs[work] = _cheapest([sys.executable, *arguments])
            limit = bare if work != "diff" else Cost(2 * bare.wall_s, 2 * bare.cpu_s, 0)
            yield _row(f"{work}, {_KERNELS:,} kernels", "bare read", limit, cost, aim)
        if shutil.which("nsys"):
            stats = _stats(capture, folder)
            yield _row(f"nsys stats, {len(_REPORTS)} reports", "bare read", bare, stats, "")
        yield from _larger(folder, costs)
        yield from _sets(folder)


def _works(capture: Path, folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield what is measured, its limit, and the arguments of Python."""
    name, out, memory = str(capture), f"{folder}/o", f"{_MAX_MEMORY} MB"
    for work, aim, words in (
        ("parse to Parquet", f"≤ 1.7, {memory}", ["parse", name, "-o", f"{out}.parquet"]),
        ("parse to dict lines", f"≤ 2.3, {memory}", ["parse", name, "-o", f"{out}.dict"]),
        ("prof of dict lines", "", ["prof", "--csv", f"{out}.dict", "-o", f"{out}.csv"]),
        ("summary", f"≤ 2.2, {memory}", ["summary", name]),
        ("report", f"≤ 2.2, {memory}", ["report", name, "-o", f"{out}.html"]),
        ("diff", f"≤ 2.2, {memory}", ["diff", name, name]),
    ):
        yield work, aim, ["-m", "pyprof", *words, "-q"]
    load = "import sys, pyprof; pyprof.load(sys.argv[1])"
    yield "pyprof.load of Parquet", "", ["-c", load, f"{out}.parquet"]


def _larger(folder: Path, costs: dict[str, Cost]) -> Iterator[Row]:
    if not _TIMES:
        return
    capture = _generated(folder, _TIMES * _KERNELS)
    for work, _, arguments in _works(capture, folder):
        cost = _cheapest([sys.executable, *arguments])
        aim = f"≤ {1.04 * _TIMES:.1f}, {_TIMES * 700:,} MB"
        of_one = f"of {_KERNELS:,}"
        yield _row(f"{work}, {_TIMES * _KERNELS:,} kernels", of_one, costs[work], cost, aim)


def _sets(folder: Path) -> Iterator[Row]:
    """Measure what two workers gain."""
    captures = ranks.generated(folder, _RANKS, _KERNELS_OF_RANK)
    ranks.digest(captures)
    for name in ("parse", "ranks"):
        engine = ("--workers", str(_WORKERS))
        alone = min(ranks.once(name, captures, folder)[0] for _ in range(_RUNS))
        both = min(ranks.once(name, captures, folder, *engine)[0] for _ in range(_RUNS))
        work = f"{name} of {_RANKS} captures, {_WORKERS} workers"
        for figure, one_s in (("efficiency", alone.wall_s), ("use of the cores", alone.cpu_s)):
            yield Row(
                f"{work}: {figure}",
                f"one process, {one_s:.2f} s",
                f"{both.wall_s:.2f} s",
                one_s / _WORKERS / both.wall_s,
                both.memory_mb,
                "≥ 0.8",
            )


def _stats(capture: Path, folder: Path) -> Cost:
    """Measure how nsys sums up kernels, ranges and API calls of the same file."""
    reports = [word for report in _REPORTS for word in ("--report", report)]
    out = ["--format", "csv", "--force-overwrite", "true", "--output", str(folder / "stats")]
    return _cheapest([str(shutil.which("nsys")), "stats", *reports, *out, str(capture)])


def _row(work: str, what: str, limit: Cost, ours: Cost, aim: str) -> Row:
    ratio = ours.wall_s / limit.wall_s
    bare, cost = (f"{each.wall_s:.2f} s ({each.cpu_s:.1f} s)" for each in (limit, ours))
    return Row(work, f"{what}, {bare}", cost, ratio, ours.memory_mb, aim)


def _cheapest(command: Sequence[str]) -> Cost:
    """Return the least of each figure."""
    costs = []
    for _ in range(_RUNS):
        if "-o" in command:  # replacing a large file is limited by the disk
            Path(command[command.index("-o") + 1]).unlink(missing_ok=True)
        costs.append(run(command))
    return Cost(*map(min, zip(*costs, strict=True)))


def _generated(folder: Path, kernels: int) -> Path:
    capture = folder / f"{kernels}.sqlite"
    if not capture.is_file():
        script = str(Path(__file__).with_name("generate.py"))
        command = [sys.executable, script, str(capture), "--kernels", str(kernels)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
    return capture


@contextmanager
def _folder() -> Iterator[Path]:
    if kept := os.environ.get("BENCH_FOLDER"):
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
