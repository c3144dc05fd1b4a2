"""What a client of `pyprof mcp` may have read: local captures, in folders that the user names."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.cli.capture_options import Captures
from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ROOTS: ContextVar[tuple[str, ...]] = ContextVar("_ROOTS", default=())
"""Only files in these folders may be read; anything if empty."""


@contextmanager
def restrict_to(roots: Sequence[str]) -> Iterator[None]:
    """Refuse files outside of these folders, with links resolved, during the `with`."""
    token = _ROOTS.set(tuple(map(os.path.realpath, roots)))
    try:
        yield
    finally:
        _ROOTS.reset(token)


def allowed(place: str) -> str:
    """Return the path; raises PyprofError if it is outside of the folders."""
    roots, real = _ROOTS.get(), os.path.realpath(place)
    if roots and not any(os.path.commonpath([real, root]) == root for root in roots):
        raise PyprofError(f"{place}: lies outside of the folders that this server reads (--root)")
    return place


@contextmanager
def captures(*paths: str) -> Iterator[Captures]:
    """Open the captures that the caller names: local ones, all readable."""
    from pyprof.inputs import executor  # noqa: PLC0415 - the server answers before it is loaded
    from pyprof.inputs.files import is_url  # noqa: PLC0415 - as above
    from pyprof.inputs.find import find  # noqa: PLC0415 - as above

    for path in paths:
        if is_url(path):
            raise PyprofError(f"{path}: only local files are read; download it first")
        if path == "-":
            raise PyprofError("-: stdin belongs to the client; name a file")
    for path in paths if _ROOTS.get() else ():
        # check first: a pattern must not reveal what exists outside
        allowed(path if Path(path).exists() else re.split(r"[*?\[]", path)[0] or ".")
        for place in find([path]):
            allowed(place)
    with executor.open_executor(strict=True, quiet=True) as chosen:
        yield Captures(paths, chosen, quiet=True)


def several(file: str | list[str]) -> list[str]:
    """Return the names of captures as a list. Raises PyprofError if it is empty."""
    paths = [file] if isinstance(file, str) else file
    if not paths:
        raise PyprofError("no captures given; name files, a folder or a glob")
    return paths
