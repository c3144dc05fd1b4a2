"""`pyprof ranks --json`: all of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyprof.analysis.ranks.findings import RankTime
from pyprof.analysis.ranks.match import UnmatchedCount
from pyprof.analysis.ranks.output_tables import TABLES
from pyprof.analysis.ranks.parallelism import AxisUse
from pyprof.analysis.ranks.stragglers import StepCost, StragglerCost
from pyprof.answers import answer
from pyprof.answers.base import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.analysis.memory.peaks import DeviceMemory
    from pyprof.analysis.ranks.findings import RankComparison


@dataclass(frozen=True, slots=True)
class RankUse(RankTime):
    """One GPU of a rank."""

    clock: int | None
    """Equal for ranks of one clock; null if the rank shares no collectives with others. So are
    the other fields of the clock."""
    clock_against_rank: int | None
    """The rank whose clock it is converted to; null as `clock`."""
    clock_offset_ns: int | None
    """What its clock shows more; null as `clock`."""
    clock_drift: float | None
    """What it gains, ns per ns; null as `clock`."""
    clock_residual_ns: int | None
    """Smaller differences to other ranks mean nothing; null as `clock`."""
    clock_collectives: int | None
    """Collectives that it was aligned on; null as `clock`."""
    clock_sure: bool | None
    """Whether all ranks leave these at once; null as `clock`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateCost:
    """The collectives of one sort, in one group, to which a rank came last."""

    rank: int
    """The rank."""
    group: str
    """The process group."""
    members: str
    """Its ranks, with blanks between them."""
    kind: str | None
    """all_reduce and so on; null if unknown."""
    algorithm: str | None
    """RING, TREE; null if the kernel's name does not show it."""
    bytes: int | None
    """Algorithm bytes of a rank; null if the capture does not hold them."""
    mixed: bool
    """Sizes differ; `bytes` is then their mean."""
    last: int
    """How many."""
    cost_ns: int
    """What all others together waited in them."""


@dataclass(frozen=True, slots=True)
class TogetherCost:
    """Ranks that came last within the residual of each other."""

    ranks: str
    """The ranks, with blanks between them."""
    cost_ns: int
    """What all others together waited for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpeed:
    """The collectives of one kind, algorithm and size in a process group."""

    kind: str | None
    """all_reduce and so on; null if unknown."""
    algorithm: str | None
    """RING, TREE; null if the kernel's name does not show it."""
    bytes: int | None
    """Algorithm bytes of a rank; null if the capture does not hold them."""
    mixed: bool
    """Sizes differ; `bytes` is then their mean."""
    ranks: int | None
    """Ranks in the group; null if unknown."""
    calls: int
    """How many."""
    wait_ns: float
    """Mean wait of a rank for the last to come."""
    transfer_ns: float | None
    """Median transfer; null if it is below the clocks' residual, or a member is missing."""
    transfer_total_ns: int | None
    """Transfer in all; null as `transfer_ns`."""
    algorithm_bytes_per_s: float | None
    """Algorithm bandwidth; null if bytes or transfer are."""
    bus_bytes_per_s: float | None
    """Bus bandwidth, with the factors of nccl-tests; null if bytes, transfer, kind or the number
    of ranks are."""
    group: str
    """The process group."""
    named: bool
    """The captures name it; else it is inferred."""
    members: str
    """Its ranks, with blanks between them."""
    times_like_groups: float | None
    """Transfer by the median of like groups; null if it is not slow, or there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSpread:
    """A layer's own GPU time across ranks, without communication."""

    layer: str
    """The layer."""
    mean_ns: float
    """Mean of the ranks that have it."""
    most_ns: int
    """The largest."""
    rank: int
    """Whose that is."""
    ranks: int
    """How many ranks have it."""
    imbalance: float | None
    """Largest by mean; null if no rank spent time."""


@dataclass(frozen=True, slots=True)
class RankMemory:
    """How high the memory of a device peaks."""

    rank: int | None
    """The rank; null if unknown."""
    device: str
    """As torch names it."""
    peak_bytes: int
    """The most that was held at a time."""
    peak_reserved_bytes: int | None
    """Memory that the allocator had reserved on the device then; null if unknown."""
    end_bytes: int
    """What was held at the end."""


@answer("ranks")
@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks(Answer):
    """Who waits for whom, and which links are slow. docs/ranks.md explains the tables."""

    ranks: tuple[RankUse, ...]
    """Each GPU of each rank."""
    stragglers: tuple[StragglerCost, ...]
    """Each rank, the most expensive first."""
    late: tuple[LateCost, ...]
    """Collectives to which ranks came last."""
    together: tuple[TogetherCost, ...]
    """Sets of ranks that came last together, the most expensive."""
    steps: tuple[StepCost, ...]
    """The same step by step."""
    groups: tuple[GroupSpeed, ...]
    """Process groups, by kind, algorithm and size of their collectives."""
    parallelism: tuple[AxisUse, ...]
    """Process groups by purpose."""
    layers: tuple[LayerSpread, ...]
    """Uneven layers first."""
    unmatched: tuple[UnmatchedCount, ...]
    """Collectives about which nothing is known."""
    waited_for_several_ns: int
    """Waiting for several ranks that came last together, in all."""
    left_before_the_last_came: int
    """Collectives that some rank left before the last had come; they are left out."""
    left_out: tuple[str, ...]
    """Captures that could not be read."""
    missing_ranks: tuple[int, ...]
    """Ranks without a capture, by the groups and numbers of the others."""
    waiting_for_missing_ranks: tuple[int, ...]
    """Ranks that may come last because they waited for one without a capture."""
    memory: tuple[RankMemory, ...]
    """How high memory peaks on each device whose memory was recorded, the highest first."""


_ROWS: dict[str, type] = {
    "ranks": RankUse, "stragglers": StragglerCost, "late": LateCost, "together": TogetherCost,
    "steps": StepCost, "groups": GroupSpeed, "parallelism": AxisUse, "layers": LayerSpread,
    "unmatched": UnmatchedCount,
}  # fmt: skip


def ranks(job: RankComparison, memory: Sequence[DeviceMemory] = ()) -> Ranks:
    """Make the answer of the tables that CSV has, too."""
    tables: dict[str, Any] = {
        name: tuple(
            _ROWS[name](**dict(zip(table.columns, row, strict=True))) for row in table.rows(job)
        )
        for name, table in TABLES.items()
    }
    return Ranks(
        **tables,
        waited_for_several_ns=job.unclear_ns,
        left_before_the_last_came=job.impossible,
        left_out=job.missing,
        missing_ranks=job.absent,
        waiting_for_missing_ranks=job.waiting_for_absent,
        memory=tuple(
            RankMemory(
                each.rank, each.device, each.peak_bytes, each.peak_reserved_bytes, each.end_bytes
            )
            for each in memory
        ),
    )
