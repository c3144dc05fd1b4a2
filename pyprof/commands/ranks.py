"""`pyprof ranks SET`: ranks side by side: who waits for whom, and which links are slow."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyprof import sanitize
from pyprof.cli.capture_options import GRAPHS_AND_COUNTERS, Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.option_types import Choice
from pyprof.cli.options import json_option, output_option, top_option
from pyprof.process import output_file
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.answers.ranks_answer import Ranks

_TABLES = ("ranks", "stragglers", "late", "together", "steps", "stalls", "groups", "parallelism",
           "layers", "unmatched")  # fmt: skip


class _Command(Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; a word after --csv that names no table belongs to SET."""
        behind = [*args, ""][1:]
        words = [
            f"{word}={_TABLES[0]}" if word == "--csv" and not _means_table(after) else word
            for word, after in zip(args, behind, strict=True)
        ]
        return super().parse_args(ctx, words)


def _means_table(word: str) -> bool:
    """Whether a word is a table's name, or a mistyped one and no file."""
    mistyped = word.isalpha() and not Path(word).exists() and suggestion(word, _TABLES)
    return word in _TABLES or bool(mistyped)


@click.command("ranks", cls=_Command)
@top_option(16, "Number of rows to list per table; CSV and JSON have all.")
@click.option("--csv", "table", type=Choice(_TABLES), is_flag=False, flag_value=_TABLES[0],
              metavar="[TABLE]",
              help=f"Write a table as CSV: {', '.join(_TABLES)}. Default: {_TABLES[0]}.",
              )  # fmt: skip
@json_option
@output_option(".csv, .json select the format")
@reads_captures("SET...", work="pyprof.analysis.ranks.rank_tables", extra=GRAPHS_AND_COUNTERS)
def command(
    captures: Captures, top: int, table: str | None, target: str, *, as_json: bool,
) -> None:  # fmt: skip
    """Compare the ranks of a distributed job.

    SET is their captures: several files, a folder, a 'glob' or a URL. Shows how busy each rank's
    GPU was and how long its steps take; which ranks arrive last at collectives and what that costs
    the others; how fast collectives transfer data, without waiting; which layers are uneven; and
    which rank's memory peaks highest, if it was recorded. Clocks of different hosts are aligned on
    the collectives.

    \b
    Examples:
      pyprof ranks 'net.rank*.sqlite'
      pyprof ranks ranks/ --workers 2
      pyprof ranks ranks/ -o ranks.csv
      pyprof ranks ranks/ --csv steps -o steps.csv
    """
    if table and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    asked = "csv" * bool(table) + "json" * as_json
    form = output_file.output_format(target, "csv", "json", option=asked)
    job = compare_ranks(captures)
    if form == "json":
        from pyprof import answers  # noqa: PLC0415 - only now needed

        answers.write(target, with_memory(job, captures.paths), job.warnings)
        return
    if form == "csv":
        from pyprof.answers.ranks_answer import as_csv  # noqa: PLC0415 - only now needed

        content = as_csv(job, table or _TABLES[0])
    else:
        from pyprof.render.text import formatting  # noqa: PLC0415 - as above
        from pyprof.render.text import memory_text as show  # noqa: PLC0415 - only now needed
        from pyprof.render.text import ranks_text as as_text  # noqa: PLC0415 - as above

        peaks = show.peaks(with_memory(job, captures.paths).memory, top)
        lines = formatting.separated([as_text.report_lines(job, top), peaks])
        content = formatting.finish(lines, coloured=formatting.colours(target))
    with output_file.open_output(target) as out:
        out.write(content)


def compare_ranks(captures: Captures) -> Ranks:
    """Compare the ranks of captures."""
    from pyprof.analysis.ranks import findings, rank_tables  # noqa: PLC0415 - they load Arrow
    from pyprof.inputs.ranks import ranked_captures  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above

    executor = captures.executor
    chosen = ranked_captures(captures.paths, executor)
    measured = executor.map(rank_tables.measure_ranks, chosen, "measuring ranks")
    read = {handle.item.url for handle in measured}
    left_out = [
        sanitize.redact_credentials(member.url) for member in chosen if member.url not in read
    ]
    job = executor.reduce_and_finish(
        merge_sums, measured, partial(findings.compare_ranks, left_out=left_out)
    )
    captures.warn(job.warnings)
    return job


def with_memory(job: Ranks, paths: Sequence[str]) -> Ranks:
    """Add the peaks of the memory recorded with the captures, if any."""
    from pyprof.analysis.memory.peaks import highest_first  # noqa: PLC0415 - it loads Arrow
    from pyprof.answers.memory_answer import rank_memory  # noqa: PLC0415 - as above
    from pyprof.inputs.memory_recordings import read_with_captures  # noqa: PLC0415 - as above

    return replace(job, memory=tuple(map(rank_memory, highest_first(read_with_captures(paths)))))
