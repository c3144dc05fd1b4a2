"""What a report is made from: the table of all rows and, where the file holds it, the capture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyprof import readers, schema
from pyprof.errors import CaptureError
from pyprof.freed import give_back
from pyprof.parse import parse, parse_file, recordfile
from pyprof.parse.joined import join, pids, process_numbers
from pyprof.parse.members import items, ranked
from pyprof.prof.table import Override, Table
from pyprof.sets.engine import Here
from pyprof.sets.find import fetch
from pyprof.sets.members import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.parse.members import Item
    from pyprof.schema import Capture

STAGES = 3
"""How often `load` says what it does."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read once, or several as one."""

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
    loaded = _read(file, override or Override(), begin)
    loaded.table.check_override()
    begin("costing")
    _ = loaded.table.costs  # kept by the table
    give_back()
    return loaded


def _read(file: str, chosen: Override, begin: Callable[[str], object]) -> Source:
    begin("reading")
    path = Path(file)
    if file == recordfile.STDIN or not readers.is_capture(path):
        return Source(Table(recordfile.load(file, raw=False), chosen), None)
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
        found = load(str(path), override)
    records = ranked(found.table.source, item)
    return Source(Table(records, found.table.override), found.capture)


def load_all(
    sources: Sequence[str],
    override: Override | None = None,
    begin: Callable[[str], object] = str,
) -> Source:
    """Read a file, or all captures of a set, as one source; one that cannot be read is told.

    Raises PyprofError where none can.
    """
    engine = Here()
    found = items(sources, engine)
    if len(found) == 1:
        return of(found[0], override, begin)
    parts = engine.map(partial(of, override=override), found, "reading captures")
    return together([*engine.gather(parts)])


def alone(sources: Sequence[str]) -> Sequence[str]:
    """Give a file that is alone, nothing for a set: that has a progress bar of its own."""
    return sources if len(sources) == 1 else ()


def together(sources: Sequence[Source]) -> Source:
    """Make several files one source, their rows under each other.

    Each keeps its own clock: what is compared in time belongs to one process. Where one of them
    holds no API calls, none count.
    """
    if len(sources) == 1:
        return sources[0]
    parts = [source.table.source for source in sources]
    numbers = process_numbers([_processes(source) for source in sources])
    captures = [source.capture for source in sources if source.capture is not None]
    whole = len(captures) == len(sources)
    return Source(
        Table(join(parts, numbers), sources[0].table.override),
        _joined(captures, numbers) if whole else None,
    )


def _processes(source: Source) -> list[int]:
    found = {*pids(source.table.source)}
    if source.capture is not None:
        found.update(source.capture.threads.column("pid").drop_null().to_pylist())
    return sorted(found)


def _joined(captures: Sequence[Capture], numbers: Sequence[Mapping[int, int]]) -> Capture:
    """Put captures under each other."""
    threads, ranges, calls = [], [], []
    first = 0
    for capture, number in zip(captures, numbers, strict=True):
        pid = [number.get(pid, pid) for pid in capture.threads.column("pid").to_pylist()]
        threads.append(_with(capture.threads, "pid", pa.array(pid, pa.int64())))
        ranges.append(_after(_after(capture.ranges, "thread", first), "forward_thread", first))
        calls.append(_after(capture.calls, "thread", first))
        first += capture.threads.num_rows
    return schema.Capture(
        captures[0].tool,
        captures[0].version,
        activities=schema.ACTIVITIES.empty_table(),
        calls=pa.concat_tables(calls).unify_dictionaries(),
        ranges=pa.concat_tables(ranges).unify_dictionaries(),
        threads=pa.concat_tables(threads),
        devices=pa.concat_tables([capture.devices for capture in captures]),
    )


def _after(table: pa.Table, name: str, first: int) -> pa.Table:
    """Count the threads in a column on from `first`."""
    moved = pc.add(table.column(name), pa.scalar(first, pa.int32()))
    return _with(table, name, moved)


def _with(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)
