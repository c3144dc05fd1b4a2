"""Layers of functorch (`torch.func`): which of the calls that they put in one another runs.

A layer calls the op that it is asked for once more, with the same arguments, and then others with
what they stand for: the sizes of a batch, a value and its derivative. Where it hands on what lies
on its stack, profilers tell the arguments of the calls around it, too, before the call's own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.marker import Call, Value


def innermost(calls: Sequence[Call | None]) -> tuple[int, Call] | None:
    """Find the deepest call that a layer made, the deepest first: its place, and what it is.

    None where no layer shows.
    """
    for place, (inner, outer) in enumerate(pairwise(calls)):
        if inner is not None and outer is not None and _passed_on(inner, outer):
            return place, _alone(inner, [call for call in calls[place:] if call is not None])
    return None


def _passed_on(inner: Call, outer: Call) -> bool:
    """Whether a layer of functorch made the inner call on behalf of the outer."""
    times = len(inner.args) // max(len(outer.args), 1)
    return _same_op(inner, outer) and times > 0 and inner.args == outer.args * times


def _alone(call: Call, calls: Sequence[Call]) -> Call:
    """The call without the arguments that belong to the calls around it."""
    around = [outer.args for outer in takewhile(partial(_same_op, call), calls)]
    count = min(len(under) for under in around if _repeats(call.args, under))
    return replace(call, args=call.args[-count:])


def _repeats(args: tuple[Value, ...], under: tuple[Value, ...]) -> bool:
    return bool(under) and not len(args) % len(under) and args[: len(under)] == under


def _same_op(one: Call, other: Call) -> bool:
    return (one.mod, one.op) == (other.mod, other.op)
