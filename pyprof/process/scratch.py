"""Temporary directories."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def directory() -> Iterator[Path]:
    """Create a temporary directory. Raises PyprofError if none can be made."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix="pyprof-")
    except OSError as error:
        raise PyprofError(
            f"cannot create a folder for temporary files ({error.strerror or error}); "
            "set TMPDIR to a writable folder"
        ) from None
    with temporary as name:
        yield Path(name)
