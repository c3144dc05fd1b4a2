"""What can go wrong with a user's input, as one family of errors."""

import errno
import os


class PyprofError(Exception):
    """The input could not be used; the text says what it is and what to do next, in one line."""


class CaptureError(PyprofError):
    """A capture could not be read."""


class RecordsError(PyprofError):
    """A file of parsed records (dict lines, Parquet) could not be read."""


def refused(error: OSError) -> str | None:
    """Say which file the system refuses, in one line; None where it is not about a file's name."""
    if error.filename is None or error.errno not in _NAMES:
        return None
    return f"{os.fsdecode(error.filename)}: {error.strerror}; check the path and its permissions"


_NAMES = {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR}
"""What is wrong where the system does not even say whether a file is there."""


def reason(error: Exception) -> str:
    """Give what another library says is wrong, short and in one line; else the type of error."""
    return " ".join(str(error).split())[:200] or type(error).__name__
