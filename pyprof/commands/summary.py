"""`pyprof summary FILE`: where the time goes, whether the GPU is busy, potential gains."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from pyprof import cli, output_file
from pyprof.cli_types import Choice
from pyprof.options import (
    Captures,
    override,
    peak_options,
    read_conditions,
    reads_captures,
    where_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.analysis.memory.peaks import DeviceMemory

_TOP = 15
_BY = ("op", "layer", "line", "host")


@click.command("summary", cls=cli.Command)
@click.option("--by", type=Choice(_BY), default=_BY[0], show_default=True,
              help="GPU time by op, layer (a tree) or line; or host time by op.")  # fmt: skip
@click.option("--top", type=click.IntRange(1), default=_TOP, show_default=True, metavar="N",
              help="Number of ops or lines to list.")  # fmt: skip
@click.option(
    "--depth",
    type=click.IntRange(1),
    metavar="N",
    help="With --by layer: number of levels to show.",
)
@click.option("--steps", metavar="RANGE",
              help="Only these steps, counted from 0: `3:`, `3:7`, `3`.")  # fmt: skip
@where_option
@peak_options
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also show all gains with evidence, parts of the step, lines, host time.",
)
@cli.json_option
@click.option("-o", "--output", "target", default=output_file.STDOUT, metavar="FILE",
              help="Output file; .json selects JSON. Default: stdout.")  # fmt: skip
@reads_captures("[FILE]...")
def command(
    captures: Captures, by: str, top: int, depth: int | None, steps: str | None, target: str,
    conditions: Sequence[str],
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
      pyprof summary --by layer --depth 3 net.sqlite
      pyprof summary --json net.sqlite
      pyprof summary --where dir=bprop net.sqlite
      pyprof summary ranks/
    """
    as_json |= output_file.optional_format(target, "json") == "json"
    asked_rows = read_conditions(conditions)
    from pyprof import answers  # noqa: PLC0415 - it loads Arrow
    from pyprof.analysis.summary import overview  # noqa: PLC0415 - as above
    from pyprof.answers.summary_answer import first_rows  # noqa: PLC0415 - as above
    from pyprof.inputs import source  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above
    from pyprof.render.text import (  # noqa: PLC0415 - as above
        first_screen,
        formatting,
        memory_brief,
        summary_text,
    )
    from pyprof.render.text.layout import terminal_table  # noqa: PLC0415 - as above

    with captures.stages(source.STAGES) as begin:
        summarise = partial(overview.summarise, chosen=steps, asked=asked_rows)
        sums = captures.map_reduce(summarise, merge_sums, override(how), begin)
    captures.warn(sums.warnings)
    memory = memory_of(captures.paths)
    answer = overview.summary(sums, memory)
    if as_json:
        answers.write(target, first_rows(answer, top, depth), answer.warnings)
        return
    width = terminal_table.width()
    shown = chain(
        first_screen.first_screen(answer, by, top, depth, width, full=verbose),
        memory_brief.section(memory),
        first_screen.about(answer),
        summary_text.details(answer, by, width) if verbose else (),
    )
    with output_file.open_output(target) as out:
        out.write(formatting.finish(shown, coloured=formatting.colours(target)))


def memory_of(paths: Sequence[str]) -> Sequence[DeviceMemory]:
    """Analyse the memory recorded with the captures, if any; the highest peak first."""
    from pyprof.analysis.memory.peaks import highest_first  # noqa: PLC0415 - as above
    from pyprof.inputs.memory_recordings import beside  # noqa: PLC0415 - as above

    return highest_first(beside(paths))
