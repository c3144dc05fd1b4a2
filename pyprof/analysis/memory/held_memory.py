"""What is held at the peak: blocks, and groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMemory:
    """Blocks that have something in common."""

    name: str | None
    """What: a category, layer, line, op, direction or size; null if it is unknown."""
    bytes: int
    """What they hold at the peak."""
    block_count: int
    """How many they are."""
    allocated_bytes: int
    """What was allocated under this name in the whole recording."""
    net_bytes: int | None
    """The part that was not freed under this name; null if frees are unknown."""
    byte_ns: float | None
    """Bytes times ns held, of the whole recording; null if no times are known."""


@dataclass(frozen=True, slots=True)
class HeldBlock:
    """A block that is live at the peak."""

    bytes: int
    """As requested by the program."""
    category: str | None
    """What it is for; null if unknown."""
    evidence: str | None
    """The evidence for the category, with `inferred:` if it is only when the memory lived; null if
    unknown.
    """
    layer: str | None
    """The module, or range of the user's; null if none was recorded."""
    line: str | None
    """The user's line that allocated it; null if no stack was recorded."""
    op: str | None
    """The op that allocated it; null if unknown."""
    direction: str | None
    """forward, backward, optimizer or communication; null if unknown."""
    age_ns: int | None
    """How long before the peak it was allocated; null: before the recording."""


@dataclass(frozen=True, slots=True)
class HeldStack:
    """Blocks that were allocated by one call stack."""

    frames: tuple[str, ...]
    """The outermost first; the op last, where it is known. Empty: no stack was recorded."""
    bytes: int
    """What they hold."""
    block_count: int
    """How many they are."""


class Moment(NamedTuple):
    """A chosen moment: the state after the last event until then, or after an event."""

    time_ns: float | None
    """Since the first event; None if an event is chosen."""
    event_id: int = -1
    """Number of the event, from 0; -1: before the first."""
