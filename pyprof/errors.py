"""What can go wrong with a user's input, as one family of errors."""


class PyprofError(Exception):
    """The input could not be used; the text says what it is and what to do next, in one line."""


class CaptureError(PyprofError):
    """A capture could not be read."""


class RecordsError(PyprofError):
    """A file of parsed records (dict lines, Parquet) could not be read."""


def reason(error: Exception) -> str:
    """Give what another library says is wrong, short and in one line; else the type of error."""
    return " ".join(str(error).split())[:200] or type(error).__name__
