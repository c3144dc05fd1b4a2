"""A script captured by Nsight Systems: the right flags, and what came of it in plain words."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.capture import machine
from pyprof.capture.request import Outcome, check_place
from pyprof.capture.window import ranked
from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.capture.request import Request

REPORTS = (".nsys-rep", ".qdrep")
_WORK = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
_GPU_API = "cuda,nvtx,cublas,cudnn"


def command(nsys: str, request: Request, name: str, exit_file: Path, *, gpu: bool) -> list[str]:
    """Give the whole command line.

    Sampling and context switches are off: nothing of them is reported, and they need rights.
    `--capture-range-end=stop`, since the default also ends the script when its range ends.
    """
    options = [
        f"--trace={_GPU_API if gpu else 'nvtx'}",
        "--sample=none",
        "--cpuctxsw=none",
        "--force-overwrite=true",
        "--export=sqlite",
        f"--output={name}",
    ]
    if gpu and not request.whole:
        options += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    if gpu and request.graph_nodes:
        options += ["--cuda-graph-trace=node"]
    inside = [f"--exit-code-file={exit_file}"]
    if not request.instrument:
        inside += ["--no-init"]
    if request.steps is not None:
        inside += [f"--steps={request.steps}"]
    launch = [sys.executable, "-m", "pyprof.capture.launch", *inside, "--"]
    return [nsys, "profile", *options, *launch, *request.target.command()]


def run(request: Request, nsys: str) -> Outcome:
    """Run the script under nsys and write NAME.sqlite."""
    if request.steps is not None and request.steps.repeat != 1:
        raise PyprofError(
            f"--steps {request.steps}: nsys writes a report for each window, and here only the "
            "first; give three counts, or --tool torch"
        )
    name = ranked(request.output)
    check_place(Path(name))
    gpu = bool(machine.gpus())
    before = _written(name)
    with tempfile.TemporaryDirectory() as folder:
        exit_file = Path(folder) / "code"
        line = command(nsys, request, name, exit_file, gpu=gpu)
        try:
            code = subprocess.run(line, check=False).returncode  # noqa: S603 - the user's command
        except OSError as error:
            raise PyprofError(f"{nsys}: {error.strerror}") from error
        if exit_file.exists():  # old versions of nsys return 0 whatever the script did
            code = int(exit_file.read_text() or code)
    new = {path: time for path, time in _written(name).items() if before.get(path) != time}
    return _outcome(code, name, new, nsys, request)


def _written(name: str) -> dict[Path, int]:
    paths = [Path(name + suffix) for suffix in (".sqlite", ".qdstrm", *REPORTS)]
    return {path: path.stat().st_mtime_ns for path in paths if path.exists()}


def _outcome(code: int, name: str, new: dict[Path, int], nsys: str, request: Request) -> Outcome:
    database = Path(name + ".sqlite")
    if database not in new:
        report = next((path for path in new if path.suffix in REPORTS), None)
        if report is None:
            return Outcome(code, None, (_no_report(new, request),))
        _export(nsys, report, database)
        if not database.exists():
            again = f"{nsys} export --type sqlite {report}"
            return Outcome(code, None, (f"{report} could not be exported; try: {again}",))
    return Outcome(code, database, () if _holds_work(database) else (_no_work(),))


def _no_report(new: Sequence[Path] | dict[Path, int], request: Request) -> str:
    if any(path.suffix == ".qdstrm" for path in new):
        return (
            "nsys could not import what it recorded (its importer was not found); link "
            "/usr/lib/nsight-systems/host-linux-x64 to where nsys looks, or reinstall nsys"
        )
    return "nsys wrote no report; what it said is above" if request.whole else request.nothing()


def _no_work() -> str:
    if not machine.gpus():
        return "no GPU work was captured: there is no GPU here; --tool torch times ops on the CPU"
    return "no GPU work was captured: nothing ran on the GPU in the captured range"


def _export(nsys: str, report: Path, database: Path) -> None:
    line = [nsys, "export", "--type=sqlite", "--force-overwrite=true", f"--output={database}"]
    subprocess.run([*line, str(report)], check=False)  # noqa: S603 - the same nsys


def _holds_work(database: Path) -> bool:
    """Tell whether there is a row of GPU work; tables without rows are not exported."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            return any(
                connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608 - our names
                for table in _WORK
                if table in tables
            )
    except sqlite3.Error:
        return False
