"""`pyprof run`: capture a script, tie its work to ops and show the summary, in one go."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from pyprof import guard, scratch
from pyprof.capture.command import SETTINGS, perform, script_options, tell
from pyprof.cli import Command, say

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH = 120  # the least that the table needs


@click.command("run", cls=Command, context_settings=SETTINGS)
@click.option("--each", is_flag=True, help="Show every kernel, instead of the summary.")
@script_options
@click.pass_context
def run(context: click.Context, /, *, each: bool, output: str | None, **options: Any) -> None:  # noqa: ANN401 - those of click
    """Run SCRIPT with its ARGS under a profiler, and show where the time went.

    With -o the capture and its records (NAME.dict) are kept. Exits with the script's own code.

    \b
    Examples:
      pyprof run train.py --epochs 1
      pyprof run --each -o net train.py
    """
    told = guard.of(context)
    if output is not None:
        told.no_capture(f"{output}.dict")
    with scratch.folder() as folder:
        name = output or str(folder / "net")
        outcome = perform(output=name, **options)
        tell(outcome, kept=output is not None)
        failed = int(outcome.path is None)
        if outcome.path is not None and not outcome.empty:
            if output is not None:
                _records(outcome.path, f"{name}.dict", force=told.force)
            failed = _report(outcome.path, each=each)
    context.exit(outcome.code or failed)


def _records(capture: Path, target: str, *, force: bool) -> None:
    from pyprof.parse.command import parse  # noqa: PLC0415 - it loads Arrow

    forced = ["--force"] if force else []
    arguments = [str(capture), "-q", *forced, "-o", target]  # the report warns
    parse.main(arguments, standalone_mode=False)
    say(target)


def _report(capture: Path, *, each: bool) -> int:
    """Show the summary, or the table of all kernels; give the exit code of that."""
    from pyprof.prof.command import prof  # noqa: PLC0415 - it loads Arrow
    from pyprof.report.summary import command as summary  # noqa: PLC0415 - as above

    sys.stdout.flush()
    if not each:
        return summary.main([str(capture)], standalone_mode=False) or 0
    width = max(_WIDTH, shutil.get_terminal_size((_WIDTH, 0)).columns)
    return prof.main(["-w", str(width), str(capture)], standalone_mode=False) or 0
