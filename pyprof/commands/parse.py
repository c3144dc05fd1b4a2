"""`pyprof parse CAPTURE`: tie every kernel to the op, layer, line and forward op that caused it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pyprof.cli.capture_options import GRAPHS_AND_COUNTERS, Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.process import output_file, progress
from pyprof.process.messages import say, warn
from pyprof.quantities import counted

_LINES = (".dict", ".jsonl")
_FORMATS = (*_LINES, ".parquet")
_LONG = 200_000  # rows from which a progress bar is worth its line


@click.command("parse", cls=Command, makes_folders=True)
@click.option(
    "--kernels-only", is_flag=True, help="Leave out memory copies, memsets and graph launches."
)
@click.option(
    "-o",
    "--output",
    "target",
    default=output_file.STDOUT,
    metavar="FILE",
    help="Output: FILE.dict, FILE.jsonl, FILE.parquet, or FOLDER/ (or a URL) for a Parquet "
    "dataset. Default: dict lines on stdout.",
)
@reads_captures("CAPTURE...", work="pyprof.inputs.dataset", extra=GRAPHS_AND_COUNTERS)
def command(captures: Captures, target: str, *, kernels_only: bool) -> None:
    """Tie every kernel of CAPTURE to the op, layer, source line and forward op that caused it.

    CAPTURE is an nsys export (.sqlite) or report (.nsys-rep), an nvprof database, a
    rocpd database of rocprofv3 (.db), or a torch.profiler trace (.json, .json.gz); the format is
    detected from the content. Writes one dict per line, in the order in which the GPU started the
    work.

    Several files, a folder, a 'glob' or a URL are the ranks of one run, and make a Parquet dataset
    with one part per rank. Finished ranks are skipped; captures that cannot be read are reported
    and left out.

    \b
    Examples:
      pyprof parse net.sqlite -o net.dict
      pyprof parse 'ranks/*.sqlite' -o ranks.parquet/ --workers 2
    """
    suffix = Path(target).suffix
    folder = (
        bool(target)
        and suffix not in _LINES
        and (target.endswith(("/", os.sep)) or "://" in target or Path(target).is_dir())
    )
    if target != output_file.STDOUT and not folder and suffix not in _FORMATS:
        raise click.BadParameter(
            f"{target}: the name must end in {', '.join(_FORMATS)}", param_hint="'-o'"
        )
    from pyprof.inputs.find import only  # noqa: PLC0415 - takes time to load

    one = None if folder else only(captures.paths)
    if one is not None:
        _write_file(one, target, kernels_only=kernels_only, quiet=captures.quiet)
    elif folder or suffix == ".parquet":
        _write_dataset(captures, target, kernels_only=kernels_only)
    else:
        raise click.BadParameter(
            "several captures make a Parquet dataset; name a folder, such as ranks.parquet/",
            param_hint="'-o'",
        )


def _write_file(capture: str, target: str, *, kernels_only: bool, quiet: bool) -> None:
    from pyprof.inputs.find import fetch  # noqa: PLC0415 - as above
    from pyprof.parse import parse_file  # noqa: PLC0415 - loads Arrow
    from pyprof.readers import settings  # noqa: PLC0415 - as above

    with fetch(capture) as path:
        records = parse_file(path, kernels_only=kernels_only)
    if settings.counters():
        from pyprof.inputs.counters import with_counters  # noqa: PLC0415 - nearly no run needs it

        records = with_counters(records)
    if not quiet:
        warn(records.warnings)
    with output_file.open_output(target) as file:
        if Path(target).suffix == ".parquet":
            from pyprof.records import parquet  # noqa: PLC0415 - Arrow's part for files takes 12 ms

            parquet.write(records, file)
        else:
            from pyprof.records import dict_lines  # noqa: PLC0415 - loads Arrow

            with progress.progress_bar(
                records.rows, "writing", _LONG if not quiet else records.rows + 1
            ) as advance:
                dict_lines.write(records, file, advance)


def _write_dataset(captures: Captures, folder: str, *, kernels_only: bool) -> None:
    from pyprof.inputs import dataset  # noqa: PLC0415 - loads Arrow

    paths, executor = captures.paths, captures.executor
    done = dataset.write_all(paths, folder, executor, kernels_only=kernels_only)
    if not captures.quiet:
        warn(done.warnings)
        ranks = len(done.ranks)
        there = ranks - done.written
        skipped = f"; {there:,} of them already finished" if there else ""
        say(f"{counted(ranks, 'rank')}, {counted(done.rows, 'row')} in {folder}{skipped}")
