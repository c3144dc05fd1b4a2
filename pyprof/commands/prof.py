"""`pyprof prof FILE`: what every kernel cost and achieved."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pyprof import cli, safe
from pyprof.options import Captures, override, peak_options, reads_captures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KEYS = ("op", "dir", "kernel", "layer", "line", "mod", "device", "stream", "window", "rank",
         "step", "phase", "params", "family")  # fmt: skip


class _ProfCommand(cli.Command):
    """Lists the columns in its help, from where they are registered."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from pyprof.prof.names import column_help  # noqa: PLC0415 - only for help

        with formatter.section("Columns"):
            formatter.write_dl(column_help())
        super().format_epilog(ctx, formatter)


@click.command("prof", cls=_ProfCommand)
@click.option(
    "-c", "--columns", "names", metavar="COLS", help="Columns to show, separated by commas."
)
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV with every field quoted.")
@cli.raw_option
@click.option(
    "-w",
    "--width",
    type=click.IntRange(1),
    metavar="N",
    help="Align columns in lines of N characters.",
)
@click.option(
    "--by",
    type=cli.Choice(_KEYS),
    help="Group rows and show calls, total, mean, min, max, share; `params` groups by op and shape,"
    " and adds the spread of TFLOP/s.",
)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="EXPR",
    help="Only rows that match: tc=0, op~attention, 'eff<20', 'sil>1e6'. Repeatable, or join"
    " conditions with `and`: rows must match all.",
)
@click.option(
    "--sort", metavar="COL", help="Sort by a column, largest first; COL- for smallest first."
)
@click.option("--top", type=click.IntRange(1), metavar="N", help="Show the first N rows.")
@click.option("--strict", "least", type=cli.Number("95", 100, zero=True),
              metavar="PERCENT",
              help="Fail if the cost of less than PERCENT of GPU time is known.")  # fmt: skip
@click.option("--summary", type=cli.Choice(["nvprof"]),
              help="Show nvprof's two tables: GPU activities and API calls.")  # fmt: skip
@click.option("--explain", type=click.IntRange(1), metavar="ROW",
              help="Explain how row ROW (its idx) was costed, stage by stage.")  # fmt: skip
@peak_options
@click.option(
    "-o",
    "--output",
    "target",
    default=cli.STDOUT,
    metavar="FILE",
    help="Output file; default: stdout.",
)
@reads_captures("[FILE]...", strict=False)
def command(
    captures: Captures, target: str, least: float | None,
    **how: Any,  # noqa: ANN401 - options
) -> None:  # fmt: skip
    """Report FLOPs, bytes, Tensor Core use and time of every kernel in FILE.

    FILE is what `pyprof parse` wrote (dict lines or Parquet), a capture itself, or `-` for dict
    lines on stdin. Several files, a folder or a 'glob' are the ranks of one run; their rows are
    listed rank by rank. Fields are separated by blanks, unless --csv or -w is given.

    \b
    Examples:
      pyprof prof -w 150 net.dict
      pyprof prof --csv -c idx,dir,kernel,sil,tc,flops,bytes net.dict
      pyprof prof --by op --top 10 -w 120 net.sqlite
      pyprof prof --by op -w 120 ranks/
      pyprof prof --explain 12 net.dict
      pyprof prof --by params --where tc=0 -w 160 net.sqlite
    """
    how["as_csv"] |= cli.claims(target, "csv") == "csv"
    if how["as_csv"] and how["width"]:
        raise click.UsageError("--csv and -w exclude each other")
    cli.check_raw(how["raw"], "csv" if how["as_csv"] else "")
    if how["by"] and how["names"]:
        raise click.UsageError("--by and -c exclude each other: --by has columns of its own")
    from pyprof.prof import where  # noqa: PLC0415 - it loads Arrow
    from pyprof.report import memory_columns, nvprof_tables  # noqa: PLC0415 - they load Arrow
    from pyprof.report import rows as report  # noqa: PLC0415 - they load Arrow

    try:
        asked_rows = where.conditions(how["conditions"])
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--where'") from None
    if how["summary"]:
        if len(captures.paths) > 1:
            raise click.UsageError("--summary nvprof takes one file")
        if any(how[option] for option in ("names", "width", "by", "sort", "top", "conditions")):
            raise click.UsageError(
                "--summary nvprof does not take -c, -w, --by, --where, --sort or --top"
            )
        tables = nvprof_tables.rows(captures.paths[0], quiet=captures.quiet)
        with cli.output(target) as out:
            nvprof_tables.write(tables, out, as_csv=how["as_csv"], raw=how["raw"])
        return
    if how["explain"] is not None:
        _explain(captures.paths, target, how)
        return
    asked = report.Asked(
        report.columns(how["names"]), how["by"], how["sort"], how["top"], asked_rows
    )
    summarise, merge = (
        partial(work, asked=asked) for work in (report.summarise_rows, report.merge_answers)
    )
    answer = captures.map_reduce(summarise, merge, override(how), host=asked.of_steps)
    columns, rows = report.shown(answer, asked)
    columns, rows = memory_columns.with_memory(columns, rows, asked.by, captures.paths)
    if how["as_csv"] and not how["raw"]:
        rows = map(safe.fields, rows)
    captures.warn(answer.warnings)
    write = report.render(
        as_csv=how["as_csv"], width=how["width"],
        say=lambda text: captures.warn([text]),
    )  # fmt: skip
    with cli.output(target) as out:
        write(columns, rows, out)
    if not captures.quiet:
        cli.say(answer.coverage.text)
    report.demand(answer.coverage, least)


def _explain(sources: Sequence[str], target: str, how: Mapping[str, Any]) -> None:
    """Write how one row of one file was costed. Raises as `load` does."""
    if len(sources) > 1:
        raise click.UsageError("--explain takes one file")
    if any(
        how[option] for option in ("names", "as_csv", "width", "by", "sort", "top", "conditions")
    ):
        raise click.UsageError(
            "--explain does not take -c, --csv, -w, --by, --where, --sort or --top"
        )
    from pyprof.inputs.source import load  # noqa: PLC0415 - they load Arrow
    from pyprof.report.explain import explain  # noqa: PLC0415 - as above
    from pyprof.report.render import text  # noqa: PLC0415 - as above

    lines = explain(load(sources[0], override(how)).table, how["explain"])
    with cli.output(target) as out:
        out.write(text.finish(lines, coloured=text.colours(target)))
