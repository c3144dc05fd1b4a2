"""Hidden files and folders beside an output, which take its place, or are gone, when it is whole.

Who makes one holds a lock on it: one without a lock was left by a process that was killed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows, which removes no file that is open
    fcntl = None  # type: ignore[assignment]

_SHORT_BYTES = 32
_MARK = ".pyprof-"
_YOUNG_S = 10
"""So long its maker may take to lock a draft, or to put one that is closed in its place."""
_UNLOCKABLE_S = 24 * 3600
"""So long nobody writes to a draft that is in use, where there are no locks to tell by."""


def prefix(path: Path) -> str:
    """Begin the name of what becomes a file: its own, cut, for there is a longest name."""
    return f".{os.fsencode(path.name)[:_SHORT_BYTES].decode(errors='ignore')}{_MARK}"


def create_temp(path: Path) -> tuple[int, str]:
    """Make a file that is to become `path`; give it, open for writing and locked, and its name.

    What killed processes left of the same output goes. Raises OSError.
    """
    remove_stale(path)
    handle, name = tempfile.mkstemp(prefix=prefix(path), dir=path.parent)
    try_lock(handle)
    return handle, name


@contextmanager
def temp_directory(path: Path, inside: Path | None = None) -> Iterator[str]:
    """Give a folder for parts of `path`, which is gone afterwards; as for `create_temp`.

    It is beside `path`, or where else is asked for.
    """
    parent = inside or path.absolute().parent
    remove_stale(parent / path.name)
    with tempfile.TemporaryDirectory(prefix=prefix(path), dir=parent) as name:
        handle = _opened(name)
        try:
            if handle is not None:
                try_lock(handle)
            yield name
        finally:
            if handle is not None:
                os.close(handle)


def remove_stale(path: Path) -> None:
    """Remove drafts of a file that nobody makes any more."""
    begin = prefix(path)
    with suppress(OSError):
        for left in [*os.scandir(path.parent)]:
            if left.name.startswith(begin):
                remove_if_stale(Path(left.path))


def remove_if_stale(draft: Path, young_s: float = _YOUNG_S) -> None:
    """Remove a draft, unless it is young, or there still is a process that makes it."""
    with suppress(OSError):  # it is gone; or, on Windows, open
        age_s = time.time() - draft.lstat().st_mtime
        if age_s < young_s or draft.is_symlink():
            return
        handle = _opened(str(draft))
        try:
            locked = None if handle is None else try_lock(handle)
        finally:
            if handle is not None:
                os.close(handle)
        if locked or (locked is None and age_s > _UNLOCKABLE_S):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


def _opened(name: str) -> int | None:
    """Open a file or a folder to lock it; None where folders cannot be opened."""
    try:
        return os.open(name, os.O_RDONLY)
    except PermissionError:
        return None


def try_lock(handle: int) -> bool | None:
    """Lock what is made as long as it is open; False where another process has, None without locks.

    There are none on Windows and on some network file systems.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
