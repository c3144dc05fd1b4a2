"""File systems of captures and datasets: this machine's, or any that fsspec reaches.

Local files do not go through fsspec, an optional package: its patterns match hidden files and do
not support `**.sqlite`, and its stamps of files would cause every dataset to be rewritten.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

from pyprof.errors import FULL_DISK, CaptureError, PyprofError, reason
from pyprof.process import output_file, overwrite_guard, scratch
from pyprof.process.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


FileSystem: TypeAlias = "Local | Remote"
"""A file system. Paths are absolute paths or URLs."""


def files_of(location: str) -> FileSystem:
    """Return the file system of a path or URL."""
    return Remote(location) if is_url(location) else Local()


def is_url(location: str) -> bool:
    """Whether it is a URL; `file://` counts as a path."""
    return "://" in location and not _PATH.match(location)


_PATH = re.compile(r"(?:file|local)://(?:/(?=[a-z]:))?", re.IGNORECASE)


def is_special(location: str) -> bool:
    """Whether a local path is neither a file nor missing: a folder, a pipe.

    A broken link counts as a file.
    """
    return not is_url(location) and Path(location).exists() and not Path(location).is_file()


def names(location: str) -> list[str]:
    """Split a path or URL into its components."""
    return re.split(r"[/\\]", location.rstrip("/\\"))


class Local:
    """The files of this machine."""

    def absolute(self, source: str) -> str:
        """Return the path by which any process can read the source."""
        return os.path.abspath(_PATH.sub("", source, count=1))  # noqa: PTH100 - takes out ".." too

    def is_file(self, location: str) -> bool:
        """Whether it exists and is not a folder."""
        return Path(location).exists() and not Path(location).is_dir()

    def is_folder(self, location: str) -> bool:
        """Whether it is a folder."""
        return Path(location).is_dir()

    def listing(self, folder: str) -> list[str]:
        """Return the entries of a folder."""
        with _reading(folder):
            return [str(location) for location in Path(folder).iterdir()]

    def glob(self, pattern: str) -> list[str]:
        """Return the matches of a pattern; `**` matches folders recursively."""
        return glob.glob(pattern, recursive=True)  # noqa: PTH207 - takes absolute patterns

    def stamp(self, location: str) -> str:
        """Return the file's size and time."""
        with _reading(location):
            status = Path(location).stat()
        return f"{status.st_size} {status.st_mtime_ns}"

    @contextmanager
    def opened(self, location: str) -> Iterator[BinaryIO]:
        """Open a file for reading; raises OSError."""
        with Path(location).open("rb") as file:
            yield file

    @contextmanager
    def output(self, location: str) -> Iterator[BinaryIO]:
        """Open a file for writing, creating its folder; it appears only when complete."""
        with writing(location):
            Path(location).parent.mkdir(parents=True, exist_ok=True)
        with output_file.open_output(location) as file:
            yield file

    def remove(self, location: str) -> None:
        """Remove a file if it exists; PyprofError if it is a capture."""
        overwrite_guard.current().check_not_capture(location)
        with writing(location):
            Path(location).unlink(missing_ok=True)


@contextmanager
def _reading(location: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CaptureError(
            f"{location}: {error.strerror or error}; check the path and its permissions"
        ) from None


@contextmanager
def writing(location: str) -> Iterator[None]:
    """Report any error in writing a path as one line."""
    try:
        yield
    except PyprofError:
        raise
    except Exception as error:  # noqa: BLE001 - every cloud's library has errors of its own
        cause = (error.strerror if isinstance(error, OSError) else None) or reason(error)
        raise PyprofError(f"{location}: {cause}; choose another place with -o") from None


class Remote:
    """The file system of a URL; fsspec finds it and its credentials by its own settings."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec.core  # noqa: PLC0415 - only URLs need it
        except ImportError:
            raise PyprofError(f"{url}: URLs need fsspec: {install_command('fsspec')}") from None
        if "::" in url and "[" not in url:  # not an IPv6 address
            raise PyprofError(f"{url}: nested URLs are not supported; copy the captures first")
        try:
            self._system: Any = fsspec.core.url_to_fs(url)[0]
        except Exception as error:  # noqa: BLE001 - anything: a package is missing, a host is away
            raise PyprofError(f"{url}: {reason(error)}") from None

    def absolute(self, source: str) -> str:
        """Return the URL with the file system's own protocol name."""
        return self._url(self._system._strip_protocol(source))  # noqa: SLF001 - fsspec's for others

    def is_file(self, location: str) -> bool:
        """Whether it exists and is not a folder."""
        return bool(self._call("isfile", location))

    def is_folder(self, location: str) -> bool:
        """Whether it is a folder."""
        return bool(self._call("isdir", location))

    def listing(self, folder: str) -> list[str]:
        """Return the entries of a folder."""
        return [self._url(name) for name in self._call("ls", folder, detail=False)]

    def glob(self, pattern: str) -> list[str]:
        """Return the matches of a pattern."""
        return [self._url(name) for name in self._call("glob", pattern)]

    def copy(self, location: str, target: Path) -> None:
        """Copy a file to this machine; raises OSError if the disk is full."""
        self._call("get_file", location, str(target))

    def stamp(self, location: str) -> str:
        """Return the file system's own stamp: a version, time or size."""
        return str(self._call("ukey", location))

    def opened(self, location: str) -> AbstractContextManager[BinaryIO]:
        """Open a file for reading."""
        return cast("AbstractContextManager[BinaryIO]", self._call("open", location))

    @contextmanager
    def output(self, location: str) -> Iterator[BinaryIO]:
        """Open a local file for writing that is uploaded when complete."""
        with room_for_copy(location) as folder:
            copy = folder / "copy"
            with copy.open("wb") as file:
                yield file
            with writing(location):
                self._system.put_file(str(copy), location)

    def remove(self, location: str) -> None:
        """Remove a file if it exists."""
        with writing(location), suppress(FileNotFoundError):
            self._system.rm_file(location)

    def _url(self, path: str) -> str:
        return str(self._system.unstrip_protocol(path))

    def _call(self, method: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401
        """Call fsspec; any error there (network, permissions, names) becomes one line."""
        try:
            return getattr(self._system, method)(*arguments, **options)
        except FileNotFoundError:
            raise CaptureError(f"{arguments[0]}: no such file; check the URL") from None
        except Exception as error:  # every cloud's library has errors of its own
            if isinstance(error, OSError) and error.errno in FULL_DISK:
                raise
            raise CaptureError(f"{arguments[0]}: cannot be read ({reason(error)})") from None


@contextmanager
def room_for_copy(location: str) -> Iterator[Path]:
    """Yield a temporary folder; a full disk, not the capture's fault, is a PyprofError."""
    try:
        with scratch.directory() as folder:
            yield folder
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        raise PyprofError(
            f"{location}: no room for a copy ({error.strerror}); "
            "set TMPDIR to a folder with more room"
        ) from None
