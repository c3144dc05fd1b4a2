"""`pyprof roofline FILE -o FILE`: ops as points under the roofs of their device."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from pyprof.cli.capture_options import Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.options import gpu_option, override, steps_option, top_option
from pyprof.process import output_file
from pyprof.process.extras import require
from pyprof.process.messages import say, warn

if TYPE_CHECKING:
    from pyprof.prof.table import Override

PICTURES = ("png", "svg", "pdf")
FORMATS = (*PICTURES, "html")
_TOP = 100


@click.command("roofline", cls=Command, hidden=True, output="roofline.html")
@steps_option
@top_option(_TOP, "Draw the N most expensive ops.")
@gpu_option
@click.option("-o", "--output", "target", metavar="FILE",
              help="Output file: .html, .png, .svg or .pdf. Default: NAME.roofline.html, of FILE's "
              "name.")  # fmt: skip
@reads_captures("FILE...")
def command(
    captures: Captures,
    target: str,
    steps: str | None,
    top: int,
    **how: Any,  # noqa: ANN401 - options
) -> None:
    """Draw a roofline chart: what ops achieve, and the limits of the GPU.

    `pyprof report` has it on its page, and writes it alone as .png, .svg or .pdf.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    Each point is an op with one kernel, at its FLOPs per byte: its area is its GPU time, its colour
    shows what limits it. The page shows names on hover and needs no network.

    \b
    Examples:
      pyprof roofline net.sqlite -o roofline.html
      pyprof roofline net.sqlite -o roofline.png --steps 3:
      pyprof roofline net.dict -o roofline.svg --gpu "NVIDIA H100 80GB HBM3"
    """
    kind = PurePath(target).suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise click.BadParameter(
            f"{target!r} must end in {', '.join(f'.{name}' for name in FORMATS)}",
            param_hint="'-o'",
        )
    draw(captures, target, kind, steps, override(how), top)


def draw(
    captures: Captures,
    target: str,
    kind: str,
    steps: str | None,
    asked_peaks: Override,
    top: int = _TOP,
) -> None:
    """Write a chart of the `top` most expensive ops, as one of FORMATS."""
    if kind in PICTURES:
        require("pictures", "matplotlib")
    from pyprof.analysis.summary import roofline_points  # noqa: PLC0415 - as above
    from pyprof.inputs import source  # noqa: PLC0415 - load Arrow
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above

    with captures.stages(source.STAGES + 1) as begin:
        summarise = partial(roofline_points.summarise_roofline, chosen=steps)
        data = captures.map_reduce(summarise, merge_sums, asked_peaks, begin)
        begin("drawing")
        chart = data.chart(top)
        if kind in PICTURES:
            from pyprof.render import roofline_picture  # noqa: PLC0415 - as above

            content = roofline_picture.picture(chart, kind)
        else:
            from pyprof.render.page.parts.costs import roofline  # noqa: PLC0415 - as above

            content = roofline.page_of(chart).encode()
    with output_file.open_output(target) as out:
        out.write(content)
    if not captures.quiet:
        warn(data.warnings)
        say(f"{target}: {chart.summary}")
