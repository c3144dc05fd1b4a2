"""Guards what a command reads: no output replaces it, and messages name it as the user does."""

from __future__ import annotations

import os
import re
import stat
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyprof.errors import CaptureError, PyprofError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

STDOUT = STDIN = "-"

APPLICATION_ID = 0x50795066
"""SQLite's application id in the header of files that `pyprof capture` wrote."""

SNAPSHOT = ".memory.pickle"
"""Suffix of a memory snapshot, in place of the capture's own."""
_CAPTURES = (".pt.trace.json.gz", ".pt.trace.json", ".json.gz", ".json", ".sqlite", ".nsys-rep")

_KEY = "pyprof.process.overwrite_guard"
_BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of SQLite's files beside a database."""
REPORTS = (".nsys-rep", ".qdrep")
"""Suffixes of reports of nsys, now and before 2021."""
_ALIKE = (".sqlite", *REPORTS)
"""Suffixes of a report and its export, which count as one file."""

_END = r"(?![\w-]|\.\w)"
"""The end of a path in a text: not the beginning of a longer path."""

_Inode = tuple[int, int]


@dataclass(kw_only=True)
class Guard:
    """The inputs and the output of a running command."""

    target: str | None = None
    """The output, once known."""
    inputs: dict[_Inode, str] = field(default_factory=dict)
    belonging: dict[str, str] = field(default_factory=dict)
    """Paths of files that belong to an input, existing or not."""
    given: dict[str, str] = field(default_factory=dict)
    """The user's spelling of an input, by absolute path."""
    folders: set[str] = field(default_factory=set)
    """Folders already searched for files that are read along with captures."""

    def reads(self, places: Iterable[str]) -> None:
        """Protect inputs from being replaced; PyprofError if one is the output."""
        for place in places:
            status = _stat(0 if place == STDIN else place)
            if status is not None:
                self.inputs[status.st_dev, status.st_ino] = place
                if place != STDIN:
                    self.belonging |= dict.fromkeys(_files_of(place), place)
                    self._with_captures(place)
        if self.target is not None:
            self._check_not_input(self.target)

    def remember_spelling(self, place: str, source: str) -> None:
        """Remember the user's spelling of a path, or of a prefix of what is read (`FOLDER/`)."""
        if place != source:
            self.given[place] = source

    def restore_user_paths(self, text: str) -> str:
        """Replace absolute paths of inputs in a text by the user's spelling."""
        if not self.given:
            return text
        places = sorted(self.given, key=len, reverse=True)  # the innermost folder first
        spelt = "|".join(re.escape(place) + _END * (place[-1:] != "/") for place in places)
        return re.sub(rf"(?<![\w./-])(?:{spelt})", lambda match: self.given[match[0]], text)

    def _with_captures(self, place: str) -> None:
        """Protect files that are read along with a capture."""
        from pyprof.readers import sidecars  # noqa: PLC0415 - few need it

        folder = os.path.dirname(os.path.abspath(place))  # noqa: PTH100, PTH120 - texts
        if folder in self.folders:
            return
        self.folders.add(folder)
        for path in sidecars.read_with_captures(Path(folder)):
            if (status := _stat(str(path))) is not None:
                self.inputs.setdefault((status.st_dev, status.st_ino), str(path))

    def check_writable(self, target: str) -> None:
        """Raise PyprofError if `target` must not be written."""
        self.target = target
        self._check_not_input(target)
        if target != STDOUT:
            self.check_not_capture(target)

    def _check_not_input(self, target: str) -> None:
        if target == STDOUT and sys.stdout is None:  # closed
            return
        status = _stat(1 if target == STDOUT else target)
        if status is not None and (read := self.inputs.get((status.st_dev, status.st_ino))):
            shown = "stdout" if target == STDOUT else target
            what = "stdin" if read == STDIN else read
            raise PyprofError(f"{shown}: is an input ({what}); choose another place with -o")
        if target != STDOUT and (read := self.belonging.get(os.path.realpath(target))):
            raise PyprofError(f"{target}: belongs to the input {read}; choose another place")

    def check_not_capture(self, target: str, own: Callable[[Path], bool] | None = None) -> None:
        """Raise PyprofError if a capture is there, unless `own` accepts it."""
        path = Path(os.path.realpath(target))
        if _stat(str(path)) is None or not _holds_capture(path):
            return
        if own is None or not own(path):
            raise PyprofError(
                f"{target}: is a capture, perhaps the only copy; choose another place with -o, "
                "or remove it first"
            )


def current() -> Guard:
    """Return the guard of the running command; an empty one without a command."""
    context = click.get_current_context(silent=True)
    return Guard() if context is None else of_command(context)


def of_command(context: click.Context) -> Guard:
    """Return the guard of a command."""
    guard: Guard = context.meta.setdefault(_KEY, Guard())
    return guard


def _stat(place: str | int) -> os.stat_result | None:
    """Return the status of a regular file, or an open one; None if missing or something else."""
    try:
        status = os.stat(place)  # noqa: PTH116 - a URL is not a path
    except (OSError, ValueError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _files_of(place: str) -> list[str]:
    """Return the paths of files that belong to a file, with links resolved."""
    real_path = os.path.realpath(place)
    stem, suffix = os.path.splitext(real_path)  # noqa: PTH122 - texts
    alike = [stem + other for other in _ALIKE if suffix in _ALIKE and other != suffix]
    snapshot = snapshot_beside(Path(real_path))
    return [*(real_path + end for end in _BESIDE), *alike, str(snapshot)]


def snapshot_beside(capture: Path) -> Path:
    """Return the path of the memory snapshot that belongs to a capture."""
    stem = next((capture.name.removesuffix(end) for end in _CAPTURES if capture.name.endswith(end)),
                capture.name)  # fmt: skip
    return capture.with_name(stem + SNAPSHOT)


_GZIP = b"\x1f\x8b"
_RECORDS = (b"PAR1", b'{"kShortName"', b"{'kShortName'")
_WRITER = b'"writer":"pyprof '
_RECORDER = b'"pyprof_version"'
_HEAD_BYTES = 1 << 16
_SQLITE = b"SQLite format 3\0"
_ID = slice(68, 72)


def _holds_capture(path: Path) -> bool:
    """Whether a file is a profiler's, even if damaged or unreadable."""
    from pyprof import readers  # noqa: PLC0415 - takes time to load
    from pyprof.readers.refusals import is_memory_snapshot  # noqa: PLC0415 - as above

    try:
        head = _head(path)
        if not head or head.startswith(_RECORDS) or _WRITER in head[:_FIRST]:
            return False
        return is_memory_snapshot(head) or readers.is_capture(path)
    except (CaptureError, OSError):
        return True


_FIRST = 256
"""Bytes at the beginning in which an exported timeline names its writer."""


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.startswith(_GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)
    except zlib.error:
        return head


def recorded(path: Path) -> bool:
    """Whether a capture was recorded by `pyprof capture`."""
    try:
        head = _head(path)
    except OSError:
        return False
    if head.startswith(_SQLITE):
        return head[_ID] == APPLICATION_ID.to_bytes(4, "big")
    return _RECORDER in head
