"""Errors that a user can fix, with one-line messages."""

import errno
import os

NOTE = "note: "
"""Prefix of messages that are worth knowing but warn of nothing."""


def of_source(source: str, text: str) -> str:
    """Name the source of a warning, or of a note, in front of it."""
    is_note = text.startswith(NOTE)
    return f"{NOTE * is_note}{source}: {text.removeprefix(NOTE)}"


class PyprofError(Exception):
    """The input could not be used; the message says what it is and what to do next."""


class CaptureError(PyprofError):
    """A capture could not be read."""


class RecordsError(PyprofError):
    """A file of parsed records (dict lines, Parquet) could not be read."""


def refused(error: OSError) -> str | None:
    """Return a one-line message about a file, or space, that the system refuses, else None."""
    if error.errno in FULL_DISK:
        return f"{error.strerror}; free space, or write elsewhere (-o, TMPDIR)"
    if error.filename is None or error.errno not in _NAMES:
        return None
    return f"{os.fsdecode(error.filename)}: {error.strerror}; check the path and its permissions"


_NAMES = {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR}
"""Errors about a path as such, rather than the file there."""

FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of writing to a full disk, which rarely name the file."""


def reason(error: Exception) -> str:
    """Return another library's error message, short and on one line; else the type of the error."""
    return " ".join(str(error).split())[:200] or type(error).__name__
