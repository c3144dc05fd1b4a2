"""`pyprof report FILE -o report.html`: everything in one page that you can send."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from pyprof import cli
from pyprof.options import Captures, override, peak_options, reads_captures


@click.command("report", cls=cli.Command)
@click.option("--steps", metavar="RANGE",
              help="Only these steps, counted from 0: `3:`, `3:7`, `3`.")  # fmt: skip
@peak_options
@click.option("-o", "--output", "target", default="report.html", show_default=True, metavar="FILE",
              help="Output file; - for stdout.")  # fmt: skip
@reads_captures("FILE...")
def command(
    captures: Captures,
    target: str,
    steps: str | None,
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
    from pyprof.report.render.page import content as page  # noqa: PLC0415 - as above

    with captures.stages(source.STAGES + 1) as begin:
        summarise = partial(page.summarise_page, chosen=steps)
        page_content = captures.map_reduce(summarise, page.merge_pages, override(how), begin)
        begin("drawing")
        content = page.html(page_content).encode()
    captures.warn(page_content.brief.warnings)
    with cli.output(target) as out:
        out.write(content)
    if not captures.quiet and target != cli.STDOUT:
        cli.say(f"{target}: {len(content) / 1e6:.1f} MB")
