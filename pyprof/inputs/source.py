"""What a report is made from: the table of all rows and, where the file holds it, the capture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyprof import readers, schema
from pyprof.allocator import give_back
from pyprof.errors import CaptureError
from pyprof.inputs.find import fetch
from pyprof.inputs.ranks import Member
from pyprof.inputs.records import items, ranked
from pyprof.parse import parse, parse_file, record_file
from pyprof.prof.table import Override, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pyprof.inputs.engine import Engine
    from pyprof.inputs.records import Item
    from pyprof.schema import Capture

T = TypeVar("T")
K = TypeVar("K", bound="Hashable")

STAGES = 3
"""How often `load` says what it does."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read once."""

    table: Table
    capture: Capture | None
    """The host's side; None for dict lines and Parquet, without API calls and the user's ranges."""


def load(
    file: str, override: Override | None = None, begin: Callable[[str], object] = str
) -> Source:
    """Read a capture, dict lines or Parquet (`-`: dict lines on stdin), and cost its ops.

    Tells `begin` which stage begins. Raises PyprofError where the file cannot be used, as
    `pyprof.load` does, or where `override` names a device of which nothing is known.
    """
    return _costed(_read(file, override or Override(), begin), begin)


def _costed(loaded: Source, begin: Callable[[str], object] = str) -> Source:
    loaded.table.check_override()
    begin("costing")
    _ = loaded.table.costs  # kept by the table
    give_back()
    return loaded


def _read(file: str, chosen: Override, begin: Callable[[str], object] = str) -> Source:
    begin("reading")
    path = Path(file)
    if file == record_file.STDIN or not readers.is_capture(path):
        return Source(Table(record_file.load(file, raw=False), chosen), None)
    capture = readers.read(path)
    if not capture.activities.num_rows:
        parse_file(path)  # says what to do
        raise CaptureError(f"{path}: no GPU work was captured")
    begin("parsing")
    records = parse(capture)
    give_back()
    return Source(Table(records, chosen), _host(capture))


def _host(capture: Capture) -> Capture:
    """Leave of a capture the host's side; the GPU's is in the records."""
    return replace(capture, activities=schema.ACTIVITIES.empty_table())


def of(
    item: Item, override: Override | None = None, begin: Callable[[str], object] = str
) -> Source:
    """Read a single file as `load` does, or a capture of a set, whose rows then know their rank."""
    if not isinstance(item, Member):
        return load(item, override, begin)
    with fetch(item.url) as path:
        found = _read(str(path), override or Override())
    records = ranked(found.table.source, item)
    return _costed(Source(Table(records, found.table.override), found.capture))


def of_all(
    sources: Sequence[str],
    work: Callable[[Source], T],
    merge: Callable[[T, T], T],
    engine: Engine,
    override: Override | None = None,
    begin: Callable[[str], object] = str,
) -> T:
    """Work on one file, or on each capture of a set, and make what is found of them one.

    Both are plain functions; what they give is to be small, for it is sent. Raises as `work` and
    `load` do.
    """
    found = items(sources, engine)
    if len(found) == 1:
        alone = of(found[0], override, begin)
        begin("adding up")
        return work(alone)
    parts = engine.map(partial(_worked, work=work, override=override), found, "reading captures")
    return engine.reduce(merge, parts)


def _worked(item: Item, work: Callable[[Source], T], override: Override | None) -> T:
    return work(of(item, override))


def distinct(a: Sequence[K], b: Sequence[K]) -> tuple[K, ...]:
    """Put what two captures tell under each other, each thing once."""
    return tuple(dict.fromkeys((*a, *b)))


def alone(sources: Sequence[str]) -> Sequence[str]:
    """Give a file that is alone, nothing for a set: that has a progress bar of its own."""
    return sources if len(sources) == 1 else ()
