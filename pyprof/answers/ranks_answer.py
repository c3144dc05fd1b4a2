"""The answer of `pyprof ranks`: its tables, for `--json` and for `--csv`."""

from __future__ import annotations

from dataclasses import dataclass

from pyprof import sanitize
from pyprof.answers import answer, not_in_json
from pyprof.answers.base import Answer, table_columns
from pyprof.answers.memory_answer import RankMemory

UNEVEN = 1.1
"""What a rank spends or receives stands out above this ratio to the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankUse:
    """One GPU of a rank."""

    rank: int
    """The rank."""
    device: int
    """Number of the GPU in its process; -1 where it is unknown."""
    gpu: str | None
    """Its name; null if the capture does not name it."""
    source: str
    """The capture."""
    rows: int
    """Kernels, copies and fills."""
    span_ns: int
    """From the first start to the last end."""
    busy_ns: int
    """Time in which anything ran."""
    idle_ns: int
    """Time in which nothing ran."""
    compute_ns: int
    """Time in which kernels other than collectives ran."""
    communication_ns: int
    """Time in which collectives ran."""
    exposed_ns: int
    """Time in which collectives ran and nothing computed."""
    bubble_ns: int | None
    """Waiting for other pipeline stages while nothing computed; null: it is in no pipeline."""
    copy_ns: int
    """Time in which copies or fills ran."""
    step_ns: float | None
    """Median step after warm-up; null if no steps were found."""
    steps: int
    """Number of steps."""
    clock: int | None = None
    """Equal for ranks of one clock; null if the rank shares no collectives with others. So are
    the other fields of the clock."""
    clock_against_rank: int | None = None
    """The rank to whose clock its times are converted; null if `clock` is."""
    clock_offset_ns: int | None = None
    """How far its clock is ahead of the reference; null if `clock` is."""
    clock_drift: float | None = None
    """How fast its clock gains on the reference, ns per ns; null if `clock` is."""
    clock_residual_ns: int | None = None
    """Uncertainty of its clock: smaller differences mean nothing; null if `clock` is."""
    clock_collectives: int | None = None
    """Number of collectives by which its clock was aligned; null if `clock` is."""
    clock_sure: bool | None = None
    """Whether all ranks leave these collectives at once; null if `clock` is."""


@dataclass(frozen=True, slots=True)
class StragglerCost:
    """A rank as the others see it."""

    rank: int
    """The rank."""
    last: int
    """Collectives to which it came last."""
    of: int
    """Collectives in which it took part."""
    cost_ns: int
    """What all others together waited in those."""
    waited_ns: int
    """What it waited itself."""
    own_ns: float | None
    """Median step without exposed communication; null if no steps were found."""
    excess_ns: float | None
    """How much more of that than the median of the others; null if no steps were found, or
    there are no others."""
    cost_in_steps_ns: int | None = None
    """The part of `cost_ns` that is in steps; all of it, if no steps were found; null if `of`
    is 0."""
    cost_to_each_ns: float | None = None
    """What each other rank waited for it in a step of both captures; in all, if no steps were
    found; null if `of` is 0."""
    awaited_outside_steps: bool = False
    """Whether each other waited for it outside of steps, too, as for a checkpoint, for more than
    5 % of the time."""
    excess_hidden: bool = False
    """Whether the others arrive as late or later, which hides most of `excess_ns`."""
    role: str | None = None
    """`straggler`: the others wait for it; `stage`: other stages of its pipeline do; `unawaited`:
    the others seldom do; `unclear`: the clocks cannot tell; null if it is not in
    `slowest_ranks`."""


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


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a rank cost the others in one step."""

    step: int
    """The step, from 0."""
    rank: int
    """The rank."""
    last: int
    """Collectives to which it came last."""
    cost_ns: int
    """What all others together waited in those."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A step in which a rank held up the others for long, and not because it works longer."""

    step: int
    """The step, from 0."""
    rank: int
    """The rank; others that were late may have waited for it."""
    waited_ns: float
    """What each other rank waited in the step, for this one and others that were late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveKey:
    """What collectives have in common."""

    kind: str | None
    """Kind of collective, such as all_reduce; null if unknown."""
    algorithm: str | None
    """Algorithm, RING or TREE; null if the kernel's name does not show it."""
    bytes: int | None
    """Algorithm bytes of a rank; null if not recorded."""
    mixed: bool
    """Whether sizes differ; `bytes` is then their mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveSpeed(CollectiveKey):
    """Collectives of one kind, algorithm and size in process groups of as many ranks."""

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
    algorithm_bytes_per_s: float | None = None
    """Algorithm bandwidth; null if `bytes` or `transfer_ns` is."""
    bus_bytes_per_s: float | None = None
    """Bus bandwidth, with the factors of nccl-tests; null if bytes, transfer, kind or the number
    of ranks are."""
    groups: int = not_in_json()
    """Number of process groups."""
    captured_ranks: int = not_in_json()
    """Ranks of each whose captures hold these collectives."""
    total_bytes: int | None = not_in_json()
    """Algorithm bytes that a rank sends in all calls with known transfer; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpeed(CollectiveSpeed):
    """The collectives of one kind, algorithm and size in a process group."""

    group: str
    """The process group."""
    named: bool
    """Whether the captures name the group; else it is inferred."""
    members: str
    """The ranks of the group, separated by blanks."""
    times_like_groups: float | None = None
    """Transfer over the median of like groups; null if it is not slow, or no group is like it."""
    like_groups: int = not_in_json(default=0)
    """How many like groups a slow one is compared with."""
    usual_ns: float = not_in_json(default=0.0)
    """Median transfer of these."""
    lost_ns: float = not_in_json(default=0.0)
    """How much longer all transfers of a slow group took."""


@dataclass(frozen=True, slots=True)
class AxisUse:
    """The process groups of one purpose."""

    role: str
    """tensor, pipeline, data and so on; empty if unknown."""
    evidence: str
    """The evidence for it."""
    groups: int
    """Number of groups."""
    ranks: int
    """Ranks in each group."""
    calls: int
    """Mean calls of a rank."""
    communication_ns: float
    """Mean of a rank."""
    exposed_ns: float
    """The part of that during which nothing computed."""
    busiest: int | None
    """With expert parallelism, the rank that receives most; null if unknown."""
    imbalance: float | None
    """How many times the mean it receives; null if `busiest` is."""
    uneven: bool = False
    """Whether that is more than 1.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSpread:
    """A layer's own GPU time across ranks, without communication."""

    layer: str
    """The layer."""
    mean_ns: float
    """Mean time over the ranks that have the layer."""
    most_ns: int
    """Time on the slowest rank."""
    rank: int
    """The slowest rank."""
    ranks: int
    """Number of ranks that have the layer."""
    imbalance: float | None
    """Largest time divided by the mean; null if no rank spent time."""
    uneven: bool = False
    """Whether that is more than 1.1; not in a pipeline, whose stages may name theirs alike."""


@dataclass(frozen=True, slots=True)
class UnmatchedCount:
    """Collectives of a rank that no other rank has."""

    rank: int
    """The rank."""
    group: str
    """The process group."""
    count: int
    """Number of collectives."""
    why: str
    """The reason."""


@dataclass(frozen=True, slots=True)
class Bubble:
    """The stage of a pipeline that waits for others for the largest share of its time."""

    rank: int
    """The rank."""
    share: float
    """The waiting as a share of its time."""
    in_pipeline: bool
    """Whether a pipeline is known; a ring, as of context parallelism, also only sends."""
    busiest: int | None
    """The rank that computes longest, if that is why; null: more micro-batches shorten it."""
    longer_ns: int | None
    """How much longer that rank computes; null if `busiest` is."""


@answer("ranks")
@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Ranks(Answer):
    """Who waits for whom, and which links are slow. docs/ranks.md explains the tables."""

    ranks: tuple[RankUse, ...]
    """Each GPU of each rank."""
    stragglers: tuple[StragglerCost, ...]
    """Ranks by the time that others waited for them, the longest first."""
    late: tuple[LateCost, ...]
    """Kinds of collectives to which ranks came last."""
    together: tuple[TogetherCost, ...]
    """Sets of ranks that came last together and for which others waited most."""
    steps: tuple[StepCost, ...]
    """What the ranks that came last cost the others in each step."""
    stalls: tuple[Stall, ...] = ()
    """Steps in which a rank stalls; none if that takes less than 5 % of the time, or if a straggler
    may be the reason."""
    bubble: Bubble | None = None
    """The longest waiting for other stages; null if it takes less than 5 % of each one's time."""
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
    memory: tuple[RankMemory, ...] = ()
    """Memory peak of each device whose memory was recorded, the highest first."""
    slowest_ranks: tuple[int, ...]
    """Ranks whose own work takes longest, by more than 0.5 % of a step and in three of four steps,
    the slowest first; without steps, those that others waited for longest, unless most are."""
    slowest_are_a_host: bool = False
    """Whether these are all ranks of one of several hosts, each of which begins at device 0; false
    where each rank sees a device 0 of its own, so that hosts are unknown."""
    step_origins: tuple[str, ...]
    """How steps were found, each way once."""
    all_may_wait_for_missing: bool = not_in_json()
    """Whether each rank may wait for one without a capture."""
    slow_groups: tuple[GroupSpeed, ...] = not_in_json()
    """Groups slower than like ones, the one that loses most time first."""
    collectives: tuple[CollectiveSpeed, ...] = not_in_json()
    """Like groups together, those with most transfer and waiting first."""
    group_sizes: tuple[int, ...] = not_in_json()
    """Number of captured ranks of each process group, the largest first."""
    groups_named: bool = not_in_json()
    """Whether the captures name all process groups."""
    warnings: tuple[str, ...] = not_in_json()
    """What the captures hide or distort."""

    @property
    def rank_count(self) -> int:
        """The number of ranks with a capture."""
        return len({one.rank for one in self.ranks})

    @property
    def step_count(self) -> int:
        """The steps of the rank that has most."""
        return max((one.steps for one in self.ranks), default=0)

    @property
    def peer_count(self) -> int:
        """The others that wait for a rank; 1 if there are none."""
        return max(self.rank_count - 1, 1)

    @property
    def is_staged(self) -> bool:
        """Whether any rank is a stage of a pipeline."""
        return any(one.bubble_ns is not None for one in self.ranks)


def as_csv(given: Ranks, name: str) -> bytes:
    """Format one table as CSV: times in ns, unknown values empty; without rows, only the header."""
    columns = table_columns(Ranks)[name]
    rows = ([getattr(row, column) for column in columns] for row in getattr(given, name))
    return sanitize.csv_text([columns, *rows]).encode()
