"""The file systems that fsspec reaches, and local copies of what is there."""

from __future__ import annotations

import errno
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from pyprof import scratch
from pyprof.errors import CaptureError, PyprofError, reason
from pyprof.sets.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


class Remote:
    """The file system of a URL; fsspec finds it, and the credentials, by its own settings."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec.core  # noqa: PLC0415 - only URLs need it
        except ImportError:
            raise PyprofError(
                f"{url}: URLs need fsspec; pip install torch-pyprof[remote]"
            ) from None
        if "::" in url and "[" not in url:  # as in a host's number
            raise PyprofError(f"{url}: URLs within URLs are not read; copy the captures from there")
        try:
            self._system: Any = fsspec.core.url_to_fs(url)[0]
        except Exception as error:  # noqa: BLE001 - any there is: a package is missing, a host away
            raise PyprofError(f"{url}: {reason(error)}") from None

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
        with scratch.folder() as folder:
            yield folder
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise PyprofError(
            f"{place}: no room for a copy ({error.strerror}); set TMPDIR to a folder that has it"
        ) from None


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
