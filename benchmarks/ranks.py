"""How fast a set of captures is worked on: by one process, by several, by a Dask cluster.

    python benchmarks/ranks.py [--ranks 64] [--kernels 50000] [--workers 1 2] [--runs N]
        [--commands parse ranks] [--folder FOLDER]

`generate_ranks.py` makes the captures, in FOLDER, where they stay for the next time, or in a
temporary one. Each command then runs in one process, with `--workers N` from 2 on, and on a Dask
cluster of N workers of one thread each, started as a user would. Of several runs the fastest
counts. Efficiency is the time of one process over N times that of N workers. One process works on
two threads where it can, which bounds that: use of the cores is the processor time of one process
over N times the time of N workers. Memory is the largest resident size of any one process, as the
operating system has it. What comes out has to be equal to the bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from processes import Cost, peak_mb, run

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMANDS = {
    # name: its arguments behind the set; `{}` stands for a folder that is not there yet
    "parse": ["-q", "-o", "{}/"],
    "ranks": [],
}
_BLOCK_BYTES = 1 << 22


def generated(folder: Path, ranks: int, kernels: int) -> Path:
    """Return the folder of the captures, which are generated unless they exist."""
    captures, note = folder / "captures", folder / "captures.json"
    wanted = {"ranks": ranks, "kernels": kernels}
    if not note.is_file() or json.loads(note.read_text()) != wanted:
        shutil.rmtree(captures, ignore_errors=True)
        script = str(Path(__file__).with_name("generate_ranks.py"))
        planted = ["--straggler", str(ranks // 5), "--slow-pair", str(ranks // 2)]
        size = ["--ranks", str(ranks), "--kernels", str(kernels)]
        command = [sys.executable, script, str(captures), *size, *planted]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
        note.write_text(json.dumps(wanted))
    return captures


def digest(*places: Path) -> str:
    """Hash all files of some folders; of captures, this also puts them into the cache."""
    found = hashlib.sha256()
    for place in places:
        for path in sorted(place.rglob("*") if place.is_dir() else [place]):
            if path.is_file():
                found.update(str(path.relative_to(place)).encode())
                with path.open("rb") as file:
                    while block := file.read(_BLOCK_BYTES):
                        found.update(block)
    return found.hexdigest()


def once(name: str, captures: Path, folder: Path, *engine: str) -> tuple[Cost, str]:
    """Run a command over the set; return what that costs, and a digest of its output."""
    out, stdout = folder / "out.parquet", folder / "stdout"
    shutil.rmtree(out, ignore_errors=True)
    arguments = [argument.format(out) for argument in _COMMANDS[name]]
    command = [sys.executable, "-m", "pyprof", name, str(captures), *arguments, *engine]
    return run(command, stdout), digest(out, stdout)


def on_cluster(name: str, captures: Path, folder: Path, workers: int) -> tuple[Cost, str]:
    """Run a command over the set on a cluster of its own.

    The workers' processor time is not in the cost: they are not the command's processes.
    """
    with cluster(folder, workers) as (address, peaks):
        cost, digested = once(name, captures, folder, "--workers", address)
    return cost._replace(memory_mb=max(cost.memory_mb, *peaks)), digested


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[float]]]:
    """Start a scheduler and workers; return its address and, in the end, each worker's MB."""
    from distributed import Client  # noqa: PLC0415 - the dask extra

    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    place = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
    processes = [_dask("worker", *place, "--nthreads", "1", "--no-nanny") for _ in range(workers)]
    scheduler = _dask("scheduler", "--port", "0", *place)
    peaks: list[float] = []
    with Client(scheduler_file=str(file)) as client:
        client.wait_for_workers(workers)
        yield client.scheduler.address, peaks
    for process in processes:
        process.terminate()
        peaks.append(peak_mb(os.wait4(process.pid, 0)[2]))
        process.returncode = 0  # waited for
    scheduler.kill()
    scheduler.wait()


def _dask(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *arguments]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - as a user would


def measure(name: str, captures: Path, folder: Path, given: argparse.Namespace) -> None:
    """Print a line for each engine."""
    kernels = given.ranks * given.kernels
    size_mb = sum(path.stat().st_size for path in captures.iterdir()) / 1e6
    print(f"{name}: {given.ranks} captures, {kernels:,} kernels, {size_mb:,.0f} MB")
    alone = min(once(name, captures, folder) for _ in range(given.runs))
    _print("one process", 1, alone, alone, kernels)
    for workers in (number for number in given.workers if number > 1):
        pool = [once(name, captures, folder, "--workers", str(workers)) for _ in range(given.runs)]
        _print(f"--workers {workers}", workers, min(pool), alone, kernels)
    for workers in given.workers:
        dask = [on_cluster(name, captures, folder, workers) for _ in range(given.runs)]
        _print(f"Dask, {workers} workers", workers, min(dask), alone, kernels)


def _print(
    label: str, workers: int, ours: tuple[Cost, str], alone: tuple[Cost, str], kernels: int
) -> None:
    (cost, digested), (one, expected) = ours, alone
    if digested != expected:
        sys.exit(f"{label}: not what one process gives")
    print(
        f"  {label:16} {cost.wall_s:7.2f} s  {kernels / cost.wall_s:10,.0f} kernels/s  "
        f"efficiency {one.wall_s / workers / cost.wall_s:4.0%}  "
        f"use of the cores {one.cpu_s / workers / cost.wall_s:4.0%}  "
        f"{cost.memory_mb / 1000:5.2f} GB"
    )


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--kernels", type=int, default=50_000, help="of each rank")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--commands", nargs="+", choices=_COMMANDS, default=list(_COMMANDS))
    parser.add_argument("--folder", type=Path, help="default: a temporary one")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder.resolve() if given.folder else Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        captures = generated(folder, given.ranks, given.kernels)
        digest(captures)
        for command in given.commands:
            measure(command, captures, Path(name), given)


if __name__ == "__main__":
    main()
