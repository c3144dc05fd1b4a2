"""Which of the calls around an op on the CPU may be charged: the outermost first.

Not those that were left before they ran to the end, nor those on a tensor of functorch: they hide
the sizes of a batch, and may stand for several ops. What it calls shows all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from pyprof import marker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.marker import Call, Value
    from pyprof.prof.situations import Work

STOPPED = "stopped: gradient checkpointing needed no more than what ran before it"


def stopped(text: str) -> bool:
    """Tell whether a text is of an op that began and never ran to its end."""
    return text.endswith(marker.STOPPED) and marker.decode_seq(text).stopped


def outermost(calls: Sequence[Work], texts: Sequence[str]) -> list[Work]:
    """Choose among the calls around a row, the deepest first, which stand at positions of `texts`.

    Given back are those that may be charged, the outermost first.
    """
    ran = [*takewhile(lambda work: not stopped(texts[work.position]), calls)]
    for place, (inner, outer) in enumerate(pairwise(ran)):
        if _passed_on(inner.call, outer.call):
            ran = [*ran[:place], replace(inner, call=_innermost(ran[place:]))]
            break
    return ran[::-1]


def _passed_on(inner: Call | None, outer: Call | None) -> bool:
    """Tell whether a call is what a layer of functorch made of the one around it.

    The layer calls the same op with the same arguments; some of its ways repeat them.
    """
    if inner is None or outer is None or not outer.args:
        return False
    times = len(inner.args) // len(outer.args)
    return _same_op(inner, outer) and times > 0 and inner.args == outer.args * times


def _innermost(layers: Sequence[Work]) -> Call | None:
    """Give the first call of nested ones, without the arguments of those around it.

    Where a layer hands on what lies on its stack, profilers tell all of that.
    """
    calls = [work.call for work in layers if work.call is not None]
    args = calls[0].args
    around = [call.args for call in takewhile(partial(_same_op, calls[0]), calls)]
    count = min(len(under) for under in around if _repeats(args, under))
    return replace(calls[0], args=args[-count:])


def _repeats(args: tuple[Value, ...], under: tuple[Value, ...]) -> bool:
    """Tell whether arguments stand on others of as many, or are those."""
    return bool(under) and not len(args) % len(under) and args[: len(under)] == under


def _same_op(one: Call, other: Call) -> bool:
    return (one.mod, one.op) == (other.mod, other.op)
