"""Which tools there are, and how one is called: one at a time, with errors in one line."""

from __future__ import annotations

import threading
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from pyprof.errors import PyprofError, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.commands.mcp.bounds import Answer

TOOLS: list[Callable[..., Answer]] = []
RUNNING_TOOLS: list[Callable[..., Answer]] = []
"""Tools that run a script; offered where the user allows it."""
_ONE_AT_A_TIME = threading.Lock()
"""Captures are large: two at once might not fit into memory."""


class ToolUseError(Exception):
    """An error that the caller can fix, in one line."""


def tool(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Register a tool that only reads; its docstring is what an agent reads."""
    guarded = _guarded(function)
    TOOLS.append(guarded)
    return guarded


def running_tool(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Register a tool that runs a script."""
    guarded = _guarded(function)
    RUNNING_TOOLS.append(guarded)
    return guarded


def _guarded(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Wrap a tool: one call at a time; errors that the caller can fix become ToolUseError."""

    @wraps(function)
    def guarded(**given: Any) -> Answer:  # noqa: ANN401 - the tool's own
        with _ONE_AT_A_TIME:
            try:
                return function(**given)
            except click.ClickException as error:
                raise ToolUseError(error.format_message()) from None
            except (PyprofError, ValueError) as error:
                raise ToolUseError(str(error)) from None
            except OSError as error:
                raise ToolUseError(refused(error) or str(error.strerror or error)) from None
            except MemoryError:
                raise ToolUseError("not enough memory for this capture") from None

    return guarded
