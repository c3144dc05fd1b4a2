"""A call of code that is no op of torch's, inside a marker of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.instrument.caller import unseen
from pyprof.instrument.emit import EMITTER
from pyprof.instrument.op import WITH_STACK
from pyprof.instrument.ranges import THREAD
from pyprof.instrument.stack import find

if TYPE_CHECKING:
    from collections.abc import Callable

_CALLER = 3
"""Whose stack is written: what called the wrapper that calls us, as `find` counts frames."""


@unseen
def call_inside(text: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever it gives
    """Call a function inside the marker `text`, and of the stack where that is not open already.

    To be called from what stands in the place of the function, while ranges are written.
    """
    push, here, pop = EMITTER.push, THREAD.here, EMITTER.pop
    if push is None:
        return function(*args, **kwargs)
    stack = find(_CALLER, here.frame, here.within).text if WITH_STACK[0] else ""
    outer = here.trace
    texts = (text,) if stack is outer or not stack else (stack, text)
    for each in texts:
        push(each)
    here.trace = stack or outer
    try:
        return function(*args, **kwargs)
    finally:
        here.trace = outer
        for _ in texts:
            pop()
