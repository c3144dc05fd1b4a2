"""How fast parse and prof are, beside merely reading the same columns.

    python benchmarks/pipeline.py CAPTURE.sqlite ... [--runs N]

For each nsys capture, in one run: the bare read of the columns that parse needs (SQLite to Arrow,
one query a table, nothing else), `parse -o net.dict`, `prof --csv` of that file, `parse -o
net.parquet`, and `pyprof.load` of that file (imports included). Each is a process of its own; its
wall time and peak memory are the operating system's. Of several runs the fastest counts.
Captures of any size come from `benchmarks/generate.py`.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path

from processes import run

BARE_READ = """
import sys
from contextlib import closing
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
kernels = 0
with dbapi.connect(f"file:{sys.argv[1]}?mode=ro") as db:
    for number, query in enumerate(QUERIES):
        with db.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
            cursor.execute(query)
            rows = cursor.fetch_arrow_table().num_rows
        kernels = rows if number == 0 else kernels
print(kernels)
"""


LOAD = "import sys, pyprof; pyprof.load(sys.argv[1])"


def measure(capture: Path, runs: int, folder: Path) -> None:
    """Print a line for each step."""
    records, rows, columns = folder / "net.dict", folder / "kernels", folder / "net.parquet"
    python = [sys.executable, "-m", "pyprof"]
    steps = {
        "bare read": [sys.executable, "-c", BARE_READ, str(capture)],
        "parse": [*python, "parse", "-q", "-o", str(records), str(capture)],
        "prof": [*python, "prof", "-q", "--csv", str(records)],
        "to Parquet": [*python, "parse", "-q", "-o", str(columns), str(capture)],
        "load": [sys.executable, "-c", LOAD, str(columns)],
    }
    outputs = {"bare read": rows, "prof": folder / "net.csv"}
    best = {
        name: min(run(command, outputs.get(name, folder / "nothing")) for _ in range(runs))
        for name, command in steps.items()
    }
    kernels = int(rows.read_text())
    print(
        f"{capture.name}: {kernels:,} kernels, {records.stat().st_size / 1e6:,.0f} MB of dict lines"
    )
    for name, (wall_s, _, memory_mb) in best.items():
        ratio = wall_s / best["bare read"].wall_s
        print(
            f"  {name:10} {wall_s:7.2f} s  {kernels / wall_s:10,.0f} kernels/s  "
            f"{memory_mb / 1000:5.2f} GB  {ratio:5.2f} x bare read"
        )


def main() -> None:
    """Measure the captures named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("capture", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {resource.getpagesize()} B pages"
    )
    with tempfile.TemporaryDirectory() as folder:
        for capture in given.capture:
            measure(capture.resolve(), given.runs, Path(folder))


if __name__ == "__main__":
    main()
