"""`pyprof doctor`: what this machine lacks for a capture, or what a capture hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyprof import sanitize
from pyprof.cli.capture_options import GRAPHS_AND_COUNTERS, takes_extra_files
from pyprof.cli.command import Command
from pyprof.cli.options import json_option, output_option
from pyprof.process import output_file

if TYPE_CHECKING:
    from pyprof.answers.doctor_answer import Doctor
    from pyprof.schema import Capture


@click.command("doctor", cls=Command)
@click.argument("capture", required=False)
@json_option
@output_option(".json selects JSON")
@takes_extra_files(*GRAPHS_AND_COUNTERS)
def command(capture: str | None, target: str, *, as_json: bool) -> None:
    """Check this machine for captures, or check what CAPTURE hides or distorts.

    CAPTURE is a file that a profiler wrote, or its URL. Each problem comes with a suggested fix.

    \b
    Examples:
      pyprof doctor
      pyprof doctor net.sqlite
      pyprof doctor --json net.sqlite
      pyprof doctor --with ncu.csv net.sqlite
    """
    from pyprof.readers import settings  # noqa: PLC0415 - loads more than click

    if capture is None and (settings.graph_captures() or settings.counters()):
        raise click.UsageError("--with goes with a CAPTURE")
    as_json |= output_file.optional_format(target, "json") == "json"
    if as_json:
        from pyprof import answers  # noqa: PLC0415 - --help needs none of it

        answers.write(target, examine(capture))
        return
    if capture is None:
        from pyprof.capture.machine import findings  # noqa: PLC0415 - as above

        lines = [str(finding) for finding in findings()]
    else:
        lines = _report_lines(capture)
    with output_file.open_output(target) as out:
        out.write("".join(f"{sanitize.multiline(line)}\n" for line in lines).encode())


def examine(name: str | None) -> Doctor:
    """Examine a capture, or this machine for None. Raises CaptureError as `read` does."""
    from pyprof.answers import doctor_answer  # noqa: PLC0415 - --help needs none of it

    if name is None:
        from pyprof.capture.machine import findings  # noqa: PLC0415 - as above

        found_here = (
            doctor_answer.MachineFinding(each.state.value, each.text, each.remedy)
            for each in findings()
        )
        return doctor_answer.Doctor(None, (), tuple(found_here))
    return doctor_answer.of_capture(*_inspect(name))


def _inspect(name: str) -> tuple[Capture, str, list[str]]:
    """Read a capture; return it with its pitfalls. Raises CaptureError."""
    from pyprof.analysis.pitfalls import find_pitfalls  # noqa: PLC0415 - as above
    from pyprof.capture.under_profiler import database  # noqa: PLC0415 - they need Arrow
    from pyprof.inputs.find import fetch  # noqa: PLC0415 - as above
    from pyprof.readers import read  # noqa: PLC0415 - as above

    with fetch(name) as path:
        capture = read(path)
        return capture, name, [*find_pitfalls(capture), *database.private_content(path)]


def _report_lines(name: str) -> list[str]:
    """Return what a capture contains, then its pitfalls, as lines."""
    from pyprof.quantities import counted  # noqa: PLC0415 - it loads Arrow

    capture, _, pitfall_texts = _inspect(name)
    version = f" {capture.version}" if capture.version else ""
    held = {"activity": capture.activities, "call": capture.calls, "range": capture.ranges}
    counts = ", ".join(counted(rows.num_rows, noun) for noun, rows in held.items())
    heading = f"{name}: {capture.tool}{version}, {counts}"
    lines = [heading, *(f"- {text}" for text in pitfall_texts or ["no pitfalls found"])]
    return [sanitize.message(line) for line in lines]
