"""`pyprof completion SHELL`: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pyprof.cli.command import Command
from pyprof.process import output_file

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print a script that lets SHELL complete commands, options and files.

    SHELL is bash (4.4 or newer), zsh or fish.

    \b
    Examples:
      pyprof completion bash
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    script = completion(root, {}, "pyprof", "_PYPROF_COMPLETE").source()
    with output_file.open_output(output_file.STDOUT) as out:
        out.write(f"{script}\n".encode())
