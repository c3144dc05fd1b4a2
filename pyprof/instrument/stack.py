"""The trace marker of a call: `file:line` of the user's frames, built once for each distinct stack.

Walking thirty frames costs more than everything else that a marker needs. So a walk only notes
which instruction each frame is at; names and lines are looked up once per distinct walk. And it
ends at the call of the module that it is in, from where on outwards nothing moves meanwhile.
"""

from __future__ import annotations

import itertools
import os
import runpy
import threading
from itertools import repeat
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

_FOREIGN = (
    os.path.dirname(os.path.abspath(torch.__file__)) + os.sep,  # noqa: PTH100, PTH120 - compared as text
    os.path.dirname(os.path.abspath(__file__)) + os.sep,  # noqa: PTH100, PTH120
    runpy.__file__,
)

_stacks: dict[tuple[int, ...], tuple[str, tuple[CodeType, ...]]] = {}
"""Texts by the ids of code objects and their instructions. The code objects are kept along, so
that no id comes to mean another one."""


class Landmark:
    """The call of a module that has not returned, and what stands for the stack from there on."""

    __slots__ = ("frame", "token")

    def __init__(self, frame: FrameType) -> None:
        """Note a frame. `frame` must be unset before it returns, or it would live on."""
        key = _walk(frame)
        known = _beyond.get(key)
        if known is None:
            if len(_beyond) >= _MAX_STACKS:
                _beyond.clear()
            known = _beyond[key] = (next(_tokens), _codes(frame))
        self.token = known[0]
        self.frame: FrameType | None = frame


class _Landmarks(threading.local):
    def __init__(self) -> None:
        self.innermost: Landmark | None = None
        self.trace = ""


LANDMARKS = _Landmarks()
"""The module call that this thread is in, and the trace marker: one object per distinct text."""

_texts: dict[str, str] = {}

_runners: set[CodeType] = set()
"""Functions that run the user's script."""

_beyond: dict[tuple[int, ...], tuple[int, tuple[CodeType, ...]]] = {}
"""Tokens by walks. A token is never given twice, also after all were forgotten."""
_tokens = itertools.count()


def _walk(frame: FrameType | None) -> tuple[int, ...]:
    """Note the code and the instruction of each frame up to the landmark, then its token."""
    landmark = LANDMARKS.innermost
    end = None if landmark is None else landmark.frame
    walk: list[int] = []
    append = walk.append
    here = frame
    for _ in repeat(None, MAX_WALK):
        if here is end:
            if landmark is not None:
                append(landmark.token)
            break
        if here is None:  # the landmark is on another stack of this thread: greenlets
            break
        append(id(here.f_code))
        append(here.f_lasti)
        here = here.f_back
    return tuple(walk)


def trace_text(frame: FrameType | None) -> str:
    """Give the trace marker for the stack that ends at this frame; empty where no frame is the
    user's.
    """  # noqa: D205 - one sentence
    key = _walk(frame)
    known = _stacks.get(key)
    if known is None:
        known = _look_up(frame)
        if len(_stacks) >= _MAX_STACKS:
            _stacks.clear()
            _texts.clear()
        _stacks[key] = known
    return known[0]


def begin_at(code: CodeType) -> None:
    """Leave out the frames of this function and of what called it: it runs the user's script."""
    _runners.add(code)


def forget() -> None:
    """Drop what was remembered."""
    _stacks.clear()
    _texts.clear()
    _beyond.clear()


def _codes(frame: FrameType | None) -> tuple[CodeType, ...]:
    codes: list[CodeType] = []
    while frame is not None and len(codes) < MAX_WALK:
        codes.append(frame.f_code)
        frame = frame.f_back
    return tuple(codes)


def _look_up(frame: FrameType | None) -> tuple[str, tuple[CodeType, ...]]:
    frames: list[str] = []
    functions: list[str] = []
    codes = _codes(frame)
    for code in codes:
        if frame is None or code in _runners:
            break
        if len(frames) < MAX_FRAMES and is_users(code.co_filename):
            frames.append(f"{_encodable(code.co_filename)}:{frame.f_lineno or 0}")
            functions.append(code.co_name)
        frame = frame.f_back
    text = encode_trace(frames[::-1], functions[::-1]) if frames else ""
    return _texts.setdefault(text, text), codes


def is_users(filename: str) -> bool:
    """Tell whether a frame of this file is the user's: not torch's, not made by torch.compile, not
    ours, not the import system's.
    """  # noqa: D205 - one sentence
    return not filename.startswith((*_FOREIGN, "<frozen ")) and "torchinductor_" not in filename


def _encodable(name: str) -> str:
    """Give a file's name such that it can be written as UTF-8, which not every one can."""
    return name.encode("utf-8", "replace").decode()
