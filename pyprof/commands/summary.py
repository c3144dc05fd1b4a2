"""`pyprof summary FILE`: where the time goes, whether the GPU is busy, potential gains."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from pyprof.cli.capture_options import Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.option_types import Choice
from pyprof.cli.options import (
    gpu_option,
    json_option,
    output_option,
    override,
    read_conditions,
    source_option,
    steps_option,
    top_option,
    where_option,
)
from pyprof.commands.lines import show_lines
from pyprof.process import output_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyprof.answers.summary_answer import MemoryPeak

_BY = ("op", "layer", "line", "host")


class _By(Choice):
    """One of `_BY`; a number of levels may follow `layer`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's
        """Return the word, or `layer:N`; a usage error for others."""
        if re.fullmatch(r"layer:[1-9]\d*", str(value)):
            return str(value)
        return super().convert(value, param, ctx)


@click.command("summary", cls=Command)
@click.option("--by", type=_By(_BY), default=_BY[0], show_default=True, metavar="KEY",
              help="GPU time by op, line or layer, a tree, layer:N of N levels; or host time by "
              "op: host.")  # fmt: skip
@top_option(15, "Number of ops or lines to list.")
@source_option("With --by line: also show your source in this folder, time beside each line.")
@steps_option
@where_option
@gpu_option
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also show all gains with evidence, parts of the step, lines, host time; with --source, "
    "lines that only call others.",
)
@json_option
@output_option(".json selects JSON")
@reads_captures("[FILE]...")
def command(
    captures: Captures, by: str, top: int, steps: str | None, target: str,
    conditions: Sequence[str], folder: Path | None,
    *, verbose: bool, as_json: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:  # fmt: skip
    """Show where the GPU time of FILE goes, how busy the GPU is, and potential gains.

    FILE is a capture, or what `pyprof parse` wrote from one (which lacks the host's waits for the
    GPU and its time in ops). Several files, a folder or a 'glob' are the ranks of one run.

    \b
    Examples:
      pyprof summary net.sqlite
      pyprof summary --steps 3: net.sqlite
      pyprof summary --by layer:3 net.sqlite
      pyprof summary --by line --source . net.sqlite
      pyprof summary --json net.sqlite
      pyprof summary --where dir=bprop net.sqlite
      pyprof summary ranks/
    """
    as_json |= output_file.optional_format(target, "json") == "json"
    asked_rows = read_conditions(conditions)
    by, _, levels = by.partition(":")
    depth = int(levels) if levels else None
    if folder is not None:
        if by != "line":
            raise click.UsageError("--source goes with --by line")
        show_lines(
            captures, target, folder, steps, top, asked_rows, override(how),
            as_json=as_json, full=verbose,
        )  # fmt: skip
        return
    from pyprof import answers  # noqa: PLC0415 - it loads Arrow
    from pyprof.analysis.summary import composition, overview  # noqa: PLC0415 - as above
    from pyprof.answers.summary_answer import first_rows  # noqa: PLC0415 - as above
    from pyprof.inputs import source  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above
    from pyprof.render.text import first_screen, formatting, summary_text  # noqa: PLC0415 - as above

    with captures.stages(source.STAGES) as begin:
        summarise = partial(overview.summarise, chosen=steps, asked=asked_rows)
        sums = captures.map_reduce(summarise, merge_sums, override(how), begin)
    captures.warn(sums.warnings)
    answer = composition.summary(sums, memory_peak(captures.paths))
    if as_json:
        answers.write(target, first_rows(answer, top, depth), answer.warnings)
        return
    shown = first_screen.first_screen(answer, by, top, depth, full=verbose)
    formatting.write(target, chain(shown, summary_text.details(answer, by) if verbose else ()))


def memory_peak(paths: Sequence[str]) -> MemoryPeak | None:
    """Describe the highest peak of the memory recorded with the captures, if any was."""
    from pyprof.analysis.memory.held_memory import highest_peak  # noqa: PLC0415 - as above
    from pyprof.inputs.memory_recordings import read_with_captures  # noqa: PLC0415 - as above

    return highest_peak(read_with_captures(paths))
