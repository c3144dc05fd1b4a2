"""`pyprof doctor`: what this machine lacks for a capture, or what a capture hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyprof import cli, safe
from pyprof.options import capture_options

if TYPE_CHECKING:
    from pathlib import Path


@click.command("doctor", cls=cli.Command)
@click.argument("capture", required=False)
@capture_options
def command(capture: str | None) -> None:
    """Check this machine for captures, or check what CAPTURE hides or distorts.

    CAPTURE is a file written by nsys, nvprof or torch.profiler, or its URL. Each problem comes with
    a suggested fix.

    \b
    Examples:
      pyprof doctor
      pyprof doctor net.sqlite
      pyprof doctor --counters ncu.csv net.sqlite
    """
    if capture is None:
        from pyprof.capture.machine import findings  # noqa: PLC0415 - --help needs none of it

        lines = [str(finding) for finding in findings()]
    else:
        from pyprof.inputs.find import fetch  # noqa: PLC0415 - as above

        with fetch(capture) as path:
            lines = examine(path, capture)
    with cli.output(cli.STDOUT) as out:
        out.write("".join(f"{safe.multiline(line)}\n" for line in lines).encode())


def examine(path: Path, name: str) -> list[str]:
    """Give what a capture holds, then what is to be known of it; CaptureError where it is none.

    `name` is what the user calls it.
    """
    from pyprof.capture import pitfalls, tables  # noqa: PLC0415 - they need Arrow
    from pyprof.readers import read  # noqa: PLC0415
    from pyprof.report.counter_findings import contradictions  # noqa: PLC0415

    capture = read(path)
    version = f" {capture.version}" if capture.version else ""
    heading = (
        f"{name}: {capture.tool}{version}, {capture.activities.num_rows:,} activities, "
        f"{capture.calls.num_rows:,} calls, {capture.ranges.num_rows:,} ranges"
    )
    pitfall_texts = [
        *pitfalls.find_pitfalls(capture),
        *contradictions(capture),
        *tables.private(path),
    ]
    lines = [heading, *(f"- {text}" for text in pitfall_texts or ["no pitfalls found"])]
    return [safe.message(line) for line in lines]
