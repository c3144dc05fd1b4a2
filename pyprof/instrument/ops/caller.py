"""Warnings blame who called a wrapped function, as if nothing were wrapped.

Python's `warnings` counts frames outwards from the one that warns, and passes over those of the
import system, which it knows by their file's name. Frames of ours take such a name. A builtin
that warns blames the frame that called it, whichever that is: so it is called from one that bears
file, line and module of the user's call.
"""

from __future__ import annotations

import functools
import inspect
import sys
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Run: TypeAlias = "Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]"
Function = TypeVar("Function", bound="Callable[..., Any]")

STAND_IN = "<called by pyprof>"
"""The name of the code that stands in for the user's frame; it is no frame of the program."""
_PASSED_OVER = ":importlib._bootstrap"
"""What `warnings` looks for in the names of files."""
_MAX_CALLERS = 8192
"""Calls remembered; then all are forgotten and made afresh."""

_callers: dict[tuple[int, int], tuple[CodeType, Run]] = {}
"""By the id of a code object, which is kept, and an instruction."""
run_anywhere: Run = (  # noqa: E731 - all on one line
    lambda function, args, kwargs: function(*args, **kwargs) if kwargs else function(*args)
)
"""Calls a function as itself; the template of those that stand in for a frame."""


def unseen(function: Function) -> Function:
    """Let `warnings` pass over a function's frames. As a decorator, below all others."""
    code: CodeType = function.__code__
    function.__code__ = _unseen(code)
    return function


def unseen_code(code: CodeType) -> CodeType:
    """Give code whose frames `warnings` passes over; their file's name begins as it did."""
    return code.replace(co_filename=code.co_filename + _PASSED_OVER)


def is_inserted(code: CodeType) -> bool:
    """Whether this is the code of a frame that stands between the script and what it calls."""
    return code.co_name == STAND_IN or code.co_filename.endswith(_PASSED_OVER)


def file_of_original(getfile: Callable[[Any], str]) -> Callable[[Any], str]:
    """Wrap `inspect.getfile`: a function that stands for another one has that one's file.

    `inspect.getsourcefile` asks it, and does not look for what is wrapped.
    """

    @functools.wraps(getfile)
    def call(object: Any) -> str:  # noqa: A002, ANN401 - as the original
        function = getattr(object, "__func__", object)
        return getfile(object if _is_seen(function) else inspect.unwrap(function, stop=_is_seen))

    return call


def _is_seen(function: object) -> bool:
    return not (isinstance(function, FunctionType) and is_inserted(function.__code__))


_unseen = functools.cache(unseen_code)
"""One code for all functions that are made of one: so the interpreter learns what it does."""


def caller(depth: int) -> Run:
    """Give what calls a function as if the frame did: 1 is that of the caller, 2 that of its."""
    try:
        frame = sys._getframe(depth)  # noqa: SLF001 - the cheap way
    except ValueError:  # a thread that calls nothing but this
        return run_anywhere
    remembered = _callers.get((id(frame.f_code), frame.f_lasti))
    return remembered[1] if remembered is not None else _remember(frame)


def forget() -> None:
    """Drop what was remembered."""
    _callers.clear()


def _remember(frame: FrameType) -> Run:
    if len(_callers) >= _MAX_CALLERS:
        forget()
    run = run_as(frame)
    _callers[id(frame.f_code), frame.f_lasti] = frame.f_code, run
    return run


def run_as(frame: FrameType) -> Run:
    """Give what calls a function as if the frame did, at the instruction where it is."""
    code = run_anywhere.__code__.replace(
        co_filename=frame.f_code.co_filename,
        co_firstlineno=frame.f_lineno or 1,
        co_name=STAND_IN,
    )
    return FunctionType(code, _namespace(frame))


def _namespace(frame: FrameType) -> dict[str, Any]:
    """Give the module's own names, by which `warnings` knows it and what it has shown already.

    Of what is no module, its name alone: else all that is in it would live on with us.
    """
    name = frame.f_globals.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is not None and vars(module) is frame.f_globals:
        return frame.f_globals
    # From 3.13 on, `warnings` looks for the builtins there, too.
    return {"__name__": name, "__builtins__": frame.f_builtins}
