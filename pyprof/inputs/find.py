"""Which captures a user means: paths, globs, folders, and URLs of any file system fsspec knows."""

from __future__ import annotations

import re
from contextlib import contextmanager
from glob import has_magic
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof import readers
from pyprof.errors import CaptureError, PyprofError
from pyprof.inputs import trial_folder
from pyprof.inputs.files import files_of, is_special, is_url, names
from pyprof.process import overwrite_guard
from pyprof.readers import settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyprof.inputs.files import FileSystem

_SUFFIXES = (
    *(".sqlite", *overwrite_guard.REPORTS, ".sql", ".nvvp", ".prof", ".json.gz"),
    "_results.db",  # as rocprofv3 names its files
)
"""Suffixes of captures. In a folder a file counts by its suffix, even if damaged."""

_PERHAPS = ".json"
"""A suffix of many other files, too: the content decides, if the file exists."""

_RECORDS = (".dict", ".jsonl", ".parquet")
"""Suffixes of files that `pyprof parse` writes."""
SNAPSHOTS = (".pickle", ".pkl")
"""Suffixes of memory snapshots; only `memory` reads them."""
PARTITION = "rank="
"""Prefix of a rank's folder, before its number."""

_WINDOW = re.compile(r"\.\d+$")
"""Suffix of a window's report of nsys; `pyprof capture` exports all windows to one file."""

NUMBERS = re.compile(r"(\d+)")


def find(sources: Sequence[str]) -> list[str]:
    """Return the captures meant, as absolute paths or URLs, in natural order.

    A source is a file, a glob (`**` for any folders between), a folder with captures directly in
    it, a dataset of `pyprof parse -o FOLDER/` (each rank is a capture), or a URL of any of them.
    Raises CaptureError if there is none, a source has none, or a capture is named twice.
    """
    if not sources:
        raise CaptureError("no captures given; name files, a folder or a glob")
    captures = natural([url for source in sources for url in _expand(source)])
    for before, after in pairwise(captures):
        if before == after:
            raise CaptureError(f"{after}: given twice; name each capture once")
    overwrite_guard.current().reads(url for url in captures if not is_url(url))
    return captures


def only(sources: Sequence[str]) -> str | None:
    """Return the single capture meant, a file as the user wrote it; None for several."""
    if len(sources) == 1 and Path(sources[0]).is_file():
        return sources[0]
    captures = find(sources)
    return captures[0] if len(captures) == 1 else None


@contextmanager
def fetch(url: str) -> Iterator[Path]:
    """Yield a capture as a local file: itself, or a temporary copy.

    Raises CaptureError if it cannot be copied, or is stdin; errors about the copy name the URL.
    """
    _refuse_stdin(url)
    if not is_url(url):
        yield Path(url)
        return
    from pyprof.inputs.files import Remote, room_for_copy  # noqa: PLC0415 - few sets are at URLs

    with room_for_copy(url) as folder:
        copy = folder / names(url)[-1]
        Remote(url).copy(url, copy)
        try:
            yield copy
        except PyprofError as error:
            raise type(error)(str(error).replace(str(copy), url)) from None


def natural(locations: Iterable[str]) -> list[str]:
    """Sort names as people do: rank10 after rank9."""
    return sorted(locations, key=_natural_key)


def _natural_key(name: str) -> tuple[list[tuple[str, int]], str]:
    parts = NUMBERS.split(name)
    numbers = [int(number[-_DIGITS:]) for number in parts[1::2]] + [-1]
    return list(zip(parts[::2], numbers, strict=True)), name


_DIGITS = 1000
"""Python refuses to parse very long numbers."""


def _refuse_stdin(source: str) -> None:
    if source == overwrite_guard.STDIN:
        raise CaptureError(
            "-: captures and sets cannot be read from stdin; save to a file and name that"
        )


def _expand(source: str) -> list[str]:
    _refuse_stdin(source)
    if not source:  # an unset variable, not the current folder
        raise CaptureError("the name of a capture is empty; check the path")
    files = files_of(source)
    location = files.absolute(source)
    _remember(files, source)
    if files.is_file(location):
        if is_special(location):
            raise CaptureError(f"{source}: {readers.STREAM}")
        return [location]
    if files.is_folder(location):
        captures = _in_folder(files, location)
        what = "is a folder without captures; name the captures, or their folder"
        if any(name.endswith(SNAPSHOTS) for name in files.listing(location)):
            what = f"holds memory snapshots and no captures; to see them: pyprof memory {source}"
    elif has_magic(source):
        captures = [url for match in files.glob(location) for url in _captures_at(files, match)]
        what = "matches no capture; check the pattern"
    else:
        raise CaptureError(f"{source}: no such file; check the path")
    if not captures:
        raise CaptureError(f"{source}: {what}")
    return captures


def _remember(files: FileSystem, source: str) -> None:
    """Have messages name files as the user did; for a pattern, relative to its folder."""
    location, spelling = files.absolute(source), source.rstrip("/") or source
    if has_magic(source) and not is_url(source) and not files.is_file(source):
        folders = takewhile(lambda name: not has_magic(name), source.split("/"))
        spelling = "".join(f"{name}/" for name in folders)
        location = files.absolute(spelling or ".").rstrip("/") + "/"
    overwrite_guard.current().remember_spelling(location, spelling)


def _captures_at(files: FileSystem, match: str) -> list[str]:
    if names(match)[-2:-1] == [settings.CAPTURE_TRACES]:
        return []  # graph captures: part of the capture beside that folder
    if files.is_folder(match):
        return _in_folder(files, match)
    records = match.endswith(_RECORDS) and not is_special(match)
    return [match] if records or _is_capture(match) else []


def _in_folder(files: FileSystem, folder: str) -> list[str]:
    """Return the captures of a folder: parts of a dataset, a trial's baseline, or all inside it."""
    if captures := parts(files, folder):
        return captures
    if not is_url(folder) and (baselines := trial_folder.baselines(Path(folder))):
        return [*map(str, baselines)]
    captures = [p for p in files.listing(folder) if _is_capture(p) and not files.is_folder(p)]
    exported = {
        _stem(location) for location in captures if not location.endswith(overwrite_guard.REPORTS)
    }
    return [
        location
        for location in captures
        if not location.endswith(overwrite_guard.REPORTS)
        or exported.isdisjoint((_stem(location), _WINDOW.sub("", _stem(location))))
    ]


def parts(files: FileSystem, folder: str) -> list[str]:
    """Return the files of a dataset with a folder per rank, or of one such folder."""
    ranks = [folder]
    if not names(folder)[-1].startswith(PARTITION):
        inside = files.listing(folder)
        ranks = [p for p in inside if names(p)[-1].startswith(PARTITION) and files.is_folder(p)]
    return [
        part
        for rank in ranks
        for part in files.listing(rank)
        if part.endswith(".parquet")
        and not names(part)[-1].startswith((".", "_"))
        and not is_special(part)
    ]


def _is_capture(location: str) -> bool:
    """Whether it is a capture by its name or, for a local file, by its content."""
    if names(location)[-1].startswith(".") or is_special(location):
        return False
    if location.endswith(_SUFFIXES):
        return True
    perhaps = location.endswith(_PERHAPS)
    try:
        return perhaps if is_url(location) else readers.is_capture(Path(location))
    except CaptureError:
        return perhaps and Path(location).is_file()


def _stem(location: str) -> str:
    """Return the name shared by an nsys report and its export."""
    return location.rsplit(".", 1)[0]
