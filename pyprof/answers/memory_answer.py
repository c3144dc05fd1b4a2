"""What filled the memory (`pyprof memory --json`), and what changed (`pyprof diff`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.answers import answer
from pyprof.answers.base import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMemory:
    """Blocks that have something in common."""

    name: str | None
    """What: a category, layer, line, op, direction or size; null if it is unknown."""
    bytes: int
    """What they hold at the peak."""
    block_count: int
    """Number of blocks."""
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
    """Number of blocks."""


@dataclass(frozen=True, slots=True)
class TimedMemory:
    """Memory and time of an op, a line or a layer."""

    name: str | None
    """null if it is unknown."""
    bytes: int
    """What it holds at the peak."""
    allocated_bytes: int
    """What it allocated in the whole recording."""
    byte_ns: float | None
    """Bytes times ns held; null if no times are known."""
    time_ns: int
    """Its time in the trace, on the GPU or, without one, on the CPU."""
    rows: int
    """Its kernels and copies in the trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleChange:
    """Something that would lower the peak."""

    change: str
    """What to change."""
    peak_bytes: int
    """The peak then; the middle of the interval where only that is known."""
    saved_bytes: int
    """How much lower that is; below 0: how much higher."""
    assumes: str
    """What is taken for granted."""
    low_bytes: int | None = None
    """The peak then, at least; null if it follows without an interval."""
    high_bytes: int | None = None
    """The peak then, at most; null if it follows without an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointedLayer:
    """What checkpointing a layer would free, and cost."""

    layer: str
    """Its path; layers inside it count. `h.*` stands for all blocks of a list."""
    block_count: int
    """How many are checkpointed, each by itself: 1, or all blocks of a list."""
    held_bytes: int
    """Activations that it holds at the peak, except the last one that it made in each step."""
    peak_bytes: int
    """The peak then."""
    saved_bytes: int
    """How much lower that is."""
    recomputed_flops: float | None
    """FLOPs of its forward pass in a step, as far as known; null if none are known."""
    recomputed_ns: float | None
    """Their time; null without a trace of the same run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """A request that could not be met."""

    event_id: int
    """Number of the event, from 0."""
    time_ns: int | None
    """Since the first event; null if no times are known."""
    asked_bytes: int
    """As requested by the program."""
    device_free_bytes: int | None
    """Free memory of the device itself; null if not recorded."""
    allocated_bytes: int
    """What the program held."""
    reserved_bytes: int | None
    """Memory that the allocator had reserved on the device; null if not recorded."""
    free_bytes: int | None
    """The unused part of it; null if the file has no segments."""
    largest_free_bytes: int | None
    """The largest piece of the unused part; null if that is."""
    line: str | None
    """The user's line that asked; null if no stack was recorded."""


@dataclass(frozen=True, slots=True)
class LeakingLine:
    """A line that holds more and more at the ends of steps."""

    line: str | None
    """`file:number`; null for blocks without a known line."""
    bytes: int
    """From the first compared end of a step to the last."""
    bytes_per_step: float
    """Slope of a straight line fitted to what it holds at the ends of steps."""
    block_count: int
    """How many more blocks it holds."""


@dataclass(frozen=True, slots=True)
class StepGrowth:
    """What is held at the ends of steps."""

    marked_by: str
    """What marks the steps."""
    held_bytes: tuple[int, ...]
    """At the end of each step."""
    leaks: tuple[LeakingLine, ...]
    """Lines that hold more and more after the first step, the largest first."""


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """What is held at a moment, the most of an interval."""

    event_id: int
    """Number of the event after which that was, from 0."""
    time_ns: int | None
    """Since the first event; null if no times are known."""
    bytes: int
    """Bytes of all categories."""
    reserved_bytes: int | None
    """Memory that the allocator had reserved on the device; null if unknown."""
    category_bytes: tuple[int, ...]
    """By category, in the order of `categories`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAt:
    """What was held at a chosen moment. Its fields for the peak are for this moment."""

    event_id: int
    """Number of the event after which that is, from 0; -1: before the first."""
    time_ns: int | None
    """Time of that event since the first one; null before it, or where no times are known."""
    bytes: int
    """What the program held."""
    active_bytes: int
    """The same with blocks that were freed but still waited for a stream."""
    reserved_bytes: int | None
    """Memory that the allocator had reserved on the device; null if unknown."""
    by: Mapping[str, tuple[HeldMemory, ...]]
    """What made it up, by category, evidence, layer, line, op, direction and size."""
    largest: tuple[HeldBlock, ...]
    """The largest live blocks, at most 100."""
    stacks: tuple[HeldStack, ...]
    """By call stack, the largest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """The memory of one device in one recording."""

    device: str
    """As torch names it."""
    rank: int | None
    """Rank of the process; null if unknown."""
    event_count: int
    """How many were recorded."""
    began_ns: int | None
    """When the first event was, on the clock of the file; null if no times are known."""
    span_ns: int | None
    """From the first event to the last; null if no times are known."""
    start_bytes: int
    """What was held before the first event."""
    start_block_count: int
    """Number of blocks."""
    peak_bytes: int
    """The most that was held at a time."""
    peak_event_id: int
    """Number of the event after which it was, from 0; -1: before the first."""
    peak_time_ns: int | None
    """Since the first event; null before it, or where no times are known."""
    peak_active_bytes: int
    """At the peak, with blocks that were freed but still waited for a stream."""
    peak_reserved_bytes: int | None
    """Memory that the allocator had reserved on the device at the peak; null if unknown."""
    peak_free_bytes: int | None
    """The unused part of it, fragments and cache; null if the file has no segments."""
    peak_rounding_bytes: int | None
    """The part of it that blocks take beyond their requested size; null without segments."""
    peak_free_piece_count: int | None
    """Number of unused pieces; null without segments."""
    peak_largest_free_bytes: int | None
    """The largest unused piece; null without segments."""
    max_active_bytes: int
    """The most that was held at a time, with freed blocks that still waited for a stream."""
    max_active_event_id: int
    """Number of the event after which that was, from 0; -1: before the first."""
    max_active_time_ns: int | None
    """Since the first event; null before it, or where no times are known."""
    max_reserved_bytes: int | None
    """The most memory that the allocator had reserved on the device; null if unknown."""
    max_reserved_event_id: int | None
    """Number of the event after which that was, from 0; -1: before the first; null if unknown."""
    max_reserved_time_ns: int | None
    """Since the first event; null before it, or where no times are known."""
    end_bytes: int
    """What was held after the last event."""
    end_allocated_bytes: int | None
    """The same as the allocator counts it, with sizes rounded up; null if not recorded."""
    end_reserved_bytes: int | None
    """Memory that the allocator had reserved on the device at the end; null if unknown."""
    by: Mapping[str, tuple[HeldMemory, ...]]
    """What made up the peak, by category, evidence, layer, line, op, direction and size."""
    largest: tuple[HeldBlock, ...]
    """The largest live blocks at the peak, at most 100."""
    stacks: tuple[HeldStack, ...]
    """What made up the peak by call stack, the largest first."""
    at: HeldAt | None
    """What was held at a chosen moment; null unless one is chosen."""
    growth: StepGrowth | None
    """From step to step; null if no steps are marked, or fewer than four."""
    out_of_memory: tuple[OutOfMemory, ...]
    """The last ten."""
    changes: tuple[PossibleChange, ...]
    """What would lower the peak, the largest effect first."""
    checkpoints: tuple[CheckpointedLayer, ...]
    """Layers that hold activations at the peak, if they were checkpointed; most saved first."""
    beside_time: Mapping[str, tuple[TimedMemory, ...]] | None
    """By op, line and layer; null without a trace of the same run."""
    categories: tuple[str, ...]
    """Categories of `timeline`; the last is `unknown`."""
    timeline: tuple[MemoryPoint, ...]
    """What was held over time, at most 1,000 points."""
    notes: tuple[str, ...]
    """What the recording lacks."""


@answer("memory")
@dataclass(frozen=True, slots=True, repr=False)
class Memory(Answer):
    """What filled the memory: peaks and their contents, growth, and out-of-memory errors."""

    devices: tuple[DeviceMemory, ...]
    """Each device of each file, the one with the highest peak first."""


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory peak of a device."""

    rank: int | None
    """The rank; null if unknown."""
    device: str
    """Name of the device in torch, such as `cuda:0`."""
    peak_bytes: int
    """Most memory allocated at a time."""
    peak_reserved_bytes: int | None
    """Memory that the allocator had reserved on the device at the peak; null if unknown."""
    end_bytes: int
    """Memory allocated at the end."""


def rank_memory(device: DeviceMemory) -> RankMemory:
    """Return the peak of a device."""
    return RankMemory(
        device.rank, device.device, device.peak_bytes, device.peak_reserved_bytes, device.end_bytes
    )


@dataclass(frozen=True, slots=True)
class MemoryMeasure:
    """A level of memory in A and in B."""

    a_bytes: float | None
    """Its value in A; null if A does not record it."""
    b_bytes: float | None
    """Its value in B; null if B does not record it."""
    change_bytes: float | None
    """B minus A; null if either is null."""
    change_share: float | None
    """The change relative to A; null if `change_bytes` is null or A is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldChange:
    """What something holds at the peak of each."""

    name: str | None
    """null if it is unknown."""
    a_bytes: int
    """At the peak of A."""
    b_bytes: int
    """At the peak of B."""
    a_block_count: int
    """Number of blocks at A's peak."""
    b_block_count: int
    """Number of blocks at B's peak."""
    change_bytes: int
    """How much more B holds."""


@dataclass(frozen=True, slots=True)
class DeviceMemoryChange:
    """A device in both snapshots."""

    a_device: str
    """Its name in A, such as `cuda:0`."""
    b_device: str
    """Its name in B, such as `cuda:0`."""
    metrics: Mapping[str, MemoryMeasure]
    """The levels: peak, reserved (at the peak), start and end."""
    by: Mapping[str, tuple[HeldChange, ...]]
    """What holds more or less at the peaks, by category, layer, line, op and direction; the largest
    change first, without what holds the same."""


@answer("memory_diff")
@dataclass(frozen=True, slots=True, repr=False)
class MemoryDiff(Answer):
    """Memory snapshots A and B compared."""

    devices: tuple[DeviceMemoryChange, ...]
    """Devices of both, the highest peak of A first."""
    only_a: tuple[str, ...]
    """Devices that are not in B."""
    only_b: tuple[str, ...]
    """Devices that are not in A."""
    failed: tuple[str, ...]
    """Conditions of --fail-if that are exceeded or cannot be checked, each with the reason."""
