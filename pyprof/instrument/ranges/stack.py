"""The trace marker of a call: `file:line` of the user's frames, built once per distinct stack.

Inspecting thirty frames costs more than the rest of a marker. So the walk ends at the innermost
wrapped op or module that is still running: the frames outside it do not change meanwhile. And most
calls have the same stack as the last one from the same instruction: a stack is compared with that
one first, and looked up among all only if it differs.
"""

from __future__ import annotations

import os
import runpy
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from pyprof.instrument import ipython
from pyprof.instrument.ops.caller import STAND_IN, run_anywhere, run_as
from pyprof.marker import encode_trace

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from pyprof.instrument.ops.caller import Run

MAX_WALK = 192
"""Frames inspected, from the innermost outwards: a bound for deep recursion."""
MAX_FRAMES = 48
"""User frames written out, the innermost ones."""
_MAX_STACKS = 8192
"""Cached stacks; the cache is cleared when full."""

_getframe = sys._getframe  # noqa: SLF001 - the cheap way

_FOREIGN = (
    f"{Path(torch.__file__).absolute().parent}{os.sep}",
    f"{Path(__file__).absolute().parents[1]}{os.sep}",  # pyprof/instrument/
    f"{Path(__file__).absolute().parents[2] / 'trial'}{os.sep}",
    runpy.__file__,
)


@dataclass(slots=True, eq=False)
class Stack:
    """Frames with their instructions, up to where another stack continues, and their text."""

    steps: tuple[tuple[CodeType, int], ...]
    """Code and last instruction of each frame, innermost first."""
    beyond: Stack | None
    places: tuple[tuple[str, str], ...]
    """`file:line` and function of the user's frames, outermost first, `beyond` included."""
    text: str
    """The trace marker, one object per distinct text; "" if no frame is the user's."""
    run: Run = run_anywhere
    """Calls a function as if the innermost frame did."""
    inside: dict[int, Stack] = field(default_factory=dict)
    """Stacks last seen that continue from this one, by a hash of their innermost frame.
    Hashes may collide: an entry is only a guess."""


NO_FRAMES = Stack((), None, (), "")
"""What lies beyond the outermost frame."""

_stacks: dict[tuple[int, ...], Stack] = {}
"""Stacks by the ids of code objects, instructions, and the stack beyond. They keep alive what the
ids refer to, so that no id is reused."""

_texts: dict[str, str] = {}

_runners: set[CodeType] = set()
"""Functions that run the user's script."""


def find(depth: int, end: FrameType | None = None, beyond: Stack = NO_FRAMES) -> Stack:
    """Return the stack that ends at the frame at `depth`: 1 = caller, 2 = its caller.

    `end` is an outer frame whose call is still running, and `beyond` the stack that led to it.
    """
    try:
        frame = _getframe(depth)
    except ValueError:  # a thread that calls nothing but this
        return NO_FRAMES
    guess = beyond.inside.get(id(frame.f_code) + frame.f_lasti)
    if guess is None:
        return _look_up(frame, end, beyond)
    here: FrameType | None = frame
    for code, instruction in guess.steps:
        if here is None or here.f_code is not code or here.f_lasti != instruction:
            return _look_up(frame, end, beyond)
        here = here.f_back
    if here is not end and len(guess.steps) != MAX_WALK:
        return _look_up(frame, end, beyond)
    return guess


def begin_at(code: CodeType) -> None:
    """Leave out the frames of this function and of its callers: it runs the user's script."""
    _runners.add(code)


def forget() -> None:
    """Clear the caches."""
    _stacks.clear()
    NO_FRAMES.inside.clear()
    _texts.clear()


def _look_up(frame: FrameType, end: FrameType | None, beyond: Stack) -> Stack:
    steps, reached = _walk(frame, end)
    if reached is not end:  # on another stack (greenlets), or too far away
        beyond = NO_FRAMES
    key = (id(beyond), *(number for code, at in steps for number in (id(code), at)))
    stack = _stacks.get(key)
    if stack is None:
        if len(_stacks) >= _MAX_STACKS:
            forget()
        stack = _stacks[key] = _describe(frame, steps, beyond)
    if len(beyond.inside) >= _MAX_STACKS:
        beyond.inside.clear()
    beyond.inside[id(frame.f_code) + frame.f_lasti] = stack
    return stack


def _walk(
    frame: FrameType, end: FrameType | None
) -> tuple[tuple[tuple[CodeType, int], ...], FrameType | None]:
    """Return the position of each frame, and the first frame that was not inspected."""
    steps: list[tuple[CodeType, int]] = []
    here: FrameType | None = frame
    while here is not None and here is not end and len(steps) < MAX_WALK:
        steps.append((here.f_code, here.f_lasti))
        here = here.f_back
    return tuple(steps), here


def _describe(
    innermost: FrameType, steps: tuple[tuple[CodeType, int], ...], beyond: Stack
) -> Stack:
    places: list[tuple[str, str]] = []
    outer, run = beyond, run_as(innermost)
    frame: FrameType | None = innermost
    for code, _ in steps:
        if frame is None or code in _runners:
            outer = NO_FRAMES
            break
        if code.co_name != STAND_IN and is_users(code.co_filename):
            name = ipython.file_name(code.co_filename)
            file = name.encode("utf-8", "replace").decode()  # not every name is UTF-8
            places.append((f"{file}:{frame.f_lineno or 0}", code.co_name))
        frame = frame.f_back
    if not places:
        return Stack(steps, beyond, outer.places, outer.text, run)
    all_places = (*outer.places, *reversed(places))[-MAX_FRAMES:]
    frames, functions = zip(*all_places, strict=True)
    text = encode_trace(frames, functions)
    return Stack(steps, beyond, all_places, _texts.setdefault(text, text), run)


def is_users(filename: str) -> bool:
    """Whether the file is the user's: not torch's, torch.compile's, ours or the import system's."""
    return not filename.startswith((*_FOREIGN, "<frozen ")) and "torchinductor_" not in filename
