"""Hidden temporary files and folders beside an output, which replace it once complete.

Their creator holds a lock on them: one without a lock was left by a killed process.
"""

from __future__ import annotations

import os
import shutil
import sys
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
"""Time that a creator may take to lock a file, or to rename a closed one."""
_UNLOCKABLE_S = 24 * 3600
"""Without locks: age from which on a file counts as abandoned."""


def prefix(path: Path) -> str:
    """Return the prefix of a temporary file's name: the output's name, truncated to fit."""
    short = os.fsencode(path.name)[:_SHORT_BYTES]
    return f".{short.decode(sys.getfilesystemencoding(), errors='ignore')}{_MARK}"


def create_temp(path: Path) -> tuple[int, str]:
    """Create a file to become `path`; return its descriptor, locked for writing, and its name.

    Removes files that killed processes left for the same output. Raises OSError.
    """
    remove_stale(path)
    handle, name = tempfile.mkstemp(prefix=prefix(path), dir=path.parent)
    try_lock(handle)
    return handle, name


@contextmanager
def temp_directory(path: Path, inside: Path | None = None) -> Iterator[str]:
    """Create a locked temporary directory for parts of `path`, beside it or in `inside`.

    Removes what killed processes left, as `create_temp` does.
    """
    parent = inside or path.absolute().parent
    remove_stale(parent / path.name)
    with tempfile.TemporaryDirectory(prefix=prefix(path), dir=parent) as name, _locked(name):
        yield name


def replace_text(path: Path, text: str) -> None:
    """Write a small file so that another process sees all of it or nothing. Raises OSError."""
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def remove_stale(path: Path) -> None:
    """Remove abandoned temporary files of an output."""
    begin = prefix(path)
    with suppress(OSError):
        for left in [*os.scandir(path.parent)]:
            if left.name.startswith(begin):
                remove_if_stale(Path(left.path))


def remove_if_stale(draft: Path, young_s: float = _YOUNG_S) -> None:
    """Remove a temporary file unless it is young, or its creator still runs."""
    with suppress(OSError):  # already gone; or, on Windows, open
        age_s = time.time() - draft.lstat().st_mtime
        if age_s < young_s or draft.is_symlink():
            return
        with _locked(str(draft)) as is_mine:
            abandoned = is_mine or (is_mine is None and age_s > _UNLOCKABLE_S)
        if abandoned:
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


@contextmanager
def _locked(name: str) -> Iterator[bool | None]:
    """Lock a file or a folder, as `try_lock`; None, too, if folders cannot be opened."""
    try:
        handle = os.open(name, os.O_RDONLY)
    except PermissionError:
        handle = None
    try:
        yield None if handle is None else try_lock(handle)
    finally:
        if handle is not None:
            os.close(handle)


def try_lock(handle: int) -> bool | None:
    """Lock a file while it is open; False if another process has it, None without locks.

    Windows and some network file systems have none.
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
