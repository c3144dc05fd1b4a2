"""Calls on behalf of the user's frame, so that warnings blame the same line as without us.

`warnings` counts frames outwards from the one that warns, skipping those whose file name looks like
the import system's; our frames take such a name. A builtin that warns blames the frame that called
it, so it is called from a frame with the file, line and module of the user's call.
"""

from __future__ import annotations

import functools
import inspect
import sys
from contextlib import suppress
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

Run: TypeAlias = "Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]"
Function = TypeVar("Function", bound="Callable[..., Any]")

STAND_IN = "<called by pyprof>"
"""Name of the code that stands in for the user's frame; not a frame of the program."""
_PASSED_OVER = ":importlib._bootstrap"
"""What `warnings` looks for in file names."""
_MAX_CALLERS = 8192
"""Cached callers; the cache is cleared when full."""

_callers: dict[tuple[int, int], tuple[CodeType, Run]] = {}
"""By code id and instruction; the code object is kept, so that its id stays unique."""
run_anywhere: Run = (  # noqa: E731 - all on one line
    lambda function, args, kwargs: function(*args, **kwargs) if kwargs else function(*args)
)
"""Calls a function; the template of the code that stands in for a frame."""


def hide_frames(function: Function) -> Function:
    """Decorator, innermost: make `warnings` skip the function's frames."""
    code: CodeType = function.__code__
    function.__code__ = _hidden_code(code)
    return function


def hidden_code(code: CodeType) -> CodeType:
    """Return code whose frames `warnings` skips; its file name keeps its beginning."""
    return code.replace(co_filename=code.co_filename + _PASSED_OVER)


def keep_uncompiled(function: Function, *, callees: bool = True) -> Function:
    """Make torch.compile run the function's frames, and those of its callees, as they are.

    After a graph break, the program calls our functions itself, and dynamo cannot trace them all.
    There is no public way that does not load the compiler: in a torch without this one, dynamo
    decides.
    """
    code: CodeType = function.__code__
    with suppress(AttributeError):
        eval_frame: Any = torch._C._dynamo.eval_frame  # noqa: SLF001
        if hasattr(eval_frame, "skip_code"):  # before torch 2.7
            eval_frame.skip_code(code)
        else:
            action = eval_frame._FrameAction  # noqa: SLF001
            of_callees = action.SKIP if callees else action.DEFAULT
            strategy = eval_frame._FrameExecStrategy(action.SKIP, of_callees)  # noqa: SLF001
            eval_frame.set_code_exec_strategy(code, strategy)
    return function


def is_inserted(code: CodeType) -> bool:
    """Whether this is the code of a frame that we put between the script and what it calls."""
    return code.co_name == STAND_IN or code.co_filename.endswith(_PASSED_OVER)


def report_original_file(getfile: Callable[[Any], str]) -> Callable[[Any], str]:
    """Wrap `inspect.getfile`, so that a wrapper reports the file of the original.

    `inspect.getsourcefile` calls it without unwrapping first.
    """

    @functools.wraps(getfile)
    def call(object: Any) -> str:  # noqa: A002, ANN401 - as the original
        function = getattr(object, "__func__", object)
        return getfile(object if _is_seen(function) else inspect.unwrap(function, stop=_is_seen))

    return call


def _is_seen(function: object) -> bool:
    return not (isinstance(function, FunctionType) and is_inserted(function.__code__))


_hidden_code = functools.cache(hidden_code)
"""Cached: functions made from one code object share its specialised bytecode."""


def caller(depth: int) -> Run:
    """Return what calls a function as if the frame at `depth` did: 1 = caller, 2 = its caller."""
    try:
        frame = sys._getframe(depth)  # noqa: SLF001 - the cheap way
    except ValueError:  # a thread that calls nothing but this
        return run_anywhere
    key = id(frame.f_code), frame.f_lasti
    remembered = _callers.get(key)
    if remembered is None:
        if len(_callers) >= _MAX_CALLERS:
            forget()
        remembered = _callers[key] = frame.f_code, run_as(frame)
    return remembered[1]


def forget() -> None:
    """Clear the cache."""
    _callers.clear()


def run_as(frame: FrameType) -> Run:
    """Return a function that calls others as if `frame` did, at its current instruction."""
    code = run_anywhere.__code__.replace(
        co_filename=frame.f_code.co_filename,
        co_firstlineno=frame.f_lineno or 1,
        co_name=STAND_IN,
    )
    # `warnings` knows a module by its globals. If no loaded module has them, only its name is
    # taken, else all of them would be kept alive. From 3.13 on the builtins are wanted, too.
    namespace = frame.f_globals
    name = namespace.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or vars(module) is not namespace:
        namespace = {"__name__": name, "__builtins__": frame.f_builtins}
    return FunctionType(code, namespace)
