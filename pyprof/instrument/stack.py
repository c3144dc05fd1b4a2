"""The trace marker of a call: `file:line` of the user's frames, built once for each distinct stack.

Walking thirty frames costs about as much as everything else that a marker needs, so a walk only
notes which instruction each frame is at; names and lines are looked up once per distinct walk.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch

from pyprof.marker import encode_trace

if TYPE_CHECKING:
    from types import CodeType, FrameType

MAX_WALK = 192
"""Frames looked at, from the innermost outwards: a bound for deep recursion."""
MAX_FRAMES = 48
"""Frames of the user written out: the innermost."""
_MAX_STACKS = 8192
"""Distinct stacks remembered; then all are forgotten and looked up afresh."""

_FOREIGN = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep  # noqa: PTH100, PTH120 - compared as text
    for file in (torch.__file__, __file__)
)

_stacks: dict[tuple[int, ...], tuple[str, tuple[CodeType, ...]]] = {}
"""Texts by the ids of code objects and their instructions. The code objects are kept along, so
that no id comes to mean another one."""


def trace_text(frame: FrameType | None) -> str:
    """Give the trace marker for the stack that ends at this frame; empty where no frame is the
    user's.
    """  # noqa: D205 - one sentence
    walk: list[int] = []
    append = walk.append
    here, left = frame, MAX_WALK
    while here is not None and left:
        append(id(here.f_code))
        append(here.f_lasti)
        here = here.f_back
        left -= 1
    key = tuple(walk)
    known = _stacks.get(key)
    if known is None:
        known = _look_up(frame)
        if len(_stacks) >= _MAX_STACKS:
            _stacks.clear()
        _stacks[key] = known
    return known[0]


def forget() -> None:
    """Drop what was remembered."""
    _stacks.clear()


def _look_up(frame: FrameType | None) -> tuple[str, tuple[CodeType, ...]]:
    codes: list[CodeType] = []
    frames: list[str] = []
    functions: list[str] = []
    while frame is not None and len(codes) < MAX_WALK:
        code = frame.f_code
        codes.append(code)
        if len(frames) < MAX_FRAMES and is_users(code.co_filename):
            frames.append(f"{_encodable(code.co_filename)}:{frame.f_lineno or 0}")
            functions.append(code.co_name)
        frame = frame.f_back
    text = encode_trace(frames[::-1], functions[::-1]) if frames else ""
    return text, tuple(codes)


def is_users(filename: str) -> bool:
    """Tell whether a frame of this file is the user's: not torch's, not ours, not the import
    system's.
    """  # noqa: D205 - one sentence
    return not filename.startswith((*_FOREIGN, "<frozen "))


def _encodable(name: str) -> str:
    """Give a file's name such that it can be written as UTF-8, which not every one can."""
    return name.encode("utf-8", "replace").decode()
