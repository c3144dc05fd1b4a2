"""`pyprof mcp`: the same answers over the Model Context Protocol, for agents."""

from __future__ import annotations

import sys

import click

from pyprof.cli.command import Command
from pyprof.process import stdio
from pyprof.process.extras import require
from pyprof.process.messages import say


@click.command("mcp", cls=Command)
@click.option("--root", "roots", metavar="DIR", multiple=True,
              type=click.Path(exists=True, file_okay=False),
              help="Read only what is in this folder. Repeatable. Default: any capture that the "
              "client names and you may read.")  # fmt: skip
@click.option("--allow-run", is_flag=True,
              help="Also offer try_changes, which runs scripts that the client names.")  # fmt: skip
def command(roots: tuple[str, ...], *, allow_run: bool) -> None:
    """Serve the answers of other commands over the Model Context Protocol.

    Started by an MCP client, such as an agent or an editor, which talks to it on stdin and stdout.
    It reads the captures that the client names, writes nothing, and opens no network connection;
    with --allow-run the client may also run scripts, as you would.
    Answers are those of --json, bounded; docs/json.md shows how to register it.

    \b
    Examples:
      pyprof mcp
      pyprof mcp --root ~/captures --root ~/project
    """
    require("the MCP server", "mcp")
    from pyprof.commands.mcp.server import server  # noqa: PLC0415 - only now needed

    made = server(roots, allow_run=allow_run)
    if stdio.terminal(sys.stdin):
        say("waiting for an MCP client on stdin; Ctrl-C ends")
    made.run("stdio")
