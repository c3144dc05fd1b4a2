"""What sets need of a file system: this machine's, or one that fsspec reaches."""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from pyprof import cli
from pyprof.errors import CaptureError, PyprofError, reason

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
    return Remote(place) if is_url(place) else Local()


def is_url(place: str) -> bool:
    """Tell a URL from a path."""
    return "://" in place


def names(place: str) -> list[str]:
    """Split a path or URL into the names of the folders that it goes through and its own."""
    return re.split(r"[/\\]", place.rstrip("/\\"))


class Local:
    """The files of this machine."""

    def whole(self, source: str) -> str:
        """Make a path absolute."""
        return os.path.abspath(source)  # noqa: PTH100 - takes out ".." too

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
            yield file

    def remove(self, place: str) -> None:
        """Remove a file that may be there."""
        with writing(place):
            Path(place).unlink(missing_ok=True)


class Remote:
    """The file system of a URL; fsspec finds it, and the credentials, by its own settings."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec.core  # noqa: PLC0415 - only URLs need it
        except ImportError:
            raise PyprofError(
                f"{url}: URLs need fsspec; pip install torch-pyprof[remote]"
            ) from None
        try:
            self._system: Any = fsspec.core.url_to_fs(url)[0]
        except (ImportError, ValueError) as error:  # it says which package is missing
            raise PyprofError(f"{url}: {error}") from None

    def whole(self, source: str) -> str:
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

    def local(self, place: str) -> Path | None:
        """Give the path of a file of this machine; None for any other."""
        protocol = self._system.protocol
        protocols = (protocol,) if isinstance(protocol, str) else protocol
        return Path(self._system._strip_protocol(place)) if "file" in protocols else None  # noqa: SLF001

    def copy(self, place: str, target: Path) -> None:
        """Copy a file to this machine."""
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
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with writing(place), self._system.open(place, "wb") as target:
                shutil.copyfileobj(file, target, _COPIED_BYTES)

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
        except Exception as error:  # noqa: BLE001 - every cloud's library has errors of its own
            raise CaptureError(f"{arguments[0]}: cannot be read ({reason(error)})") from None


_COPIED_BYTES = 1 << 22


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
    except Exception as error:  # noqa: BLE001 - as above
        said = (error.strerror if isinstance(error, OSError) else None) or reason(error)
        raise PyprofError(f"{place}: {said}; choose another place with -o") from None
