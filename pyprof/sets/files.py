"""What a set needs of a file system: this machine's, or one that fsspec reaches."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any, Protocol

from pyprof.errors import CaptureError, PyprofError


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
        return [str(place) for place in Path(folder).iterdir()]

    def glob(self, pattern: str) -> list[str]:
        """Give what a pattern matches; `**` goes through folders."""
        return glob.glob(pattern, recursive=True)  # noqa: PTH207 - takes absolute patterns


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
        self._url = url

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
        """Give what changes when a file does."""
        return str(self._asked("ukey", place))

    def _spelt(self, path: str) -> str:
        return str(self._system.unstrip_protocol(path))

    def _asked(self, method: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401
        """Call fsspec; whatever is wrong there (network, rights, names) is one line here."""
        try:
            return getattr(self._system, method)(*arguments, **options)
        except FileNotFoundError:
            raise CaptureError(f"{arguments[0]}: no such file; check the URL") from None
        except Exception as error:  # noqa: BLE001 - every cloud's library has errors of its own
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise CaptureError(f"{arguments[0]}: cannot be read ({reason})") from None
