"""What sets need of a file system: this machine's, or one that fsspec reaches.

This machine's is not left to fsspec, an extra: there, patterns match hidden files and know no
`**.sqlite`, and its stamps of files would have every dataset written anew.
"""

from __future__ import annotations

import errno
import glob
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from pyprof import cli, overwrite_guard
from pyprof.errors import CaptureError, PyprofError, reason
from pyprof.process import scratch
from pyprof.process.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


class FileSystem(Protocol):
    """A file system. Places are absolute paths or URLs."""

    def absolute(self, source: str) -> str:
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


def files_of(place: str) -> FileSystem:
    """Give the file system of a path or URL."""
    if not is_url(place):
        return Local()

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

    def absolute(self, source: str) -> str:
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
            status = Path(place).stat()
        return f"{status.st_size} {status.st_mtime_ns}"

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
            yield file

    def remove(self, place: str) -> None:
        """Remove a file that may be there; PyprofError where it is a capture."""
        overwrite_guard.current().check_not_capture(place)
        with writing(place):
            Path(place).unlink(missing_ok=True)


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
        cause = (error.strerror if isinstance(error, OSError) else None) or reason(error)
        raise PyprofError(f"{place}: {cause}; choose another place with -o") from None


# The file systems that fsspec reaches, and local copies of what is there.


class Remote:
    """The file system of a URL; fsspec finds it, and the credentials, by its own settings."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec.core  # noqa: PLC0415 - only URLs need it
        except ImportError:
            raise PyprofError(f"{url}: URLs need fsspec: {install_command('fsspec')}") from None
        if "::" in url and "[" not in url:  # as in a host's number
            raise PyprofError(f"{url}: nested URLs are not supported; copy the captures first")
        try:
            self._system: Any = fsspec.core.url_to_fs(url)[0]
        except Exception as error:  # noqa: BLE001 - any there is: a package is missing, a host away
            raise PyprofError(f"{url}: {reason(error)}") from None

    def absolute(self, source: str) -> str:
        """Spell the protocol as the file system itself does."""
        return self._spelt(self._system._strip_protocol(source))  # noqa: SLF001 - fsspec's for others

    def is_file(self, place: str) -> bool:
        """Tell whether it is there and no folder."""
        return bool(self._asked("isfile", place))

    def is_folder(self, place: str) -> bool:
        """Tell whether it is a folder."""
        return bool(self._asked("isdir", place))

    def listing(self, folder: str) -> list[str]:
        """Give what is directly in a folder."""
        return [self._spelt(name) for name in self._asked("ls", folder, detail=False)]

    def glob(self, pattern: str) -> list[str]:
        """Give what a pattern matches."""
        return [self._spelt(name) for name in self._asked("glob", pattern)]

    def copy(self, place: str, target: Path) -> None:
        """Copy a file to this machine; raises OSError where that is full."""
        self._asked("get_file", place, str(target))

    def stamp(self, place: str) -> str:
        """Give what the file system has for it: a version, a time, a size."""
        return str(self._asked("ukey", place))

    def opened(self, place: str) -> AbstractContextManager[BinaryIO]:
        """Open a file for reading."""
        return cast("AbstractContextManager[BinaryIO]", self._asked("open", place))

    @contextmanager
    def output(self, place: str) -> Iterator[BinaryIO]:
        """Open a file of this machine for writing that is copied when it is whole."""
        with room_for_copy(place) as folder:
            copy = folder / "copy"
            with copy.open("wb") as file:
                yield file
            with writing(place):
                self._system.put_file(str(copy), place)

    def remove(self, place: str) -> None:
        """Remove a file that may be there."""
        with writing(place), suppress(FileNotFoundError):
            self._system.rm_file(place)

    def _spelt(self, path: str) -> str:
        return str(self._system.unstrip_protocol(path))

    def _asked(self, method: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401
        """Call fsspec; whatever is wrong there (network, rights, names) is one line here."""
        try:
            return getattr(self._system, method)(*arguments, **options)
        except FileNotFoundError:
            raise CaptureError(f"{arguments[0]}: no such file; check the URL") from None
        except Exception as error:  # every cloud's library has errors of its own
            if isinstance(error, OSError) and error.errno in _FULL:
                raise
            raise CaptureError(f"{arguments[0]}: cannot be read ({reason(error)})") from None


@contextmanager
def room_for_copy(place: str) -> Iterator[Path]:
    """Give a folder for a while; where it is full, which is no capture's fault, a PyprofError."""
    try:
        with scratch.directory() as folder:
            yield folder
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise PyprofError(
            f"{place}: no room for a copy ({error.strerror}); set TMPDIR to a folder with more room"
        ) from None


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
