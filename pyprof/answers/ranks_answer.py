"""The answer of `pyprof ranks`: its tables, for `--json` and for `--csv`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyprof import sanitize
from pyprof.analysis.ranks.match import UnmatchedCount
from pyprof.analysis.ranks.parallelism import AxisUse
from pyprof.analysis.ranks.stragglers import LayerSpread, StepCost, StragglerCost
from pyprof.analysis.ranks.tables import RankTime
from pyprof.answers import answer
from pyprof.answers.base import Answer, table_columns
from pyprof.answers.memory_answer import RankMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.analysis.ranks.clocks import Clock
    from pyprof.analysis.ranks.findings import RankComparison


@dataclass(frozen=True, slots=True)
class RankUse(RankTime):
    """One GPU of a rank."""

    clock: int | None
    """Equal for ranks of one clock; null if the rank shares no collectives with others. So are
    the other fields of the clock."""
    clock_against_rank: int | None
    """The rank to whose clock its times are converted; null if `clock` is."""
    clock_offset_ns: int | None
    """How far its clock is ahead of the reference; null if `clock` is."""
    clock_drift: float | None
    """How fast its clock gains on the reference, ns per ns; null if `clock` is."""
    clock_residual_ns: int | None
    """Uncertainty of its clock: smaller differences mean nothing; null if `clock` is."""
    clock_collectives: int | None
    """Number of collectives by which its clock was aligned; null if `clock` is."""
    clock_sure: bool | None
    """Whether all ranks leave these collectives at once; null if `clock` is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateCost:
    """The collectives of one kind in one process group to which a rank came last."""

    rank: int
    """The rank."""
    group: str
    """The process group."""
    members: str
    """The ranks of the group, separated by blanks."""
    kind: str | None
    """Kind of collective, such as all_reduce; null if unknown."""
    algorithm: str | None
    """Algorithm, RING or TREE; null if the kernel's name does not show it."""
    bytes: int | None
    """Algorithm bytes of a rank; null if not recorded."""
    mixed: bool
    """Whether sizes differ; `bytes` is then their mean."""
    last: int
    """Number of these collectives."""
    cost_ns: int
    """Time that all other ranks together waited in them."""


@dataclass(frozen=True, slots=True)
class TogetherCost:
    """Ranks that came last together: within the uncertainty of their clocks."""

    ranks: str
    """The ranks, separated by blanks."""
    cost_ns: int
    """Time that all other ranks together waited for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpeed:
    """The collectives of one kind, algorithm and size in a process group."""

    kind: str | None
    """Kind of collective, such as all_reduce; null if unknown."""
    algorithm: str | None
    """Algorithm, RING or TREE; null if the kernel's name does not show it."""
    bytes: int | None
    """Algorithm bytes of a rank; null if not recorded."""
    mixed: bool
    """Whether sizes differ; `bytes` is then their mean."""
    ranks: int | None
    """Number of ranks in the group; null if unknown."""
    calls: int
    """Number of these collectives."""
    wait_ns: float
    """Mean time that a rank waits for the last one."""
    transfer_ns: float | None
    """Median transfer time; null if it is below the uncertainty of the clocks, or if a rank of the
    group has no capture."""
    transfer_total_ns: int | None
    """Total transfer time; null if `transfer_ns` is."""
    algorithm_bytes_per_s: float | None
    """Algorithm bandwidth; null if `bytes` or `transfer_ns` is."""
    bus_bytes_per_s: float | None
    """Bus bandwidth, with the factors of nccl-tests; null if bytes, transfer, kind or the number
    of ranks are."""
    group: str
    """The process group."""
    named: bool
    """Whether the captures name the group; else it is inferred."""
    members: str
    """The ranks of the group, separated by blanks."""
    times_like_groups: float | None
    """Transfer by the median of like groups; null if it is not slow, or there are none."""


@answer("ranks")
@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks(Answer):
    """Who waits for whom, and which links are slow. docs/ranks.md explains the tables."""

    ranks: tuple[RankUse, ...]
    """Each GPU of each rank."""
    stragglers: tuple[StragglerCost, ...]
    """Ranks by the time that others waited for them, the most first."""
    late: tuple[LateCost, ...]
    """Kinds of collectives to which ranks came last."""
    together: tuple[TogetherCost, ...]
    """Sets of ranks that came last together and for which others waited most."""
    steps: tuple[StepCost, ...]
    """What the ranks that came last cost the others in each step."""
    groups: tuple[GroupSpeed, ...]
    """Speed of process groups by kind, algorithm and size of their collectives."""
    parallelism: tuple[AxisUse, ...]
    """Process groups by purpose."""
    layers: tuple[LayerSpread, ...]
    """Time of layers across ranks, the most uneven first."""
    unmatched: tuple[UnmatchedCount, ...]
    """Number of collectives that only one rank has, by rank, group and reason."""
    waited_for_several_ns: int
    """Total time of waiting for several ranks that came last together."""
    left_before_the_last_came: int
    """Number of collectives that a rank left before the last rank came; they are left out."""
    left_out: tuple[str, ...]
    """Captures that could not be read."""
    missing_ranks: tuple[int, ...]
    """Ranks without a capture, inferred from the groups and numbers of the others."""
    waiting_for_missing_ranks: tuple[int, ...]
    """Ranks that may come last because they waited for one without a capture."""
    memory: tuple[RankMemory, ...]
    """Memory peak of each device whose memory was recorded, the highest first."""


def ranks(job: RankComparison, memory: tuple[RankMemory, ...] = ()) -> Ranks:
    """Build the answer."""
    slow = {id(one.speed): one.times for one in job.slow}
    return Ranks(
        ranks=tuple(_rank_use(one, job.clocks.get(one.rank)) for one in job.ranks),
        stragglers=tuple(job.stragglers),
        late=tuple(
            LateCost(
                rank=one.rank,
                group=one.group.name,
                members=_listed(one.group.ranks.tolist()),
                **asdict(one.key),
                last=one.last,
                cost_ns=one.cost_ns,
            )
            for one in job.late
        ),
        together=tuple(TogetherCost(_listed(one.ranks), one.cost_ns) for one in job.together),
        steps=tuple(job.step_waits),
        groups=tuple(
            GroupSpeed(
                **asdict(speed.key),
                ranks=speed.ranks,
                calls=speed.calls,
                wait_ns=speed.wait_ns,
                transfer_ns=speed.transfer_ns,
                transfer_total_ns=speed.total_ns,
                algorithm_bytes_per_s=speed.algorithm_rate,
                bus_bytes_per_s=speed.bus_rate,
                group=speed.groups[0].name,
                named=speed.groups[0].named,
                members=_listed(speed.groups[0].ranks.tolist()),
                times_like_groups=slow.get(id(speed)),
            )
            for speed in job.group_speeds
        ),
        parallelism=tuple(job.axes),
        layers=tuple(job.layers),
        unmatched=job.unmatched,
        waited_for_several_ns=job.unclear_ns,
        left_before_the_last_came=job.impossible,
        left_out=job.missing,
        missing_ranks=job.absent,
        waiting_for_missing_ranks=job.waiting_for_absent,
        memory=memory,
    )


_OF_CLOCK = {
    "clock": "number",
    "clock_against_rank": "against",
    "clock_offset_ns": "offset_ns",
    "clock_drift": "drift",
    "clock_residual_ns": "residual_ns",
    "clock_collectives": "collectives",
    "clock_sure": "sure",
}
"""The fields of a rank's clock, by their names in the answer."""


def _rank_use(one: RankTime, clock: Clock | None) -> RankUse:
    of_clock: dict[str, Any] = {
        name: None if clock is None else getattr(clock, field) for name, field in _OF_CLOCK.items()
    }
    return RankUse(**asdict(one), **of_clock)


def _listed(ranks: Iterable[int]) -> str:
    return " ".join(map(str, ranks))


def as_csv(given: Ranks, name: str) -> bytes:
    """Format one table as CSV: times in ns, unknown values empty; without rows, only the header."""
    columns = table_columns(Ranks)[name]
    rows = ([getattr(row, column) for column in columns] for row in getattr(given, name))
    return sanitize.csv_text([columns, *rows]).encode()
