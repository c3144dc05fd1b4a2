"""`pyprof lines FILE`: the user's source with GPU time, calls and share beside each line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyprof import cli, output_file
from pyprof.options import (
    Captures,
    model_option,
    override,
    read_conditions,
    reads_captures,
    where_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOP = 15


@click.command("lines", cls=cli.Command)
@cli.source_option("Folder of the source; default on stdout: the current folder.")
@click.option("--top", type=click.IntRange(1), default=_TOP, show_default=True, metavar="N",
              help="Number of slowest lines to list.")  # fmt: skip
@click.option("--full", is_flag=True,
              help="List all lines of all files, those that only call others, too.")  # fmt: skip
@click.option("--steps", metavar="RANGE",
              help="Only these steps, counted from 0: `3:`, `3:7`, `3`.")  # fmt: skip
@where_option
@model_option
@cli.json_option
@click.option("-o", "--output", "target", default=output_file.STDOUT, metavar="FILE",
              help="Output file; .json selects JSON. Default: stdout.")  # fmt: skip
@reads_captures("[FILE]...")
def command(
    captures: Captures, folder: Path | None, steps: str | None, target: str,
    top: int, conditions: Sequence[str],
    *, as_json: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:  # fmt: skip
    """Show your slowest source lines, and your source with GPU time beside each line.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    Lines are ranked by `Own ms`, the time of what they launched themselves, forward and backward;
    `GPU ms` includes what other lines of yours launched that they call. Lines that only call others
    are left out (--full). CUDA_LAUNCH_BLOCKING=1 is not needed: these
    are times on the GPU. Potential gains at these lines are listed last. With -o or --json, source
    is included only if --source names its folder.

    \b
    Examples:
      pyprof lines net.sqlite
      pyprof lines --source ~/project net.dict
      pyprof lines --where tc=0 net.sqlite
    """
    as_json |= output_file.optional_format(target, "json") == "json"
    asked_rows = read_conditions(conditions)
    from pyprof.analysis.summary import source_lines  # noqa: PLC0415 - load Arrow
    from pyprof.inputs import source  # noqa: PLC0415 - load Arrow
    from pyprof.render import source as source_text  # noqa: PLC0415 - load Arrow
    from pyprof.render.source import Sources  # noqa: PLC0415 - only now needed
    from pyprof.render.text import formatting, summary_text  # noqa: PLC0415 - load Arrow

    with captures.stages(source.STAGES) as begin:
        summarise, merge = (
            partial(source_lines.summarise_lines, chosen=steps, asked=asked_rows),
            source_lines.merge_line_reports,
        )
        timed_lines = captures.map_reduce(summarise, merge, override(how), begin)
    captures.warn(timed_lines.warnings)
    if as_json:
        from pyprof import answers  # noqa: PLC0415 - load Arrow
        from pyprof.answers.lines_answer import lines  # noqa: PLC0415 - load Arrow

        given = lines(timed_lines, None if folder is None else Sources(folder))
        answers.write(target, given, timed_lines.warnings)
        return
    if folder is None and target == output_file.STDOUT:
        folder = Path()
    sources = None if folder is None else Sources(folder)
    shown = [
        *summary_text.filtered(timed_lines.kept),
        *source_text.slowest_lines(timed_lines.times, sources, top),
    ]
    if listed := [*source_text.annotated_source(timed_lines.times, sources, full=how["full"])]:
        shown += ["", *listed[:-1]]
    if timed_lines.placed:
        shown += ["", *summary_text.advice(timed_lines.placed)]
    with output_file.open_output(target) as out:
        out.write(formatting.finish(shown, coloured=formatting.colours(target)))
