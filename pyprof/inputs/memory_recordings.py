"""Which recordings of memory a user means: snapshots and captures, files, folders, globs, URLs."""

from __future__ import annotations

from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof import cli
from pyprof.inputs.find import fetch, find, natural
from pyprof.memory import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyprof.memory.read import Recorded
    from pyprof.schema import Capture

_SUFFIXES = (".pickle", ".pkl")


def recordings(sources: Iterable[str], capture: Capture | None = None) -> Iterator[Recorded]:
    """Read what is meant, one file after the other. Of a folder or glob snapshots are preferred.

    A capture of the same run tells more of what is in snapshots.

    Raises CaptureError where nothing is meant, or something cannot be read.
    """
    for place in [place for source in sources for place in _expand(source)]:
        with fetch(place) as path:
            yield read.read(path, capture)


def _expand(source: str) -> list[str]:
    path = Path(source)
    members: list[str] = []
    if path.is_dir():
        members = [*map(str, path.iterdir())]
    elif has_magic(source) and not path.exists():
        members = glob(source)  # noqa: PTH207 - as the user wrote it
    snapshots = natural(member for member in members if member.endswith(_SUFFIXES))
    cli.reading(snapshots)
    return snapshots or find([source])
