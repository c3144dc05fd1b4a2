"""Sets of captures in the files of other viewers: sums are added up, rows written rank by rank."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from pyprof import cli
from pyprof.errors import PyprofError
from pyprof.freed import give_back
from pyprof.parse.members import items
from pyprof.prof.running import counts
from pyprof.report import exported_rows, source
from pyprof.report.exporters import Listing, Part, Summing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.parse.members import Item
    from pyprof.prof.table import Override
    from pyprof.report.exporters import Format, Tabular
    from pyprof.report.source import Source
    from pyprof.sets.engine import Engine
    from pyprof.sets.members import Member


class _Summed(NamedTuple):
    sums: Any
    warnings: tuple[str, ...]


class _Written(NamedTuple):
    part: Part
    warnings: tuple[str, ...]


def stages(form: Format) -> int:
    """Count how often `write` says of a single file what it does."""
    return source.STAGES + (2 if isinstance(form.load(), Summing) else 1)


def write(
    sources: Sequence[str],
    form: Format,
    target: str,
    file: BinaryIO,
    override: Override,
    engine: Engine,
    begin: Callable[[str], object] = str,
    **options: Any,  # noqa: ANN401 - by name
) -> tuple[str, ...]:
    """Write one file, or all captures of a set; `file` is opened for `target`. Give warnings.

    The options are those that the format takes.

    Of rows each rank's are written to a file beside the target first. Raises as `source.load` does.
    """
    exporter = form.load()
    if isinstance(exporter, Summing):
        work, merge = partial(_sums, exporter.sums), partial(_merged, exporter.merge)
        found: _Summed = source.of_all(sources, work, merge, engine, override, begin)
        begin("writing")
        exporter.write(found.sums, file, **options)
        return found.warnings
    chosen = items(sources, engine)
    if len(chosen) > 1:
        return _ranks(chosen, exporter, Path(target), file, override, engine, options)
    alone = source.of(chosen[0], override, begin)
    begin("writing")
    if isinstance(exporter, Listing):
        exporter.write(alone, file)
    else:
        alone = replace(alone, capture=None)  # which no table holds, and is large beside the rows
        give_back()
        exporter.write(exported_rows.tables(alone.table), file, **options)
    return alone.table.source.warnings


def _sums(sums: Callable[[Source], Any], of: Source) -> _Summed:
    return _Summed(sums(of), of.table.source.warnings)


def _merged(merge: Callable[[Any, Any], Any], a: _Summed, b: _Summed) -> _Summed:
    return _Summed(merge(a.sums, b.sums), source.distinct(a.warnings, b.warnings))


def _ranks(
    chosen: Sequence[Item],
    exporter: Listing | Tabular,
    target: Path,
    file: BinaryIO,
    override: Override,
    engine: Engine,
    options: Mapping[str, Any],
) -> tuple[str, ...]:
    folder = target.absolute().parent  # which workers on other machines may see, as the target
    keep = exporter.write if isinstance(exporter, Listing) else _keep
    with tempfile.TemporaryDirectory(prefix=cli.draft(target), dir=folder) as scratch:
        work = partial(_part, keep=keep, folder=scratch, override=override)
        written = [*engine.gather(engine.map(work, chosen, "writing captures"))]
        parts = [each.part for each in written]
        if isinstance(exporter, Listing):
            exporter.join(parts, file)
        else:
            exporter.write(exported_rows.kept(parts), file, **options)
    return tuple(dict.fromkeys(text for each in written for text in each.warnings))


def _part(
    item: Member, keep: Callable[[Source, BinaryIO], None], folder: str, override: Override
) -> _Written:
    ranks = [str(rank) for _, rank in item.ranks]
    path = Path(folder, ranks[0])
    name = f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(ranks)}"
    found = source.of(item, override)
    try:
        with path.open("wb") as file:
            keep(found, file)
    except OSError as error:
        raise PyprofError(
            f"{path}: {error.strerror or error}; workers write beside the target: choose a place "
            "that they and you can write to"
        ) from None
    return _Written(Part(name, path, counts(found.table)), found.table.source.warnings)


def _keep(found: Source, file: BinaryIO) -> None:
    exported_rows.keep(found.table, file)
