"""`pyprof lines FILE`: the user's source with GPU time, calls and share beside each line."""

from __future__ import annotations

from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyprof.cli.capture_options import Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.options import (
    json_option,
    output_option,
    override,
    read_conditions,
    source_option,
    steps_option,
    top_option,
    where_option,
)
from pyprof.process import output_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.prof.table import Override
    from pyprof.prof.where import Condition


@click.command("lines", cls=Command, hidden=True)
@source_option("Folder of the source; default on stdout: the current folder.")
@top_option(15, "Number of slowest lines to list; JSON has all.")
@click.option("-v", "--verbose", "full", is_flag=True,
              help="List all lines of all files, those that only call others, too.")  # fmt: skip
@steps_option
@where_option
@json_option
@output_option(".json selects JSON")
@reads_captures("[FILE]...")
def command(
    captures: Captures, folder: Path | None, steps: str | None, target: str,
    top: int, conditions: Sequence[str],
    *, as_json: bool, full: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:  # fmt: skip
    """Show your slowest source lines, and your source with GPU time beside each line.

    It is the view `pyprof summary --by line --source DIR`.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    Lines are ranked by `Own ms`, the time of what they launched themselves, forward and backward;
    `GPU ms` includes what other lines of yours launched that they call. Lines that only call others
    are left out (-v). CUDA_LAUNCH_BLOCKING=1 is not needed: these
    are times on the GPU. Potential gains at these lines are listed last. With -o or --json, source
    is included only if --source names its folder.

    \b
    Examples:
      pyprof lines net.sqlite
      pyprof lines --source ~/project net.dict
      pyprof lines --where tc=0 net.sqlite
    """
    as_json |= output_file.optional_format(target, "json") == "json"
    if folder is None and target == output_file.STDOUT and not as_json:
        folder = Path()
    show_lines(
        captures, target, folder, steps, top, read_conditions(conditions), override(how),
        as_json=as_json, full=full,
    )  # fmt: skip


def show_lines(
    captures: Captures, target: str, folder: Path | None, steps: str | None, top: int,
    asked_rows: Sequence[Condition], asked_peaks: Override,
    *, as_json: bool, full: bool,
) -> None:  # fmt: skip
    """Write the slowest lines, and the source of `folder` with GPU time beside each line."""
    from pyprof import answers  # noqa: PLC0415 - they load Arrow
    from pyprof.analysis.summary import source_lines  # noqa: PLC0415 - as above
    from pyprof.answers.lines_answer import with_source  # noqa: PLC0415 - as above
    from pyprof.inputs import source  # noqa: PLC0415 - as above
    from pyprof.inputs.user_source import Sources  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above
    from pyprof.render.text import first_screen, formatting, lines_text, summary_text  # noqa: PLC0415 - as above

    with captures.stages(source.STAGES) as begin:
        summarise = partial(source_lines.summarise_lines, chosen=steps, asked=asked_rows)
        sums = captures.map_reduce(summarise, merge_sums, asked_peaks, begin)
    answer = source_lines.lines_answer(sums)
    captures.warn(answer.warnings)
    if as_json:
        given = answer if folder is None else with_source(answer, Sources(folder).line)
        answers.write(target, given, answer.warnings)
        return
    sources = None if folder is None else Sources(folder)
    ranking = chain(
        summary_text.chosen_rows(answer.chosen, answer.processor),
        lines_text.slowest_lines(answer, sources, top),
    )
    files = lines_text.annotated_source(answer, sources, full=full)
    sections = [ranking, *files, first_screen.listed_gains(answer.advice, full=full)]
    formatting.write(target, formatting.separated(sections))
