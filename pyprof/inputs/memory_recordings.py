"""Which recordings of memory a user means: snapshots and captures, files, folders, globs, URLs."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof import cli, readers
from pyprof.errors import CaptureError
from pyprof.inputs.files import is_special
from pyprof.inputs.find import fetch, find, natural
from pyprof.inputs.ranks import identify
from pyprof.overwrite_guard import snapshot_beside
from pyprof.readers import kineto

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
    from pyprof.memory import read  # noqa: PLC0415 - loads the readers of all formats

    for place in [place for source in sources for place in _expand(source)]:
        with fetch(place) as path:
            before, recorded = readers.stamp(path), read.read(path, capture)
            cli.warn([f"{path}: {text}" for text in readers.changed(path, before)])
            yield recorded


def _expand(source: str) -> list[str]:
    path = Path(source)
    members: list[str] = []
    if path.is_dir():
        members = [*map(str, path.iterdir())]
    elif has_magic(source) and not path.exists():
        members = glob(source)  # noqa: PTH207 - as the user wrote it
    snapshots = natural(
        member for member in members if member.endswith(_SUFFIXES) and not is_special(member)
    )
    cli.register_inputs(snapshots)
    return snapshots or find([source])


_RECORDED = re.compile(rb'"profile_memory"\s*:\s*([01])\b')


def beside(sources: Iterable[str]) -> Iterator[Recorded]:
    """Read what was recorded with captures, if it was: snapshots beside them, memory events.

    Captures that are not files of this machine, and such as cannot be read, are left out: who asks
    has asked for something else.
    """
    for path in [path for source in sources for path in _files(source)]:
        snapshot = snapshot_beside(path)
        with suppress(CaptureError):
            if snapshot != path and snapshot.is_file():
                cli.register_inputs([str(snapshot)])
                recorded = _read(snapshot)
                rank = identify(str(path)).rank if recorded.rank is None else recorded.rank
                yield replace(recorded, rank=rank)
            elif _has_events(path):
                yield _read(path)


def _read(path: Path) -> Recorded:
    from pyprof.memory import read  # noqa: PLC0415 - loads the readers of all formats

    return read.read(path)


def _files(source: str) -> list[Path]:
    try:
        return [Path(place) for place in find([source]) if Path(place).is_file()]
    except CaptureError:  # stdin
        return []


def _has_events(path: Path) -> bool:
    """Tell by the head of a trace whether memory was recorded; where that says nothing, by all."""
    head = kineto.opening(path)
    if head.lstrip()[:1] != b"{":
        return False
    if (said := _RECORDED.search(head)) is not None:
        return said[1] == b"1"
    from pyprof.memory import trace_events  # noqa: PLC0415 - loads Arrow

    return trace_events.has_any(path)
