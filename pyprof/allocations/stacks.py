"""From call stacks: the user's line, the op, and clues to what memory is for.

Each distinct frame is looked at once; the stacks themselves stay in columns.
"""

from __future__ import annotations

import re
from enum import IntFlag, auto
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.allocations.history import Labels, label, or_else
from pyprof.arrays import MISSING
from pyprof.parse.ranges.range_stacks import user_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.allocations.snapshot import Frame, Snapshot
    from pyprof.arrays import Int64Array


class FrameHint(IntFlag):
    """What a frame hints at."""

    PYTHON = auto()
    BACKWARD = auto()
    """The engine of autograd."""
    ACCUMULATES = auto()
    """Autograd stores the gradient of a leaf; or DDP makes the buckets in which gradients lie."""
    OPTIMIZER = auto()
    OPTIMIZER_STATE = auto()
    """An optimizer sets up what it keeps."""
    ZERO_GRAD = auto()
    WORKSPACE = auto()
    MODULE_MADE = auto()
    """A module of torch is built, moved, or loaded."""
    FORWARD = auto()
    COMMUNICATION = auto()
    AUTOCAST_COPY = auto()
    """Autocast converts a tensor; if it is a weight, the copy is kept."""
    AUTOCAST_END = auto()
    """Autocast releases the copies of weights."""
    HALF = auto()
    """Something is computed in 16 bits: autocast is on, or a kernel has such a type."""
    ENGINE_THREAD = auto()
    """No frame, in a recording of Python frames: autograd's threads run no Python."""


_PYTHON, _TORCH = r"\.py$|^<.*>$", r"(?:^|[/\\])torch[/\\]"
"""Files of Python code, written or generated, and of torch."""
_CLUES: tuple[tuple[FrameHint, str, str], ...] = (
    (FrameHint.PYTHON, r"", _PYTHON),
    (FrameHint.BACKWARD, r"autograd::(?:python::Python)?Engine::", r""),
    (FrameHint.BACKWARD, r"^(?:_engine_run_backward)$", _TORCH + r"autograd[/\\]"),
    (FrameHint.BACKWARD, r"^backward$", r"\.py$"),
    (FrameHint.BACKWARD, r"^unpack_hook$", _TORCH + r"utils[/\\]checkpoint\.py$"),
    (FrameHint.ACCUMULATES, r"\bAccumulateGrad\b|\bc10d::Reducer::initialize_bucket", r""),
    (FrameHint.OPTIMIZER, r"^(?!zero_grad)", _TORCH + r"optim[/\\]"),
    (FrameHint.OPTIMIZER, r"^step$", r"optim"),
    (FrameHint.OPTIMIZER_STATE, r"^_?init(?:ialize)?_(?:group|state)s?$", r"optim"),
    (FrameHint.ZERO_GRAD, r"^zero_grad$", r"\.py$"),
    (FrameHint.WORKSPACE, r"(?i)workspace", r""),
    (FrameHint.MODULE_MADE, r"^(?:__init__|reset_parameters)$", _TORCH + r"nn[/\\]modules[/\\]"),
    (FrameHint.MODULE_MADE, r"^(?:_apply|to|cuda|load_state_dict|_load_from_state_dict)$",
     _TORCH + r"nn[/\\]modules[/\\]module\.py$"),
    (FrameHint.MODULE_MADE, r"", _TORCH + r"nn[/\\](?:init|parameter)\.py$"),
    (FrameHint.FORWARD, r"^(?:_call_impl|_wrapped_call_impl)$",
     _TORCH + r"nn[/\\]modules[/\\]module"),
    (FrameHint.FORWARD, r"^forward$", r"\.py$"),
    (FrameHint.AUTOCAST_COPY, r"\bautocast::cached_cast\b", r""),
    (FrameHint.AUTOCAST_END, r"\bautocast::clear_cache\b", r""),
    (FrameHint.AUTOCAST_END, r"^__exit__$", _TORCH + r"amp[/\\]autocast_mode\.py$"),
    (FrameHint.HALF, r"\bautocast::|\bc10::(?:BFloat16|Half)\b", r""),
    (FrameHint.HALF, r"", _TORCH + r"amp[/\\]autocast_mode\.py$"),
    (FrameHint.COMMUNICATION, r"\bc10d::", r""),
    (FrameHint.COMMUNICATION, r"", _TORCH + r"distributed[/\\]"),
)  # fmt: skip
_PATTERNS = [(clue, re.compile(name), re.compile(file)) for clue, name, file in _CLUES]
_OPS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bTHPVariable_(\w+)",
        r"\bautograd::generated::(\w+Backward\d+)::apply",
        r"\bat::_ops::(\w+)::(?:call|redispatch)",
    )
)
"""Names of ops in C++ frames: as Python calls it; a node of the backward pass; as torch calls it.

For the last, the outermost frame of a stack counts, for the others the innermost.
"""


class Described(NamedTuple):
    """What follows from the stacks of a snapshot, one entry per stack; the last is for no stack."""

    line: Labels
    op: Labels
    clues: Int64Array
    only_python: bool
    """Whether stacks hold no frames of C++: then those of the backward pass are empty."""


def describe(snapshot: Snapshot) -> Described:
    """Describe all stacks of a snapshot."""
    frames, starts, inside = snapshot.frames, snapshot.stack_starts, snapshot.stack_frames
    lines = _label_stacks(snapshot, _line)
    called, node, dispatched = (partial(_op, form) for form in _OPS)
    ops = or_else(_label_stacks(snapshot, called), _label_stacks(snapshot, node))
    ops = or_else(ops, _label_stacks(snapshot, dispatched, outermost=True))
    clues = np.array([_clues(frame) for frame in frames], np.int64)
    of_stack = np.bitwise_or.reduceat(clues[inside], starts[:-1]) if len(inside) else clues[:0]
    only_python = bool(((clues & FrameHint.PYTHON) != 0).all())
    return Described(lines, ops, np.append(of_stack, 0), only_python)


def is_python(frame: Frame) -> bool:
    """Whether a frame is one of Python."""
    return re.search(_PYTHON, frame.file) is not None


def _line(frame: Frame) -> str | None:
    if not frame.line or not frame.file.endswith(".py"):
        return None
    return user_line((f"{frame.file}:{frame.line}",))


def _op(form: re.Pattern[str], frame: Frame) -> str | None:
    match = form.search(frame.name)
    return match[1] if match else None


def _clues(frame: Frame) -> int:
    return sum(
        {
            clue
            for clue, name, file in _PATTERNS
            if name.search(frame.name) and file.search(frame.file)
        }
    )


def _label_stacks(
    snapshot: Snapshot, say: Callable[[Frame], str | None], *, outermost: bool = False
) -> Labels:
    """Label each stack by its innermost, or outermost, frame for which `say` returns a text."""
    said = label([say(frame) for frame in snapshot.frames])
    codes = np.append(said.codes[snapshot.stack_frames], MISSING)
    count = len(snapshot.stack_frames)
    index = np.where(codes[:-1] != MISSING, np.arange(count), MISSING if outermost else count)
    if count:
        choose = np.maximum if outermost else np.minimum
        index = choose.reduceat(index, snapshot.stack_starts[:-1])
    return Labels(np.append(codes[index], MISSING), said.names)
