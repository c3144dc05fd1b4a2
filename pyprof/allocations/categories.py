"""What blocks are for, by evidence; without evidence, unknown.

Evidence is what the stacks of a block's allocation and free show, and what happens between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.allocations.history import BEFORE, Labels
from pyprof.allocations.stacks import FrameHint
from pyprof.arrays import MISSING

if TYPE_CHECKING:
    from pyprof.allocations.history import Blocks
    from pyprof.arrays import Int64Array, Mask

CATEGORIES = (
    "parameters",
    "gradients",
    "optimizer state",
    "activations",
    "temporaries",
    "workspace",
    "autocast copies",
)
DIRECTIONS = ("forward", "backward", "optimizer", "communication")

(_PARAMETERS, _GRADIENTS, _STATE, _ACTIVATIONS, _TEMPORARIES, _WORKSPACE,
 _AUTOCAST_COPIES) = range(len(CATEGORIES))  # fmt: skip
_FORWARD, _BACKWARD, _OPTIMIZER, _COMMUNICATION = range(len(DIRECTIONS))

BEFORE_HISTORY = "live before the history began"
_NO_EVIDENCE = "no evidence"


class Evidence(NamedTuple):
    """What is known about each block's allocation and free, one entry per block."""

    allocated: Int64Array
    """Clues of the allocation's stack; 0 without one."""
    freed: Int64Array
    """Clues of the free's stack; 0 without one."""
    freed_in: Int64Array
    """The direction in which the block was freed; MISSING if unknown, or never freed."""


def freed_in(freed: Int64Array, released: Int64Array, event_directions: Int64Array) -> Int64Array:
    """Return the direction in which each block was freed; MISSING if unknown, or never freed.

    The clues of the free decide. Without any, the free belongs to the part of the step around it,
    if the events before and after it agree. A stack without a direction is outside of the forward
    pass, whose frames it would have; hooks of the backward pass have none.
    """
    count = len(event_directions)
    rows = np.arange(count)
    known = event_directions != MISSING
    before = np.maximum.accumulate(np.where(known, rows, -1))
    after = np.minimum.accumulate(np.where(known, rows, count)[::-1])[::-1]
    padded = np.append(event_directions, MISSING)
    earlier, later = padded[before], padded[after]  # -1 and `count` are the padding
    around = np.append(np.where(earlier == later, earlier, MISSING), MISSING)
    at_free = around[np.where((released >= 0) & (released < count), released, MISSING)]
    unclear = np.where((freed == 0) | (at_free == _BACKWARD), at_free, MISSING)
    own = directions(freed)
    return np.where(own == MISSING, unclear, own)


def directions(clues: Int64Array) -> Int64Array:
    """Find what the program was doing from the clues of a stack; MISSING if they do not show it."""
    conditions = [
        (clues & (FrameHint.BACKWARD | FrameHint.ENGINE_THREAD)) != 0,
        (clues & FrameHint.OPTIMIZER) != 0,
        (clues & FrameHint.FORWARD) != 0,
        (clues & FrameHint.COMMUNICATION) != 0,
    ]
    return np.select(conditions, [_BACKWARD, _OPTIMIZER, _FORWARD, _COMMUNICATION], MISSING)


def categorise(
    blocks: Blocks, evidence: Evidence, direction: Int64Array, events: int
) -> tuple[Labels, Labels]:
    """Return the category of each block, and its evidence."""
    rules = _rules(blocks, evidence, direction, blocks.released < events)
    categories, texts, masks = zip(*rules, strict=True)
    which = np.select(masks, range(len(rules)), len(rules)) if len(blocks) else np.zeros(0, int)
    category = np.array([*categories, MISSING], np.int64)[which]
    why = Labels(np.asarray(which, np.int64), (*texts, _NO_EVIDENCE))
    return Labels(category, CATEGORIES), why


def _rules(
    blocks: Blocks, evidence: Evidence, direction: Int64Array, released: Mask
) -> list[tuple[int, str, Mask]]:
    """List categories, the evidence for them, and where it is; for a block, the first decides."""

    def by(clue: FrameHint) -> Mask:
        return np.asarray((evidence.allocated & clue) != 0)

    def freed_by(clue: FrameHint) -> Mask:
        return np.asarray((evidence.freed & clue) != 0)

    def freed_in(direction: int) -> Mask:
        return np.asarray(evidence.freed_in == direction)

    forward, backward, optimizer = (direction == code for code in (_FORWARD, _BACKWARD, _OPTIMIZER))
    before = blocks.allocated == BEFORE
    in_forward, in_backward, in_optimizer = (
        _allocated_meanwhile(blocks, part) for part in (forward, backward, optimizer)
    )
    within_update = ~in_forward & ~in_backward
    kept = ~backward & ~optimizer & ~in_optimizer
    within_step = ~in_backward & ~in_optimizer
    made = by(FrameHint.MODULE_MADE) & ~forward & ~backward & ~optimizer
    weights = blocks.bytes[(before | made) & (blocks.bytes > 0)]
    copied = by(FrameHint.AUTOCAST_COPY)
    freed_elsewhere = released & ((evidence.freed != 0) | (evidence.freed_in != MISSING))
    return [
        (_WORKSPACE, "allocated for a library's workspace", by(FrameHint.WORKSPACE)),
        (_STATE, "allocated where the optimizer sets up its state", by(FrameHint.OPTIMIZER_STATE)),
        (_AUTOCAST_COPIES, "copied by autocast, kept until its end",
         copied & freed_by(FrameHint.AUTOCAST_END)),
        (_AUTOCAST_COPIES, "inferred: copied by autocast, half as large as a parameter",
         copied & np.isin(2 * blocks.bytes, weights) & ~freed_in(_FORWARD)),
        (_GRADIENTS, "allocated by AccumulateGrad or for DDP's buckets", by(FrameHint.ACCUMULATES)),
        (_GRADIENTS, "allocated in the backward pass, freed by zero_grad",
         backward & freed_by(FrameHint.ZERO_GRAD)),
        (_GRADIENTS, f"{BEFORE_HISTORY}, freed by zero_grad",
         before & freed_by(FrameHint.ZERO_GRAD)),
        (_TEMPORARIES, "allocated and freed in the optimizer's step",
         optimizer & within_update & (freed_by(FrameHint.OPTIMIZER) | released)),
        (_STATE, "inferred: allocated in the optimizer's step, outlives it",
         optimizer & ~within_update),
        (_STATE, "inferred: allocated in the optimizer's step, still live at the end", optimizer),
        (_GRADIENTS, "inferred: allocated in the backward pass, outlives it",
         backward & (in_forward | in_optimizer)),
        (_TEMPORARIES, "allocated and freed in the backward pass", backward & freed_in(_BACKWARD)),
        (_GRADIENTS, "inferred: allocated in the backward pass, freed after it",
         backward & freed_elsewhere),
        (_PARAMETERS, "allocated where a module is built, moved or loaded", made),
        (_ACTIVATIONS, f"{BEFORE_HISTORY}, freed by the backward pass",
         before & kept & freed_by(FrameHint.BACKWARD)),
        (_ACTIVATIONS, "allocated outside of the backward pass, freed by it",
         kept & freed_by(FrameHint.BACKWARD)),
        (_ACTIVATIONS, "inferred: freed by a thread without Python, as in backward passes",
         kept & freed_by(FrameHint.ENGINE_THREAD)),
        (_ACTIVATIONS, "inferred: allocated in the forward pass, live in the backward pass",
         forward & in_backward & ~in_optimizer),
        (_TEMPORARIES, "allocated and freed in the forward pass",
         forward & within_step & freed_in(_FORWARD)),
        (_ACTIVATIONS, "inferred: allocated in the forward pass, freed after it",
         forward & within_step & freed_elsewhere),
        (_ACTIVATIONS, "inferred: allocated in the forward pass, still live at the end",
         forward & within_step & ~released),
        (MISSING, "allocated in the forward pass; where it was freed is unknown",
         forward & within_step & released),
        (MISSING, "allocated in the backward pass; where it was freed is unknown",
         backward & released),
        (MISSING, BEFORE_HISTORY, before),
    ]  # fmt: skip


def _allocated_meanwhile(blocks: Blocks, some: Mask) -> Mask:
    """Mark the blocks during whose life some of the blocks were allocated."""
    events = np.sort(blocks.allocated[some])
    events = events[events >= 0]
    after = np.searchsorted(events, blocks.allocated, "right")
    return np.asarray(np.searchsorted(events, blocks.released, "left") > after)
