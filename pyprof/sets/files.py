"""What sets need of a file system: this machine's, or one that fsspec reaches."""

from __future__ import annotations

import glob
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from pyprof import cli, guard
from pyprof.errors import CaptureError, PyprofError, reason

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


class Files(Protocol):
    """A file system. Places are absolute paths or URLs."""

    def whole(self, source: str) -> str:
        """Spell a source as every other process can read it."""

    def is_file(self, place: str) -> bool:
        """Tell whether it is there and no folder."""

    def is_folder(self, place: str) -> bool:
        """Tell whether it is a folder."""

    def listing(self, folder: str) -> list[str]:
        """Give what is directly in a folder."""

    def glob(self, pattern: str) -> list[str]:
        """Give what a pattern matches."""

    def stamp(self, place: str) -> str:
        """Give what changes when a file does."""

    def opened(self, place: str) -> AbstractContextManager[BinaryIO]:
        """Open a file for reading."""

    def output(self, place: str) -> AbstractContextManager[BinaryIO]:
        """Open a file for writing, its folder made, that appears only when it is whole."""

    def remove(self, place: str) -> None:
        """Remove a file that may be there."""


def files_of(place: str) -> Files:
    """Give the file system of a path or URL."""
    if not is_url(place):
        return Local()
    from pyprof.sets.remote import Remote  # noqa: PLC0415 - few sets are at URLs

    return Remote(place)


def is_url(place: str) -> bool:
    """Tell a URL from a path, which may be spelt as a URL, too."""
    return "://" in place and not _PATH.match(place)


_PATH = re.compile(r"(?:file|local)://(?:/(?=[a-z]:))?", re.IGNORECASE)


def is_special(place: str) -> bool:
    """Tell whether what is on this machine is no file: a folder, a pipe to which nobody writes.

    A link to nothing is taken for a file.
    """
    return not is_url(place) and Path(place).exists() and not Path(place).is_file()


def names(place: str) -> list[str]:
    """Split a path or URL into the names of the folders that it goes through and its own."""
    return re.split(r"[/\\]", place.rstrip("/\\"))


class Local:
    """The files of this machine."""

    def whole(self, source: str) -> str:
        """Make a path absolute."""
        return os.path.abspath(_PATH.sub("", source, count=1))  # noqa: PTH100 - takes out ".." too

    def is_file(self, place: str) -> bool:
        """Tell whether it is there and no folder."""
        return Path(place).exists() and not Path(place).is_dir()

    def is_folder(self, place: str) -> bool:
        """Tell whether it is a folder."""
        return Path(place).is_dir()

    def listing(self, folder: str) -> list[str]:
        """Give what is directly in a folder."""
        with _reading(folder):
            return [str(place) for place in Path(folder).iterdir()]

    def glob(self, pattern: str) -> list[str]:
        """Give what a pattern matches; `**` goes through folders."""
        return glob.glob(pattern, recursive=True)  # noqa: PTH207 - takes absolute patterns

    def stamp(self, place: str) -> str:
        """Give the file's size and time."""
        with _reading(place):
            found = Path(place).stat()
        return f"{found.st_size} {found.st_mtime_ns}"

    @contextmanager
    def opened(self, place: str) -> Iterator[BinaryIO]:
        """Open a file for reading; raises OSError."""
        with Path(place).open("rb") as file:
            yield file

    @contextmanager
    def output(self, place: str) -> Iterator[BinaryIO]:
        """Open a file for writing, its folder made, that appears only when it is whole."""
        with writing(place):
            Path(place).parent.mkdir(parents=True, exist_ok=True)
        with cli.output(place) as file:
            _claim(file)
            yield file

    def remove(self, place: str) -> None:
        """Remove a file that may be there; PyprofError where it is a capture."""
        guard.current().no_capture(place)
        with writing(place):
            Path(place).unlink(missing_ok=True)


def _claim(file: BinaryIO) -> bool:
    """Show that a file is being written as long as it is open; False where another process does.

    Where there are no locks, as on some network file systems, it is as if nobody else wrote.
    """
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def remove_abandoned(path: Path) -> None:
    """Remove a half-written file, unless there still is a process that writes it."""
    with suppress(OSError):  # it is gone; or, on Windows, open
        with path.open("r+b") as file:
            abandoned = _claim(file)
        if abandoned:
            path.unlink()


@contextmanager
def _reading(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CaptureError(
            f"{place}: {error.strerror or error}; check the path and its permissions"
        ) from None


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Make one line of whatever keeps a place from being written."""
    try:
        yield
    except PyprofError:
        raise
    except Exception as error:  # noqa: BLE001 - every cloud's library has errors of its own
        said = (error.strerror if isinstance(error, OSError) else None) or reason(error)
        raise PyprofError(f"{place}: {said}; choose another place with -o") from None
