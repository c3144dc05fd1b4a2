"""The entry point for input: from what a user names to costed rows.

Everything that works on captures uses it: `load` reads one, `map_reduce` summarises one or many. No
other code asks whether there are many.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pyprof import readers
from pyprof.inputs import trial_folder
from pyprof.inputs.find import fetch
from pyprof.inputs.ranks import RankedCapture, ranked_captures, with_ranks
from pyprof.parse import parse_file, parse_with_host, record_file
from pyprof.process import overwrite_guard
from pyprof.prof.table import Override, Table
from pyprof.readers import settings
from pyprof.records import parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pyprof.inputs.executor import Executor
    from pyprof.schema import Capture

T = TypeVar("T")
K = TypeVar("K", bound="Hashable")

Item: TypeAlias = "RankedCapture | str"
"""A capture of a set; or a single file of any rank, or `-` for dict lines on stdin."""

STAGES = 3
"""Number of stages that `map_reduce` and `load` report."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read once: the table of its rows and, if recorded, the host's side."""

    table: Table
    capture: Capture | None
    """The host's side; None for dict lines and Parquet, which have no API calls or user ranges."""
    origin: str | None = None
    """What was read, as named: other files of the same run may lie beside it."""


def items(paths: Sequence[str], executor: Executor) -> Sequence[Item]:
    """Return the captures that a user names: a file as it is, a trial's baseline, else a set.

    Raises CaptureError if a set is empty, or has a rank twice.
    """
    if len(paths) == 1 and (paths[0] == record_file.STDIN or Path(paths[0]).is_file()):
        return [paths[0]]
    baselines = trial_folder.baselines(Path(paths[0])) if len(paths) == 1 else []
    if len(baselines) == 1:
        overwrite_guard.current().reads([str(baselines[0])])
        return [str(baselines[0])]
    return ranked_captures(paths, executor)


def load(
    item: Item,
    override: Override | None = None,
    begin: Callable[[str], object] = str,
    *,
    host: bool = True,
) -> Source:
    """Read a capture, dict lines or Parquet (`-`: dict lines on stdin), and cost its ops.

    Calls `begin` with the name of each stage. Without `host` only rows are kept, which takes less
    memory. Rows of a set's capture have their rank. Raises PyprofError if the file cannot be used,
    as `pyprof.load` does, or if `override` names an unknown device.
    """
    source = _read_item(item, override, begin, host=host, raw=True)
    begin("costing")
    _ = source.table.costs  # kept by the table
    return source


def _read_item(
    item: Item,
    override: Override | None,
    begin: Callable[[str], object] = str,
    *,
    host: bool,
    raw: bool = False,
) -> Source:
    """Read as `load` does; costs are computed when first used.

    Without `raw`, texts are dropped that costs, columns and frames do not need.
    """
    member = item if isinstance(item, RankedCapture) else None
    with fetch(member.url) if member else nullcontext(str(item)) as file:
        begin("reading")
        path, capture = Path(file), None
        if record_file.is_records(str(file)) or not readers.is_capture(path):
            records = record_file.load(str(file), raw=raw)
        elif host:
            records, capture = parse_with_host(path, begin, raw=raw)
        else:
            records = parse_file(path, raw=raw)
    if not raw and "seqTemplate" in records.columns:  # which replaces the raw texts
        kept = {name: each for name, each in records.columns.items() if name not in parquet.RAW}
        records = replace(records, columns=kept)
    if settings.counters():
        from pyprof.inputs.counters import with_counters  # noqa: PLC0415 - nearly no run needs it

        records = with_counters(records)
    table = Table(with_ranks(records, member) if member else records, override or Override())
    table.check_override()
    return Source(table, capture, member.url if member else str(item))


def map_reduce(
    paths: Sequence[str],
    summarise: Callable[[Source], T],
    merge: Callable[[T, T], T],
    executor: Executor,
    override: Override | None = None,
    begin: Callable[[str], object] = str,
    *,
    host: bool = True,
) -> T:
    """Summarise what `paths` name: one capture here, several where the executor works.

    Summaries of several are merged. Both are plain functions; summaries should be small, since they
    are sent. Raises as `items`, `load` and `summarise` do.
    """
    chosen = items(paths, executor)
    if len(chosen) == 1:
        source = _read_item(chosen[0], override, begin, host=host)
        begin("adding up")
        return summarise(source)
    work = partial(_summary, summarise=summarise, override=override, host=host)
    return executor.reduce(merge, executor.map(work, chosen, "reading captures"))


def _summary(
    item: Item, summarise: Callable[[Source], T], override: Override | None, *, host: bool
) -> T:
    return summarise(_read_item(item, override, host=host))
