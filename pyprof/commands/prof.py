"""`pyprof prof FILE`: what every kernel cost and achieved."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from pyprof import sanitize
from pyprof.cli.capture_options import Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.option_types import Choice, Number, WholeNumber
from pyprof.cli.options import (
    check_raw,
    gpu_option,
    json_option,
    output_option,
    override,
    raw_option,
    read_conditions,
    where_option,
)
from pyprof.errors import NOTE
from pyprof.process import output_file, stdio
from pyprof.process.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyprof.prof.columns.column import Column
    from pyprof.prof.where import Condition

GROUPS = ("op", "dir", "kernel", "layer", "line", "mod", "device", "stream", "window", "rank",
         "step", "phase", "params", "family", "via", "tc", "bound")  # fmt: skip


def _group_keys(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Return the columns to group by, each once, joined by commas; raises BadParameter."""
    if text is None:
        return None
    known = Choice(GROUPS)
    names = dict.fromkeys(known.convert(name.strip(), param, ctx) for name in text.split(","))
    if len(names) > 1 and "params" in names:
        raise click.BadParameter("params stands alone; it groups by op, direction and shape")
    return ",".join(names)


_SCREEN_ROWS = 30
"""Rows that a terminal shows unless --top or --full asks for more."""


class _ProfCommand(Command):
    """Lists the columns in its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from pyprof.prof.columns.standard import COLUMNS  # noqa: PLC0415 - only for help

        with formatter.section("Columns"):
            formatter.write_dl([(column.name, column.help) for column in COLUMNS.values()])
        super().format_epilog(ctx, formatter)


@click.command("prof", cls=_ProfCommand)
@click.option(
    "-c", "--columns", "names", metavar="COLS", help="Columns to show, separated by commas."
)
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV with every field quoted.")
@raw_option
@click.option(
    "-w",
    "--width",
    type=WholeNumber(1),
    metavar="N",
    help="Align columns in lines of N characters.",
)
@click.option("--full", is_flag=True,
              help="Align more columns, or those of -c, nothing shortened.")  # fmt: skip
@click.option(
    "--by",
    metavar="KEYS",
    callback=_group_keys,
    help=f"Group rows by one of these, or several (`op,line`): {', '.join(GROUPS)}. Show calls"
    " (kernels, copies and fills), total, mean, min, max, share, flops, bytes; -c chooses. `params`"
    " groups by op and shape, and has op calls and the spread of TFLOP/s. With `op`, -c also takes"
    " cpu_calls, cpu_self, cpu_total and cpu_mean: the host's time in its calls, from captures. By"
    " `op`, `line` or `layer`, captures with memory also have alloc, what was allocated in all,"
    " and peak_share, the share of the peak. `step` and `phase` add the wall time of steps, and"
    " tokens and tokens_per_s where a serving engine states them.",
)
@where_option
@click.option(
    "--sort", metavar="COL", help="Sort by a column, largest first; COL- for smallest first."
)
@click.option("--top", type=WholeNumber(1), metavar="N", help="Show the first N rows.")
@click.option("--strict", "least", type=Number("95", 100, zero=True),
              metavar="PERCENT",
              help="Fail if the cost of less than PERCENT of GPU time is known.")  # fmt: skip
@click.option("--summary", type=Choice(["nvprof"]),
              help="Show nvprof's two tables: GPU activities and API calls.")  # fmt: skip
@click.option("--explain", type=WholeNumber(1), metavar="ROW",
              help="Explain how row ROW (its idx) was costed, stage by stage.")  # fmt: skip
@gpu_option
@json_option
@output_option(".csv, .json select the format")
@reads_captures("[FILE]...", strict=False)
def command(
    captures: Captures, target: str, *, as_json: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:  # fmt: skip
    """Report FLOPs, bytes, Tensor Core use and time of every kernel in FILE.

    FILE is what `pyprof parse` wrote (dict lines or Parquet), a capture itself, or `-` for dict
    lines on stdin. Several files, a folder or a 'glob' are the ranks of one run; their rows are
    listed rank by rank. A terminal shows the 30 longest rows in a table of its own width: op, line,
    kernel, time and what limits it. Otherwise, or with -c, fields are separated by blanks, unless
    --csv or -w is given.

    \b
    Examples:
      pyprof prof net.dict
      pyprof prof -w 150 net.dict
      pyprof prof --csv -c idx,dir,kernel,sil,tc,flops,bytes net.dict
      pyprof prof --by op,line --top 10 -w 120 net.sqlite
      pyprof prof --by op -w 120 ranks/
      pyprof prof --by op -c op,total,cpu_calls,cpu_self,cpu_total -w 100 net.sqlite
      pyprof prof --by tc -w 100 net.sqlite
      pyprof prof --by line -c line,total,alloc,peak_share --sort alloc -w 100 net.sqlite
      pyprof prof --explain 12 net.dict
      pyprof prof --by params --where tc=0 -w 160 net.sqlite
      pyprof prof --json --where tc=0 --sort sil --top 5 net.sqlite
    """
    asked_form = "json" if as_json else "csv" * how["as_csv"]
    form = output_file.optional_format(target, "csv", "json", option=asked_form)
    how["as_csv"] |= form == "csv"
    as_json |= form == "json"
    asked_rows = _check(how, as_json=as_json)
    from pyprof import answers  # noqa: PLC0415 - they load Arrow
    from pyprof.analysis import rows as report  # noqa: PLC0415 - they load Arrow
    from pyprof.analysis.memory import memory_columns  # noqa: PLC0415 - as above
    from pyprof.answers.parts import known_cost  # noqa: PLC0415 - as above
    from pyprof.render.text.known_cost_text import sentence  # noqa: PLC0415 - as above

    if how["summary"]:
        _nvprof(captures, target, how, as_json=as_json)
        return
    if how["explain"] is not None:
        _explain(captures.paths, target, how, as_json=as_json)
        return
    on_screen = not as_json and _choose_format(target, how) == "terminal"
    shortened = on_screen and how["by"] is None and how["top"] is None
    if shortened:
        how = {**how, "sort": how["sort"] or "sil", "top": _SCREEN_ROWS}
    asked = report.Query(
        _names(target, how, as_json=as_json), how["by"], how["sort"], how["top"], asked_rows
    )
    report.check_conditions(asked)
    summarise, merge = (
        partial(work, asked=asked) for work in (report.summarise_rows, report.merge_answers)
    )
    answer = captures.map_reduce(summarise, merge, override(how), host=asked.of_host)
    answer = report.apply_global_conditions(answer, asked)
    device = memory_columns.highest_device(asked, captures.paths)
    if asked.names_memory and device is None:
        answer = replace(answer, warnings=(*answer.warnings, memory_columns.NOT_RECORDED))
    captures.warn(answer.warnings)
    if as_json:
        given = report.prof_answer(answer, asked, device)
        answers.write(target, given, answer.warnings)
    else:
        _write(report.shown(answer, asked, device), captures, target, how)
    if shortened and answer.matched > _SCREEN_ROWS:
        captures.warn(
            [f"{NOTE}top {_SCREEN_ROWS} of {answer.matched:,} rows; --top N or --full shows more"]
        )
    if not captures.quiet:
        none = bool(asked_rows) and not answer.matched
        sought = " and ".join(how["conditions"])
        say(f"no row matches {sought}" if none else sentence(known_cost(answer.coverage)))
    report.require_coverage(answer.coverage, how["least"])


def _check(how: Mapping[str, Any], *, as_json: bool) -> tuple[Condition, ...]:
    """Raise click's errors for options that exclude each other; parse the conditions."""
    if [how["as_csv"], bool(how["width"]), as_json].count(True) > 1:
        raise click.UsageError(
            "--csv, -w and --json exclude each other, as do -o FILE.csv and FILE.json"
        )
    if how["full"] and (how["as_csv"] or how["width"] or as_json):
        raise click.UsageError("--full does not take --csv, -w or --json")
    check_raw(how["raw"], "csv" if how["as_csv"] else "")
    return read_conditions(how["conditions"])


def _names(target: str, how: Mapping[str, Any], *, as_json: bool) -> tuple[str, ...]:
    from pyprof.analysis import rows as report  # noqa: PLC0415 - they load Arrow

    if as_json and not how["by"]:
        return report.columns_for_json(how["names"])
    from pyprof.render.text.layout import terminal_table  # noqa: PLC0415 - as above

    usual = {"terminal": [*terminal_table.SCREEN], "full": [*terminal_table.FULL]}
    return report.columns(how["names"], usual.get(_choose_format(target, how), ()), how["by"])


def _nvprof(captures: Captures, target: str, how: Mapping[str, Any], *, as_json: bool) -> None:
    if len(captures.paths) > 1:
        raise click.UsageError("--summary nvprof takes one file")
    refused = (
        "names", "width", "full", "by", "conditions", "sort", "top", "least", "explain", "gpu",
    )  # fmt: skip
    if any(how[option] for option in refused):
        raise click.UsageError(
            "--summary nvprof does not take -c, -w, --full, --by, --where, --sort, --top, --strict,"
            " --explain or --gpu"
        )
    from pyprof import answers  # noqa: PLC0415 - they load Arrow
    from pyprof.analysis.nvprof_tables import nvprof_tables  # noqa: PLC0415 - they load Arrow
    from pyprof.render.text import nvprof_text  # noqa: PLC0415 - as above

    answer = nvprof_tables(captures.paths[0], quiet=captures.quiet)
    if as_json:
        answers.write(target, answer)
        return
    with output_file.open_output(target) as out:
        nvprof_text.write(answer, out, as_csv=how["as_csv"], raw=how["raw"])


def _write(
    shown: tuple[Sequence[Column], Iterator[pa.Table]],
    captures: Captures,
    target: str,
    how: Mapping[str, Any],
) -> None:
    from pyprof.render.text import formatting as text  # noqa: PLC0415 - it loads Arrow
    from pyprof.render.text.layout import fixed_width, terminal_table  # noqa: PLC0415 - as above

    columns, rows = shown
    if how["as_csv"] and not how["raw"]:
        rows = map(sanitize.escape_formulas, rows)
    form, coloured = _choose_format(target, how), text.colours(target)

    def say(left_out: str) -> None:
        captures.warn([left_out])

    with output_file.open_output(target) as out:
        if form == "terminal":
            terminal_table.write(columns, rows, out, text.width(), say, coloured=coloured)
        elif form == "full":
            terminal_table.write_full(columns, rows, out, coloured=coloured)
        elif form == "csv":
            fixed_width.write_csv(columns, rows, out)
        elif form == "width":
            fixed_width.write_columns(columns, rows, out, how["width"], say)
        else:
            fixed_width.write_aligned(columns, rows, out)


def _choose_format(target: str, how: Mapping[str, Any]) -> str:
    """Choose the format: by option, else plain for files, pipes and rows with named columns."""
    if how["as_csv"]:
        return "csv"
    if how["full"]:
        return "full"
    if how["width"]:
        return "width"
    plain = (
        (how["names"] and not how["by"])
        or target != output_file.STDOUT
        or not stdio.terminal(sys.stdout)
    )
    return "plain" if plain else "terminal"


def _explain(sources: Sequence[str], target: str, how: Mapping[str, Any], *, as_json: bool) -> None:
    """Write how one row of one file was costed. Raises as `load` does."""
    if len(sources) > 1:
        raise click.UsageError("--explain takes one file")
    refused = ("names", "as_csv", "width", "full", "by", "sort", "top", "conditions", "least")
    if any(how[option] for option in refused):
        raise click.UsageError(
            "--explain does not take -c, --csv, -w, --full, --by, --where, --sort, --top or"
            " --strict"
        )
    from pyprof import answers  # noqa: PLC0415 - as above
    from pyprof.analysis.explain import explanation  # noqa: PLC0415 - as above
    from pyprof.inputs.source import load  # noqa: PLC0415 - they load Arrow
    from pyprof.render.text import formatting as text  # noqa: PLC0415 - as above

    table = load(sources[0], override(how)).table
    answer = explanation(table, how["explain"])
    if as_json:
        answers.write(target, answer)
        return
    lines = chain.from_iterable(
        (text.heading(section.title), *(f"  {line}" for line in section.lines))
        for section in answer.sections
    )
    text.write(target, lines)
