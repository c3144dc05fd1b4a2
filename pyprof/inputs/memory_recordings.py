"""Which recordings of memory a user means: snapshots and captures; files, folders, globs, URLs."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof import readers
from pyprof.errors import CaptureError
from pyprof.inputs.files import is_special
from pyprof.inputs.find import SNAPSHOTS, fetch, find, natural
from pyprof.inputs.ranks import identify
from pyprof.process import overwrite_guard
from pyprof.process.messages import warn
from pyprof.process.overwrite_guard import snapshot_beside
from pyprof.readers import kineto
from pyprof.readers.kineto.file.stream import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyprof.allocations.read import Recorded
    from pyprof.schema import Capture


def recordings(sources: Iterable[str], capture: Capture | None = None) -> Iterator[Recorded]:
    """Read the recordings meant, one by one. In a folder or glob snapshots are preferred.

    A capture of the same run adds details to snapshots. Raises CaptureError if there is none, or
    one cannot be read.
    """
    for location in [location for source in sources for location in _expand(source)]:
        with fetch(location) as path:
            before, recorded = readers.stamp(path), _read(path, capture)
            warn([f"{path}: {text}" for text in readers.changed(path, before)])
            yield recorded


def _expand(source: str) -> list[str]:
    path = Path(source)
    members: list[str] = []
    if path.is_dir():
        members = [*map(str, path.iterdir())]
    elif has_magic(source) and not path.exists():
        members = glob(source)  # noqa: PTH207 - as the user wrote it
    snapshots = natural(
        member for member in members if member.endswith(SNAPSHOTS) and not is_special(member)
    )
    overwrite_guard.current().reads(snapshots)
    return snapshots or find([source])


_RECORDED = re.compile(rb'"profile_memory"\s*:\s*([01])\b')


def read_with_captures(sources: Iterable[str]) -> Iterator[Recorded]:
    """Read the memory recorded with captures, if any: snapshots beside them, memory events.

    Skips remote and unreadable captures: the caller asked for something else, memory is a bonus.
    """
    paths: list[Path] = []
    for source in sources:
        with suppress(CaptureError):  # stdin
            paths += [path for path in map(Path, find([source])) if path.is_file()]
    for path in paths:
        snapshot = snapshot_beside(path)
        with suppress(CaptureError):
            if snapshot != path and snapshot.is_file():
                overwrite_guard.current().reads([str(snapshot)])
                recorded = _read(snapshot)
                rank = identify(str(path)).rank if recorded.rank is None else recorded.rank
                yield replace(recorded, rank=rank)
            elif _may_have_events(path):
                yield _read(path)


def _read(path: Path, capture: Capture | None = None) -> Recorded:
    from pyprof.allocations import read  # noqa: PLC0415 - loads the readers of all formats

    return read.read(path, capture)


def _may_have_events(path: Path) -> bool:
    """Whether memory may have been recorded, by a trace's header or, if that lacks it, its text.

    Parsing all events, only to find none of memory, would take as long as reading the trace.
    """
    head = kineto.opening(path)
    if head.lstrip()[:1] != b"{":
        return False
    if (said := _RECORDED.search(head)) is not None:
        return said[1] == b"1"
    return any(b'"[memory]"' in block for block in Trace(path).blocks())
