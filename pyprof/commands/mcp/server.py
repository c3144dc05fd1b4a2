"""The server: tools with their parameters described, and answers as compact JSON."""

from __future__ import annotations

import inspect
import json
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from pyprof.commands.mcp import parameters, tools
from pyprof.commands.mcp.access import restrict_to
from pyprof.commands.mcp.bounds import Answer
from pyprof.errors import PyprofError
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.server import MCPServer

__all__ = ["server"]
_INSTRUCTIONS = (
    "Explains captures of GPU profilers (Nsight Systems, torch.profiler, nvprof, rocprofv3) of "
    "PyTorch programs. Why is it slow, and what should change? summary answers both: `verdict`, "
    "then `advice`, the largest gain first, with the rows that prove it, which prof lists and "
    "explain explains. lines ranks source lines, diff compares two captures, doctor tells what a "
    "capture hides. `file` is a capture's path in every tool. Times are in ns; null is unknown, "
    "never 0, and why says the reason. Lists are cut at limit: cut, and ..._left_out, say how much "
    "is missing."
)


def server(roots: Sequence[str] = (), *, allow_run: bool = False) -> MCPServer:
    """Create the server, for all files or those in `roots`. Raises PyprofError for an old SDK."""
    try:
        from mcp.server import MCPServer  # noqa: PLC0415 - extra
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - extra
        from mcp.types import ToolAnnotations  # noqa: PLC0415 - extra
        from pydantic import ValidationError  # noqa: PLC0415 - extra
    except ImportError:
        raise PyprofError("the MCP server needs mcp 2: pip install --upgrade mcp") from None
    offered = (*tools.READING, *(tools.RUNNING if allow_run else ()))
    by_name = {tool.__name__: tool for tool in offered}

    class Server(MCPServer):
        """Answers a wrong parameter with an error that names the right ones."""

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:  # noqa: ANN401 - the SDK's
            tool = by_name.get(name)
            if tool is None:
                raise ToolError(f"no tool {name!r}; tools are {', '.join(by_name)}")
            try:
                arguments = parameters.with_present_names(tool, arguments)
                return await super().call_tool(name, arguments, context)
            except ValueError as error:
                raise ToolError(str(error)) from None
            except ToolError as error:
                if not isinstance(error.__cause__, ValidationError):
                    raise
                names = (str(each["loc"][0]) for each in error.__cause__.errors())
                raise ToolError(parameters.wrong_values(tool, names)) from None

    made = Server("pyprof", instructions=_INSTRUCTIONS, version=__version__, log_level="ERROR")
    reads = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    runs = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
    for tool in offered:
        description = inspect.getdoc(tool)
        hints = reads if tool in tools.READING else runs
        made.add_tool(_serve(tool, roots), description=description, annotations=hints)
    return made


def _serve(tool: Callable[..., Answer], roots: Sequence[str]) -> Callable[..., Any]:
    """Return the function that the SDK calls: with described parameters, and answers also as text.

    Errors that the client can fix are reported; others stay without details.
    """
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - extra
    from mcp.types import CallToolResult, TextContent  # noqa: PLC0415 - extra
    from pydantic import Field  # noqa: PLC0415 - extra

    @wraps(tool)
    def answered(**given: object) -> CallToolResult:
        try:
            with restrict_to(roots):
                answer = tool(**given)
        except tools.ToolUseError as error:
            raise ToolError(str(error)) from None
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=answer
        )

    signature = inspect.signature(tool)
    described = parameters.described(tool)
    answered.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            each.replace(annotation=Annotated[kind, Field(description=text)])
            for each in signature.parameters.values()
            for kind, text in [described[each.name]]
        ],
        return_annotation=Answer,
    )
    return answered
