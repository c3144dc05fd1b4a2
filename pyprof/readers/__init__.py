"""Reads a profiler's file into a `Capture`; the content of the file shows which profiler wrote it.

A reader is a module here with `sniff(path, head) -> bool` and `read(path) -> Capture`; it is found
by being here. It knows its tool but no ops. `FORMAT` names its files for messages.
`DATABASE = True` means that its files are databases of SQLite: it is asked about these alone, the
other readers about all other files. `identity(path) -> Identity` reads the rank or the processes
alone, if captures of the tool state them; with `TELLS_RANK = False` they state no rank.
"""

from __future__ import annotations

import pkgutil
import stat
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from pyprof.errors import CaptureError, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyprof.schema import Capture, Identity

T = TypeVar("T")
_HEAD_BYTES = 4096
SQLITE = b"SQLite format 3\0"
"""The first bytes of a database."""


class Reader(Protocol):
    """What a module of this package provides."""

    __name__: str
    FORMAT: str
    """Its files, with an article: `an nsys export (.sqlite)`."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether the file is this tool's, by its first bytes and, if need be, the rest."""

    def read(self, path: Path) -> Capture:
        """Read the whole capture. Raises CaptureError if it cannot be used."""


def readers() -> Iterator[Reader]:
    """Load the readers, in alphabetical order."""
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):  # shared by readers
            continue
        reader = import_module(f"{__name__}.{module.name}")
        if hasattr(reader, "sniff"):
            yield cast("Reader", reader)


def read(path: Path) -> Capture:
    """Read a capture of any tool. Raises CaptureError, with a remedy, if that fails."""
    from pyprof.readers.provenance import with_origins  # noqa: PLC0415 - loads Arrow
    from pyprof.readers.validate import plausible  # noqa: PLC0415 - as above

    def checked(path: Path) -> Capture:
        before = stamp(path)
        capture = with_origins(plausible(reader.read(path), path), path)
        return replace(capture, warnings=(*capture.warnings, *changed(path, before)))

    reader = _reader(path)
    return read_checked(path, checked)


def stamp(path: Path) -> tuple[int, ...]:
    """Return values that change when a file changes; () if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def changed(path: Path, before: tuple[int, ...]) -> list[str]:
    """Warn if a file has changed since `before`; a deleted one was open, so it was read whole."""
    after = stamp(path)
    return [_CHANGED] if after and after != before else []


_CHANGED = "the file changed while it was read: numbers may match neither version; run this again"


def identity(path: Path) -> Identity:
    """Read the rank or the processes of a capture, but not the rest. Raises CaptureError."""
    from pyprof.schema import Identity  # noqa: PLC0415 - loads Arrow

    read_identity = getattr(_reader(path), "identity", None)
    return read_checked(path, read_identity) if read_identity else Identity()


def tells_rank(path: Path) -> bool:
    """Whether `identity` may know a rank; a reader with `TELLS_RANK = False` never does.

    Raises CaptureError if no reader takes this file.
    """
    return bool(getattr(_reader(path), "TELLS_RANK", True))


def _reader(path: Path) -> Reader:
    head = read_head(path)
    if reader := reader_of(path, head):
        return reader
    from pyprof.readers import refusals  # noqa: PLC0415 - needed for other files only

    what = refusals.describe(path, head)
    raise CaptureError(f"{path}: not a capture that pyprof can read ({what}); {expected()}")


def reader_of(path: Path, head: bytes) -> Reader | None:
    """Return the reader that takes a file that begins with `head`; None if none does."""
    is_database = head.startswith(SQLITE)
    asked = (each for each in readers() if getattr(each, "DATABASE", False) == is_database)
    return next((each for each in asked if each.sniff(path, head)), None)


def read_checked(path: Path, function: Callable[[Path], T]) -> T:
    """Read a file by a function; raise CaptureError also if it fails on impossible values."""
    import pyarrow as pa  # noqa: PLC0415 - takes time to load

    try:
        return function(path)
    except MemoryError:  # includes Arrow's ArrowMemoryError
        raise
    except (pa.ArrowException, OverflowError, ValueError, IndexError) as error:
        # Readers check what a tool may write; a damaged file can hold anything else.
        raise CaptureError(
            f"{path}: contains impossible values ({reason(error)}); the file is damaged: "
            "export or capture it again"
        ) from error


def expected() -> str:
    """List the formats that can be read, sorted: those named after tools first."""
    formats = (getattr(reader, "FORMAT", None) for reader in readers())
    *others, last = sorted(
        filter(None, formats), key=lambda text: text.partition(" ")[2].swapcase()
    )
    return f"expected {', '.join(others)} or {last}"


def is_capture(path: Path) -> bool:
    """Whether some reader takes this file. Raises CaptureError if it cannot be opened."""
    return reader_of(path, read_head(path)) is not None


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file. Raises CaptureError if there are none."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # reading may never end
            raise CaptureError(f"{path}: {STREAM}")
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except IsADirectoryError:
        raise CaptureError(f"{path}: is a folder; name the capture inside it") from None
    except FileNotFoundError:
        raise CaptureError(f"{path}: no such file; check the path") from None
    except OSError as error:
        why = "is a folder" if path.is_dir() else error.strerror or "cannot be read"
        raise CaptureError(f"{path}: {why}; check the path and its permissions") from None
    if not head:
        raise CaptureError(f"{path}: the file is empty; export or capture again")
    return head


STREAM = "is a pipe or a device; save it to a file and name that"
"""Why only regular files are read."""
