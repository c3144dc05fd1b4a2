"""The answer of `pyprof summary`. Its JSON has only the first rows of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyprof.answers import answer, not_in_json
from pyprof.answers.base import Answer
from pyprof.answers.parts import ChosenRows, KnownCost, Statement, StepUse, Suggestion

NO_LAYER = "(outside all layers)"
"""The name in `layers` of the rows of no layer."""

MIN_COVERED = 0.8
"""Guessed steps with less of the GPU time are some part of the program, not its loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """The steps of the loop."""

    count: int
    """How many were found; 0 if none were."""
    origin: str
    """What marks them: ranges, the optimizer's steps, repetition; empty if none were found."""
    guessed: bool
    """They are only repetition of kernels: a step may be a layer."""
    warm_up_count: int
    """Leading steps that are much slower; no mean includes them unless --steps does."""
    covered_share: float | None
    """Share of the summed GPU time that is in steps; null without steps. Guessed steps with less
    than 80 % are not averaged over."""
    first: int | None
    """The first step that means are of, from 0; null without such steps."""
    last: int | None
    """The last of them; null likewise."""
    mean_ns: float | None
    """Mean time of these; null likewise."""
    median_ns: float | None
    """Median time after warm-up; null if no steps were found."""
    duration_ns: tuple[int, ...]
    """Time of every step, in order."""
    mfu: tuple[float | None, ...]
    """Model FLOPs utilization of every step; null if the peak, or the FLOPs of more than 20 % of
    its GPU time, are unknown, and where steps are guessed."""
    hfu: tuple[float | None, ...]
    """The same with recomputed work; null likewise."""
    mbu: tuple[float | None, ...]
    """Bytes of every decode step over what the memory could move; null for other steps, and where
    the peak, or the bytes of more than 20 % of its GPU time, are unknown."""
    are_chosen: bool = not_in_json(default=False)
    """Whether `first` and `last` are those that the user named."""
    phase: tuple[str, ...] = not_in_json(default=())
    """What a serving engine did in every step: prefill, decode, mixed; empty without an engine."""
    tokens: tuple[int | None, ...] = not_in_json(default=())
    """The tokens that every step worked on; None if its range does not state them."""

    @property
    def averaged_count(self) -> int | None:
        """How many steps means are of; None without such steps."""
        return None if self.first is None or self.last is None else self.last - self.first + 1

    @property
    def shown(self) -> range:
        """The chosen steps, else all."""
        if self.are_chosen and self.first is not None and self.last is not None:
            return range(self.first, self.last + 1)
        return range(self.count)

    @property
    def kind(self) -> str:
        """The origin without what differs between the steps of two processes."""
        return self.origin.partition(" ")[0]

    @property
    def described_origin(self) -> str:
        """What marks them, for people; of a guess, that it is one."""
        return describe_origin(self.origin, self.covered_share or 0.0, guessed=self.guessed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """What one GPU, as one process used it, spent its time on."""

    rank: int | None
    """Rank of the process; null if the capture names none."""
    device: int | None
    """Number of the GPU; null if the capture has none."""
    processor: str
    """GPU, NPU or the like; CPU in a capture without one."""
    span_ns: int
    """From the first start to the last end, without pauses of the profiler."""
    busy_ns: int
    """When anything ran; `busy_ns` + `idle_ns` = `span_ns`."""
    idle_ns: int
    """When nothing ran."""
    compute_ns: int
    """When kernels ran, but those of collectives."""
    communication_ns: int
    """When collectives ran."""
    exposed_communication_ns: int
    """When collectives ran and nothing computed."""
    copy_ns: int
    """When copies or fills ran."""
    exposed_copy_ns: int
    """When copies ran and nothing else."""
    overlap_ns: int
    """When at least two of computing, communication and copies ran at once."""
    idle_by_cause_ns: Mapping[str, int]
    """Idle time by cause; adds up to `idle_ns`. docs/summary.md explains the causes."""
    windows: int
    """Parts of the run that were recorded."""
    paused_ns: int
    """Between them, while the profiler was paused."""
    pid: int = not_in_json(default=-1)
    """Process id of the process that used the GPU."""

    @property
    def on_cpu(self) -> bool:
        """Whether this is no GPU: ops that a capture without one timed on the CPU."""
        return self.processor == "CPU"


@dataclass(frozen=True, slots=True)
class PartTime:
    """A part of the step: forward, backward and so on, or a phase of serving."""

    part: str | None
    """Its name; null if unknown."""
    time_ns: int
    """Summed GPU time; of all parts, that of all rows."""
    mfu: float | None
    """Model FLOPs over what the peak allows in that time; null if the peak, or the FLOPs of more
    than 20 % of the time, are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPhase:
    """The steps of one phase of a serving engine."""

    phase: str
    """prefill, decode or mixed."""
    steps: int
    """Number of steps."""
    time_ns: int
    """Their time."""
    tokens: int | None
    """Tokens that they worked on; null if not every step's range states it."""
    tokens_per_s: float | None
    """Tokens over time; null as `tokens`."""
    padding_share: float | None
    """Share of the computed tokens that fill up graphs; null if steps do not state both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakUse:
    """How near the model's work came to the peaks."""

    mfu: float | None
    """Model FLOPs utilization; null: `why`."""
    hfu: float | None
    """Hardware FLOPs utilization, which counts recomputed work; null: `why`."""
    why: str
    """Why MFU and HFU are unknown; empty if they are not."""
    model_flops: int
    """FLOPs as far as they are known, without recomputed work."""
    hardware_flops: int
    """FLOPs as far as they are known."""
    peak_flops_per_s: float | None
    """The peak of one GPU; null if it is unknown."""
    peak_flops_label: str
    """Which peak."""
    mbu: float | None
    """Bytes of decode steps over what the memory could move; null without decode steps, or where
    the peak or the bytes of more than 20 % of their time are unknown."""
    peak_bytes_per_s: float | None
    """The peak bandwidth of one GPU; null if it is unknown, or nothing is decoded."""
    peak_bytes_label: str = not_in_json(default="")
    """Which bandwidth."""
    known_share: float = not_in_json(default=1.0)
    """Share of the compute time whose FLOPs are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """An op in one direction, called on one line."""

    op: str | None
    """Its name; null if nothing names it, then `kernel` does."""
    dir: str | None
    """fprop, bprop, optim, comm, copy; null if unknown."""
    line: str | None
    """Source line; null if no stack was recorded."""
    kernel: str
    """The kernel with most of the time."""
    calls: int
    """Op calls."""
    kernels: int
    """Kernels, copies and fills."""
    time_ns: int
    """Summed time on the GPU."""
    step_ns: float | None
    """Mean in a step; null if none are averaged over."""
    share: float
    """Share of the summed GPU time."""
    flops_per_s: float | None
    """Over the rows of known FLOPs; null: `why`."""
    bytes_per_s: float | None
    """Over the rows of known bytes; null: `why`."""
    efficiency: float | None
    """Share of the roofline, over the rows of known cost and peak; null: `why`, or no known
    peak."""
    bound: str | None
    """compute, memory or latency, of most of the time; null where efficiency is unknown."""
    tc: str | None
    """Tensor Cores, of most of the time: 1 used, 0 not, ? unknown; null: nothing for them to do."""
    why: str | None
    """Why the cost of some rows is unknown, for most of their time; null if all are known."""
    above_peak: str | None
    """What explains that it is far above the roofline; null: it is not."""
    range: str | None
    """The user's innermost range around it, with N for numbers in its name; null if its op or line
    is known, or there is no range."""
    row_ids: tuple[int, ...]
    """`idx` of the rows of `prof` that take most of its time, at most 3; empty for short ops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """A module or another layer."""

    path: tuple[str, ...]
    """Names from the outermost to its own; empty for the root."""
    time_ns: int
    """Summed GPU time of all inside."""
    own_ns: int
    """Without the layers inside."""
    step_ns: float | None
    """Mean of `time_ns` in a step; null if none are averaged over."""
    own_step_ns: float | None
    """Mean of `own_ns` in a step; null if none are averaged over."""
    rows: int
    """Kernels, copies and fills inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTotal:
    """A source line: what it launched itself."""

    line: str | None
    """`file:number`; null for rows of no known line."""
    calls: int
    """Op calls."""
    time_ns: int
    """Summed GPU time."""
    step_ns: float | None
    """Mean in a step; null if none are averaged over."""
    share: float
    """Share of the summed GPU time."""
    ops: tuple[str, ...]
    """Ops on the line, the most time first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOp:
    """What the host spent in an op."""

    op: str | None
    """Its name; null for none."""
    calls: int
    """How often it was called."""
    self_ns: int
    """Time in it, without ops called inside."""
    total_ns: int
    """Time in it, with them."""
    line: str | None
    """Source line of most of its own time; null if no stack was recorded around that."""
    launches: int = not_in_json(default=0)
    """Kernels, copies and fills that its calls launched, whatever op they count for."""
    line_count: int = not_in_json(default=1)
    """Number of lines that called it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOp:
    """What counters measured of an op's kernels."""

    op: str | None
    """Its name; null if it is not known."""
    dir: str | None
    """Part of the step; null if not known."""
    kernel: str | None
    """The kernel, where the op is not known; else null."""
    kernel_count: int
    """How many kernels were measured."""
    time_ns: int
    """Their time."""
    dram_bytes: float | None
    """DRAM traffic; null if it was not measured. So are those that follow."""
    dram_bytes_per_s: float | None
    """The same, over the time of the kernels that have it; null likewise."""
    excess: float | None
    """Traffic over the least that the op needs; null likewise."""
    l2_hit_share: float | None
    """Hit rate of the L2 cache, a mean over time, as those that follow; null likewise."""
    tensor_share: float | None
    """Activity of Tensor Cores; null likewise."""
    theoretical_occupancy_share: float | None
    """Occupancy that the launch allows; null likewise."""
    occupancy_share: float | None
    """Occupancy that was achieved; null likewise."""
    clock_hz: float | None
    """SM clock; null likewise."""
    energy_j: float | None
    """Energy while they ran; null likewise."""
    means: Mapping[str, float | None] = not_in_json(default_factory=dict)
    """The means by the column of prof, in its unit: percent, MHz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePower:
    """What a device drew over the time in which it was sampled."""

    rank: int | None
    """Rank in a distributed job; null if there is none."""
    device: int
    """Number of the device."""
    energy_j: float
    """Energy."""
    mean_w: float
    """Power on average."""
    most_w: float
    """Highest power."""
    sampled_s: float = not_in_json(default=0.0)
    """The time in which it was sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What counters measured, of all kernels that have them."""

    sources_ns: Mapping[str, int]
    """GPU time of the kernels, by what measured them."""
    kernel_count: int
    """How many kernels."""
    dram_bytes: float | None
    """DRAM traffic; null if it was not measured. So are the others."""
    energy_j: float | None
    """Energy while they ran, as far as it is known; null likewise."""
    energy_known_share: float
    """Share of all kernels' GPU time for which the energy is known."""
    energy_step_j: float | None
    """The same of the mean step; null without steps, too."""
    energy_token_j: float | None
    """The same for each token; null if the number of tokens is unknown."""
    excess: float | None
    """Traffic over the least that the ops need, where both are known; else null."""
    tensor_share: float | None
    """How active Tensor Cores were, a mean over time; null likewise."""
    clock_hz: float | None
    """SM clock, a mean over time; null likewise."""
    throttled: str | None
    """That the clock was below the peak's, and what limited it; null if not, or unknown."""
    contradictions: tuple[str, ...]
    """Kernels whose counters contradict their names about Tensor Cores."""
    power: tuple[DevicePower, ...]
    """Power of the devices whose power was sampled."""
    ops: tuple[MeasuredOp, ...]
    """The ops that take most time, as many as --top; without an op, by kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPeak:
    """The peak of the device that peaks highest; `pyprof memory` shows more."""

    device: str
    """As torch names it."""
    rank: int | None
    """Rank of the process; null if unknown."""
    peak_bytes: int
    """The most that was held at a time."""
    peak_time_ns: int | None
    """Since the first event; null before it, or where no times are known."""
    peak_reserved_bytes: int | None
    """Memory that the allocator had reserved on the device then; null if unknown."""
    categories_bytes: Mapping[str, int]
    """What the peak was for; what is unknown is under the empty name."""
    lines_bytes: Mapping[str, int]
    """Lines that hold most of it, as many as --top; under the empty name, what no line is known
    of."""
    growing_line: str | None
    """The line that grows most from step to step; null if none does, or its line or the steps
    are unknown."""
    growth_bytes_per_step: float | None
    """By how much; null if nothing grows, or fewer than four steps are known."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A number about the capture."""

    name: str
    """Name of the module in `pyprof/analysis/summary/facts/` that computes it."""
    label: str
    """What stands before it in text."""
    value: float
    """The number."""
    unit: str
    """ns, bytes, share (of 1) or count."""
    meaning: str
    """What the number is, in a sentence."""


def describe_origin(origin: str, covered_share: float, *, guessed: bool) -> str:
    """What marks steps; of a guess, that it is one, and how much of the time it explains."""
    if not guessed:
        return origin
    share = f"; {100 * covered_share:.1f} % of the time" if covered_share < MIN_COVERED else ""
    return f"{origin} (guessed: may be layers of a step{share})"


@answer("summary")
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Answer):
    """Where the GPU time goes, how busy the GPU is, and potential gains."""

    verdict: tuple[Statement, ...]
    """What bounds the work and what to change first: at most four sentences, each with what proves
    it; only what the capture proves."""
    step: StepUse | None
    """What a GPU does in a mean step, or without steps in the whole capture; null if the records
    hold no times, launches blocked, or --where chose rows."""
    library: str | None
    """The library that the program uses: `PyTorch`, `CuPy`; null if no op or kernel shows it."""
    gpus: tuple[str | None, ...]
    """Names of the devices; null for one that the capture does not name, `cpu` without a GPU."""
    peaks: tuple[str, ...]
    """The peaks that efficiency is relative to; empty if no device is known."""
    chosen: ChosenRows | None
    """The rows that --where chose, which all figures are of; null without --where."""
    notes: tuple[str, ...]
    """What distorts times: launches that blocked, GPUs left out, waits that the file lacks."""
    known_cost: KnownCost
    """How much of the GPU time has a known cost."""
    found_by_ns: Mapping[str, int]
    """GPU time by how ops were found; under the empty name, where none was."""
    steps: StepTimes
    """The steps of the loop; those of a set of captures are side by side."""
    devices: tuple[DeviceUse, ...] | None
    """Where each GPU's time went; null if the records hold no times."""
    parts: tuple[PartTime, ...]
    """GPU time by part of the step."""
    families_ns: Mapping[str, int]
    """GPU time by kind of computation, the longest first."""
    serving: tuple[ServingPhase, ...]
    """Phases of a serving engine; empty without one."""
    utilization: PeakUse
    """MFU, HFU, MBU."""
    ops: tuple[OpTime, ...]
    """The most expensive ops, as many as --top."""
    ops_left_out: int
    """How many more there are."""
    lines: tuple[LineTotal, ...]
    """The most expensive lines, as many as --top."""
    lines_left_out: int
    """How many more there are."""
    layers: tuple[LayerTime, ...]
    """Every layer, or the first levels, each before those inside it, the most expensive first."""
    host_ops: tuple[HostOp, ...] | None
    """The ops in which the host spends most, as many as --top; null if not recorded."""
    host_ops_why: str | None
    """Why that is null."""
    measured: Measured | None
    """What counters measured; null without counters."""
    facts: tuple[Fact, ...]
    """Further numbers, as far as they are known."""
    memory: MemoryPeak | None
    """The highest peak of memory; null where memory was not recorded."""
    advice: tuple[Suggestion, ...]
    """Potential gains, the largest first; one-time gains come last."""
    advice_looked_at: tuple[str, ...]
    """What advice was looked for in."""
    advice_missing: Mapping[str, tuple[str, ...]]
    """What advice could not be looked for in, by the reason."""
    warnings: tuple[str, ...] = not_in_json(default=())
    """What the captures hide or distort, and what is uncertain about the peaks."""

    @property
    def processor(self) -> str:
        """Whose time it is: GPU, NPU or the like; CPU in a capture without one."""
        return self.known_cost.processor


def first_rows(answer: Summary, top: int | None, depth: int | None) -> Summary:
    """The answer with the first `top` rows of each list, and the layers down to `depth`."""
    ops, lines, measured, memory = answer.ops, answer.lines, answer.measured, answer.memory
    return replace(
        answer,
        ops=ops[:top],
        ops_left_out=len(ops) - len(ops[:top]),
        lines=lines[:top],
        lines_left_out=len(lines) - len(lines[:top]),
        layers=tuple(each for each in answer.layers if depth is None or len(each.path) <= depth),
        host_ops=answer.host_ops and answer.host_ops[:top],
        measured=measured and replace(measured, ops=measured.ops[:top]),
        memory=memory and replace(memory, lines_bytes=dict([*memory.lines_bytes.items()][:top])),
    )
