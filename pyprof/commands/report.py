"""`pyprof report FILE -o report.html`: everything in one page that you can send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pyprof import cli
from pyprof.options import engine_options, override, peak_options

if TYPE_CHECKING:
    from pyprof.inputs.engine import Engine


@click.command("report", cls=cli.Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--steps", metavar="RANGE",
              help="Only these steps, counted from 0: `3:`, `3:7`, `3`.")  # fmt: skip
@peak_options
@click.option("-o", "--output", "target", default="report.html", show_default=True, metavar="FILE",
              help="Output file; - for stdout.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Print only errors on stderr.")
@engine_options
def command(
    files: tuple[str, ...],
    target: str,
    steps: str | None,
    engine: Engine,
    *,
    quiet: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:
    """Write a report on FILE as one HTML page.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    The page has summary, advice, timeline, modules, roofline, ops and lines. It needs no network,
    and contains no host, user or folder names. It stays below 5 MB: it holds totals, and only the
    most expensive rows of long tables.

    \b
    Examples:
      pyprof report net.sqlite -o report.html
      pyprof report net.sqlite --steps 3: -o steady.html
      pyprof report ranks/ -o ranks.html --workers 2
    """
    cli.claims(target, "html", "htm", text=False)
    cli.need("pages", "Bokeh", "Jinja2")
    from pyprof.inputs import source  # noqa: PLC0415 - it loads Arrow
    from pyprof.report.render.page import content as whole  # noqa: PLC0415 - as above
    from pyprof.report.render.page.content import of_all  # noqa: PLC0415 - as above

    with cli.stages(source.STAGES + 2, *source.alone(files), quiet=quiet) as begin:
        found = of_all(files, steps, override(how), engine, begin)
        begin("drawing")
        content = whole.html(found).encode()
    if not quiet:
        cli.warn(found.brief.warnings)
    with cli.output(target) as out:
        out.write(content)
    if not quiet and target != cli.STDOUT:
        cli.say(f"{target}: {len(content) / 1e6:.1f} MB")
