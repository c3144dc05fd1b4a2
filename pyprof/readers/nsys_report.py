"""Reads reports of Nsight Systems: exports them to SQLite with the installed nsys."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyprof.errors import CaptureError, PyprofError
from pyprof.process import child_programs, scratch
from pyprof.readers import nsys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyprof.schema import Capture, Identity

FORMAT = "an nsys report (.nsys-rep)"

_COMMAND = ("nsys", "export", "--type", "sqlite", "--force-overwrite", "true", "--output")


def sniff(path: Path, head: bytes) -> bool:
    """Recognise a report by its suffix (the format has no signature)."""
    del head
    return path.name.endswith((".nsys-rep", ".qdrep"))


def read(path: Path) -> Capture:
    """Export to a temporary file and read that."""
    with export(path) as exported:
        return nsys.read(exported)


TELLS_RANK = False


def identity(path: Path) -> Identity:
    """Export to a temporary file: the report itself does not show whose work it holds."""
    with export(path) as exported:
        return nsys.identity(exported)


@contextmanager
def export(path: Path) -> Iterator[Path]:
    """Export to a temporary database. Errors in reading it name the report instead."""
    tool = shutil.which("nsys")
    if tool is None:
        raise CaptureError(
            f"{path}: an nsys report, but there is no nsys on PATH to export it; "
            "on a machine with nsys, run: "
            f"{' '.join(_COMMAND)} {path.with_suffix('.sqlite').name} {path.name}"
        )
    with scratch.directory() as folder:
        exported = folder / "report.sqlite"
        command = child_programs.bind([tool, *_COMMAND[1:], str(exported), str(path.absolute())])
        done = subprocess.run(  # noqa: S603 - the user's own nsys
            command, capture_output=True, text=True, errors="replace", check=False
        )
        is_empty = exported.is_file() and not exported.stat().st_size
        if _FULL in done.stderr + done.stdout or is_empty:
            raise PyprofError(
                f"{path}: no room for its export in {folder}; set TMPDIR to a folder with more room"
            )
        if done.returncode or not exported.is_file():
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
            why = lines[-1].strip()[:200] if lines else f"exit code {done.returncode}"
            raise CaptureError(
                f"{path}: nsys could not export this report ({why}); "
                "export it with the nsys version that wrote it, or a later one"
            )
        try:
            yield exported
        except CaptureError as error:
            raise CaptureError(str(error).replace(str(exported), str(path))) from None


_FULL = "database or disk is full"
"""SQLite's message in nsys, which exits as if nothing were wrong."""
