"""`pyprof lines FILE`: the user's source with GPU time, calls and share beside each line."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pyprof import cli
from pyprof.options import Captures, model_option, override, reads_captures


@click.command("lines", cls=cli.Command)
@cli.source_option("Where the source is; else, on stdout, below the current folder.")
@click.option("--steps", metavar="RANGE",
              help="Look at these steps only, the first being 0: `3:`, `3:7`, `3`.")  # fmt: skip
@model_option
@click.option("-o", "--output", "target", default=cli.STDOUT, metavar="FILE",
              help="Where to write.")  # fmt: skip
@reads_captures("[FILE]...")
def command(
    captures: Captures, folder: Path | None, steps: str | None, target: str, **how: str | None
) -> None:
    """Show the source lines that FILE has GPU time for, with that time beside each.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    `GPU ms` is what a line and all that it calls launched, forward and backward; `Own ms` leaves
    out what is called in files of yours. No CUDA_LAUNCH_BLOCKING=1 is needed: times are the GPU's.
    Last stands what could be won at these lines. A file that -o names holds source only where
    --source says which.

    \b
    Examples:
      pyprof lines net.sqlite
      pyprof lines --source ~/project net.dict
    """
    cli.claims(target)
    from pyprof.inputs import source  # noqa: PLC0415 - load Arrow
    from pyprof.report.analysis import source_lines  # noqa: PLC0415 - load Arrow
    from pyprof.report.render import source as source_text  # noqa: PLC0415 - load Arrow
    from pyprof.report.render import summary, text  # noqa: PLC0415 - load Arrow
    from pyprof.report.render.source import Sources  # noqa: PLC0415 - only now needed

    with captures.stages(source.STAGES) as begin:
        summarise, merge = (
            partial(source_lines.summarise_lines, chosen=steps),
            source_lines.merge_line_reports,
        )
        found = captures.map_reduce(summarise, merge, override(how), begin)
    captures.warn(found.warnings)
    if folder is None and target == cli.STDOUT:
        folder = Path()
    sources = None if folder is None else Sources(folder)
    shown = [*source_text.lines(found.found, sources)]
    if found.placed:
        shown += ["", *summary.advice(found.placed)]
    with cli.output(target) as out:
        out.write(text.finish(shown, coloured=text.colours(target)))
