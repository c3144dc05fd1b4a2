"""`pyprof mcp`: the same answers over the Model Context Protocol, for agents."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING

import click

from pyprof import cli
from pyprof.errors import PyprofError
from pyprof.process import stdio
from pyprof.process.extras import require
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.server import MCPServer

    from pyprof.commands._mcp_tools import Answer

_INSTRUCTIONS = (
    "Explains captures of GPU profilers (Nsight Systems, torch.profiler, nvprof) of PyTorch "
    "programs. Begin with summary; advice and ops lead to prof (rows; idx identifies a row) and "
    "explain (one row). lines ranks source lines, diff compares two captures, doctor tells what a "
    "capture hides. Times are in ns; null is unknown, never 0, and why says the reason. Lists are "
    "cut at limit: cut, and ..._left_out, say how much is missing."
)


@click.command("mcp", cls=cli.Command)
@click.option("--root", "roots", metavar="DIR", multiple=True,
              type=click.Path(exists=True, file_okay=False),
              help="Read only what is in this folder. Repeatable. Default: any capture that the "
              "client names and you may read.")  # fmt: skip
@click.option("--allow-run", is_flag=True,
              help="Also offer try_changes, which runs scripts that the client names.")  # fmt: skip
def command(roots: tuple[str, ...], *, allow_run: bool) -> None:
    """Serve summary, lines, prof, diff, doctor, peaks and ranks over the Model Context Protocol.

    Started by an MCP client, such as an agent or an editor, which talks to it on stdin and stdout.
    It reads the captures that the client names, writes nothing, and opens no network connection;
    with --allow-run the client may also run scripts, as you would.
    Answers are those of --json, bounded; docs/mcp.md shows how to register it.

    \b
    Examples:
      pyprof mcp
      pyprof mcp --root ~/captures --root ~/project
    """
    require("the MCP server", "mcp")
    made = server(roots, allow_run=allow_run)
    if stdio.terminal(sys.stdin):
        cli.say("waiting for an MCP client on stdin; Ctrl-C ends")
    made.run("stdio")


def server(roots: Sequence[str] = (), *, allow_run: bool = False) -> MCPServer:
    """Create the server, for all files or those in `roots`. Raises PyprofError for an old SDK."""
    try:
        from mcp.server import MCPServer  # noqa: PLC0415 - extra
        from mcp.types import ToolAnnotations  # noqa: PLC0415 - extra
    except ImportError:
        raise PyprofError("the MCP server needs mcp 2: pip install --upgrade mcp") from None
    from pyprof.commands import _mcp_tools  # noqa: PLC0415 - only now needed

    made = MCPServer("pyprof", instructions=_INSTRUCTIONS, version=__version__, log_level="ERROR")
    hints = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    for tool in _mcp_tools.TOOLS:
        made.add_tool(_with_errors(tool, roots), annotations=hints)
    runs = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
    for tool in _mcp_tools.RUNNING_TOOLS if allow_run else ():
        made.add_tool(_with_errors(tool, roots), annotations=runs)
    return made


def _with_errors(tool: Callable[..., Answer], roots: Sequence[str]) -> Callable[..., Answer]:
    """Report errors that the client can fix; others stay without details."""
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - extra

    from pyprof.commands._mcp_tools import ToolUseError, restrict_to  # noqa: PLC0415 - only now needed

    @wraps(tool)
    def answered(**given: object) -> Answer:
        try:
            with restrict_to(roots):
                return tool(**given)
        except ToolUseError as error:
            raise ToolError(str(error)) from None

    return answered
