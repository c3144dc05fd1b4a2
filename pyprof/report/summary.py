"""`pyprof summary FILE`: where the time goes, whether the GPU is busy, what could be won."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyprof import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.report.overview import Overview
    from pyprof.report.source import Source

_TOP = 15
_BY = ("op", "layer", "line")


@click.command("summary", cls=cli.Command)
@click.argument("file", default="-")
@click.option("--by", type=click.Choice(_BY), default=_BY[0], show_default=True,
              help="What to list GPU time by; layer: the tree of modules.")  # fmt: skip
@click.option("--top", type=click.IntRange(1), default=_TOP, show_default=True, metavar="N",
              help="Ops or lines to list.")  # fmt: skip
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Levels of the tree to show.")
@click.option("--steps", metavar="RANGE",
              help="Look at these steps only, the first being 0: `3:`, `3:7`, `3`.")  # fmt: skip
@click.option("--gpu", metavar="NAME", help="Take the peaks of this device.")
@click.option("-o", "--output", "target", default=cli.STDOUT, metavar="FILE",
              help="Where to write.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but errors.")
def command(
    file: str, by: str, top: int, depth: int | None, steps: str | None, gpu: str | None,
    target: str, *, quiet: bool,
) -> None:  # fmt: skip
    """Say where the GPU time of FILE goes, how busy the GPU is, and what could be won.

    FILE is a capture, or what `pyprof parse` wrote from one (which lacks waits for the GPU and
    the ranges of iterations).

    \b
    Examples:
      pyprof summary net.sqlite
      pyprof summary --steps 3: net.sqlite
      pyprof summary --by layer --depth 3 net.sqlite
    """
    from pyprof.prof.table import Override  # noqa: PLC0415 - they load Arrow
    from pyprof.report import source, text  # noqa: PLC0415 - as above
    from pyprof.report.overview import overview  # noqa: PLC0415 - as above

    with cli.stages(source.STAGES + 1, file, quiet=quiet) as begin:
        loaded = source.load(file, Override(gpu), begin)
        begin("adding up")
        found = overview(loaded, steps)
    if not quiet:
        cli.warn(loaded.table.source.warnings)
    lines = sections(loaded, found, by, top, depth)
    with cli.output(target) as out:
        out.write(text.finish(lines, coloured=text.colours(target)))


def sections(
    source: Source, found: Overview, by: str, top: int, depth: int | None
) -> Iterator[str]:
    """Give the sections of the summary, with an empty line between them."""
    from pyprof.report import summary_text as show  # noqa: PLC0415 - it loads Arrow
    from pyprof.report.tree import tree  # noqa: PLC0415 - as above

    yield from show.head(found)
    yield ""
    if found.timeline is not None:
        yield from show.times(found.timeline)
        yield ""
    yield from show.phases(found)
    yield ""
    if by == "layer":
        yield from show.layers(tree(source.table, found.rows), found.step_count, depth)
    elif by == "line":
        yield from show.lines(found, top)
    else:
        yield from show.ops(found, top)
    yield ""
    yield from show.advice(found.advice)
