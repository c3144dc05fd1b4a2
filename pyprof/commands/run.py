"""`pyprof run`: capture a script, tie its work to ops and show the summary, in one step."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyprof.cli.command import Command
from pyprof.commands.capture import SETTINGS, perform, print_outcome, script_options
from pyprof.errors import PyprofError, reason
from pyprof.process import overwrite_guard, scratch
from pyprof.process.messages import say

if TYPE_CHECKING:
    from pyprof.capture.request import Outcome


@click.command("run", cls=Command, context_settings=SETTINGS)
@script_options
@click.pass_context
def command(context: click.Context, /, *, output: str | None, **options: Any) -> None:  # noqa: ANN401 - those of click
    """Run SCRIPT with its ARGS under a profiler, and show where the time went.

    The capture is kept under NAME, by default the script's name; with -o, its records (NAME.dict)
    are kept, too. Exits with the script's exit code.

    \b
    Examples:
      pyprof run train.py --epochs 1
      pyprof run -o net train.py
    """
    output_guard = overwrite_guard.of_command(context)
    if output is not None:
        output_guard.check_not_capture(f"{output}.dict")

    def conclude(outcome: Outcome) -> int:
        print_outcome(outcome, following="report", kept=not elsewhere)
        captures = [str(path) for path in outcome.captures]
        if not captures:
            return outcome.exit_code()
        if output is not None and outcome.path is not None:
            from pyprof.commands import parse  # noqa: PLC0415 - it loads Arrow

            target = f"{output}.dict"  # the report warns
            parse.command.main([*captures, "-q", "-o", target], standalone_mode=False)
            say(target)
        from pyprof.commands import summary  # noqa: PLC0415 - it loads Arrow

        if sys.stdout is not None:  # closed before Python started
            sys.stdout.flush()
        try:  # also of a script that failed
            reported = summary.command.main(captures, standalone_mode=False) or 0
        except PyprofError as error:
            if not outcome.code:
                raise
            say(reason(error))
            return outcome.code
        return outcome.code or reported

    elsewhere = output is None and not os.access(Path(), os.W_OK | os.X_OK)
    with scratch.directory() if elsewhere else nullcontext() as folder:
        name = str(folder / "net") if folder else output
        code = conclude(perform(output=name, conclude=conclude, **options))
    context.exit(code)
