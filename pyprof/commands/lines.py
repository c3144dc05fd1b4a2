"""`pyprof lines FILE`: the user's source with GPU time, calls and share beside each line."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pyprof import cli
from pyprof.options import Captures, model_option, override, reads_captures


@click.command("lines", cls=cli.Command)
@cli.source_option("Folder of the source; default on stdout: the current folder.")
@click.option("--steps", metavar="RANGE",
              help="Only these steps, counted from 0: `3:`, `3:7`, `3`.")  # fmt: skip
@model_option
@cli.json_option
@click.option("-o", "--output", "target", default=cli.STDOUT, metavar="FILE",
              help="Output file; .json selects JSON. Default: stdout.")  # fmt: skip
@reads_captures("[FILE]...")
def command(
    captures: Captures, folder: Path | None, steps: str | None, target: str,
    *, as_json: bool, **how: str | None,
) -> None:  # fmt: skip
    """Show your source lines with their GPU time beside each line.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    `GPU ms` covers everything that a line and the code it calls launched, forward and backward;
    `Own ms` leaves out calls into other lines of yours. CUDA_LAUNCH_BLOCKING=1 is not needed: these
    are times on the GPU. Potential gains at these lines are listed last. With -o or
    --json, source is included only if --source names its folder.

    \b
    Examples:
      pyprof lines net.sqlite
      pyprof lines --source ~/project net.dict
    """
    as_json |= cli.claims(target, "json") == "json"
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
        timed_lines = captures.map_reduce(summarise, merge, override(how), begin)
    captures.warn(timed_lines.warnings)
    if as_json:
        from pyprof.report import answers  # noqa: PLC0415 - load Arrow
        from pyprof.report.answers.lines import lines  # noqa: PLC0415 - load Arrow

        given = lines(timed_lines, None if folder is None else Sources(folder))
        answers.write(target, given, timed_lines.warnings)
        return
    if folder is None and target == cli.STDOUT:
        folder = Path()
    sources = None if folder is None else Sources(folder)
    shown = [*source_text.annotated_source(timed_lines.times, sources)]
    if timed_lines.placed:
        shown += ["", *summary.advice(timed_lines.placed)]
    with cli.output(target) as out:
        out.write(text.finish(shown, coloured=text.colours(target)))
