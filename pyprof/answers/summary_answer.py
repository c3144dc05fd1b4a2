"""The answer of `pyprof summary`. Its JSON has only the first rows of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median

from pyprof.answers import answer, not_in_json
from pyprof.answers.base import Answer
from pyprof.answers.parts import ChosenRows, KnownCost, Statement, StepUse, Suggestion
from pyprof.quantities import duration

PYTORCH = "PyTorch"
"""The `library` of a program that uses PyTorch."""
NO_LAYER = "(outside all layers)"
"""The entry of `layers` for rows outside all layers."""

_MIN_DEVIATION = 0.1
"""From this mean deviation on, as a share of the mean, steps are unlike their mean."""

MIN_COVERED = 0.8
"""Guessed steps with a smaller share of the GPU time are not the program's loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """The steps of the loop."""

    count: int
    """Number of steps found; 0 if none were."""
    origin: str
    """What marks them: ranges, the optimizer's steps, repetition; empty if none were found."""
    guessed: bool
    """Whether steps are guessed from repeated kernels: one may be a layer."""
    warm_up_count: int
    """Number of leading steps that are much slower; means include them only if --steps does."""
    covered_share: float | None
    """Share of the summed GPU time that is in steps; null without steps. Guessed steps with less
    than 80 % are not averaged over."""
    first: int | None
    """The first step that means include, from 0; null if there are no means."""
    last: int | None
    """The last step that means include; null if `first` is."""
    mean_ns: float | None
    """Mean time of the steps from `first` to `last`; null if `first` is."""
    median_ns: float | None
    """Median time of the steps after warm-up; null if no steps were found."""
    duration_ns: tuple[int, ...]
    """Time of every step, in order."""
    mfu: tuple[float | None, ...]
    """Model FLOPs utilization of every step; null if the peak, or the FLOPs of more than 20 % of
    its GPU time, are unknown, and where steps are guessed."""
    hfu: tuple[float | None, ...]
    """Hardware FLOPs utilization of every step, which counts recomputed work; null if `mfu` is."""
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
        """Number of steps that means include; None if there are no means."""
        return None if self.first is None or self.last is None else self.last - self.first + 1

    @property
    def shown(self) -> range:
        """Return the range of the chosen steps, or of all."""
        if self.are_chosen and self.first is not None and self.last is not None:
            return range(self.first, self.last + 1)
        return range(self.count)

    @property
    def averaged_ns(self) -> tuple[int, ...]:
        """The time of each step that the mean is of; empty without a mean."""
        if self.first is None or self.last is None:
            return ()
        return self.duration_ns[self.first : self.last + 1]

    @property
    def spread(self) -> str:
        """The range and median of the averaged steps; empty if the mean stands for most of them."""
        took = self.averaged_ns
        if (
            not self.mean_ns
            or not took
            or fmean(abs(ns - self.mean_ns) for ns in took) < _MIN_DEVIATION * self.mean_ns
        ):
            return ""
        shortest, longest = duration(min(took)), duration(max(took))
        return f"{shortest} to {longest}, median {duration(median(took))}"

    @property
    def kind(self) -> str:
        """Return the origin without the details that differ between two processes."""
        return self.origin.partition(" ")[0]

    @property
    def described_origin(self) -> str:
        """Describe what marks the steps, and whether they are a guess."""
        return describe_origin(self.origin, self.covered_share or 0.0, guessed=self.guessed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """How one GPU spent its time, as one process used it."""

    rank: int | None
    """Rank of the process; null if not recorded."""
    device: int | None
    """Number of the GPU; null if not recorded."""
    processor: str
    """GPU, NPU or the like; CPU in a capture without one."""
    span_ns: int
    """Time from the first start to the last end, without pauses of the profiler."""
    busy_ns: int
    """Time in which anything ran; `busy_ns` + `idle_ns` = `span_ns`."""
    idle_ns: int
    """Time in which nothing ran."""
    compute_ns: int
    """Time in which kernels other than collectives ran."""
    communication_ns: int
    """Time in which collectives ran."""
    exposed_communication_ns: int
    """Time in which collectives ran and nothing computed."""
    copy_ns: int
    """Time in which copies or fills ran."""
    exposed_copy_ns: int
    """Time in which copies ran and nothing else."""
    overlap_ns: int
    """Time in which at least two of compute, communication and copies ran at once."""
    idle_by_cause_ns: Mapping[str, int]
    """Idle time by cause; adds up to `idle_ns`. docs/summary.md explains the causes."""
    windows: int
    """Number of recorded parts of the run."""
    paused_ns: int
    """Time between these parts, while the profiler was paused."""
    pid: int = not_in_json(default=-1)
    """Process id of the process that used the GPU."""

    @property
    def on_cpu(self) -> bool:
        """Whether this is the CPU, whose ops were timed in a capture without a GPU."""
        return self.processor == "CPU"


@dataclass(frozen=True, slots=True)
class PartTime:
    """GPU time of a part of the step, such as forward, or of a phase of serving."""

    part: str | None
    """Its name; null if unknown."""
    time_ns: int
    """Summed GPU time; the parts add up to the time of all rows."""
    mfu: float | None
    """Model FLOPs divided by what the peak allows in that time; null if the peak, or the FLOPs of
    more than 20 % of the time, are unknown, and where nothing is computed, as in copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPhase:
    """The steps of one phase of a serving engine."""

    phase: str
    """prefill, decode or mixed."""
    steps: int
    """Number of these steps."""
    time_ns: int
    """Their summed time; of prefill, without waits for requests."""
    tokens: int | None
    """Tokens that they worked on; null if the range of a step does not state it."""
    tokens_per_s: float | None
    """Tokens per second; null if `tokens` is."""
    padding_share: float | None
    """Share of the computed tokens that only pad CUDA graphs; null if steps do not state both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakUse:
    """How close the model's work came to the peaks."""

    mfu: float | None
    """Model FLOPs utilization; null if unknown: see `why`."""
    hfu: float | None
    """Hardware FLOPs utilization, which counts recomputed work; null if unknown: see `why`."""
    why: str
    """Why MFU and HFU are unknown; empty if they are known."""
    model_flops: int
    """Known FLOPs, without recomputed work."""
    hardware_flops: int
    """Known FLOPs."""
    peak_flops_per_s: float | None
    """The peak of one GPU; null if it is unknown."""
    peak_flops_label: str
    """Which peak that is, and its source."""
    mbu: float | None
    """Bytes of decode steps over what the memory could move; null without decode steps, or where
    the peak or the bytes of more than 20 % of their time are unknown."""
    peak_bytes_per_s: float | None
    """The peak bandwidth of one GPU; null if it is unknown or nothing is decoded."""
    peak_bytes_label: str = not_in_json(default="")
    """Which bandwidth that is, and its source."""
    known_share: float = not_in_json(default=1.0)
    """Share of the compute time whose FLOPs are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """An op in one direction, called on one line."""

    op: str | None
    """Its name; null if unknown: then `kernel` identifies it."""
    dir: str | None
    """fprop, bprop, optim, comm or copy; null if unknown."""
    line: str | None
    """Source line; null if no stack was recorded."""
    kernel: str
    """The kernel that took most of the time."""
    calls: int
    """Number of op calls."""
    kernels: int
    """Number of kernels, copies and fills."""
    time_ns: int
    """Summed GPU time."""
    step_ns: float | None
    """Mean GPU time in a step; null if there are no means."""
    share: float
    """Share of the summed GPU time."""
    flops_per_s: float | None
    """FLOP rate of the rows with known FLOPs; null if unknown: see `why`."""
    bytes_per_s: float | None
    """Byte rate of the rows with known bytes; null if unknown: see `why`."""
    efficiency: float | None
    """Share of the roofline, of the rows with known cost and peak; null if unknown: see `why`, or
    no peak is known."""
    bound: str | None
    """compute, memory or latency, of most of the time; null where efficiency is unknown."""
    tc: str | None
    """Tensor Cores, of most of the time: 1 used, 0 not, ? unknown; null: nothing for them to do."""
    why: str | None
    """Why the cost of some rows is unknown, for most of their time; null if all are known."""
    above_peak: str | None
    """Why it is far above the roofline; null if it is not."""
    range: str | None
    """The user's innermost range around it, with N for numbers in its name; null if its op or line
    is known, or there is no range."""
    row_ids: tuple[int, ...]
    """`idx` in `prof` of the rows that take most of its time, at most 3; empty for short ops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """GPU time of a module or another layer."""

    path: tuple[str, ...]
    """Names of the layers around it, the outermost first, and its own; empty for the root."""
    time_ns: int
    """Summed GPU time of everything inside."""
    own_ns: int
    """GPU time without the layers inside."""
    step_ns: float | None
    """Mean of `time_ns` in a step; null if there are no means."""
    own_step_ns: float | None
    """Mean of `own_ns` in a step; null if there are no means."""
    rows: int
    """Number of kernels, copies and fills inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTotal:
    """GPU time that a source line launched itself."""

    line: str | None
    """`file:number`; null for the rows whose line is unknown."""
    calls: int
    """Number of op calls."""
    time_ns: int
    """Summed GPU time."""
    step_ns: float | None
    """Mean GPU time in a step; null if there are no means."""
    share: float
    """Share of the summed GPU time."""
    ops: tuple[str, ...]
    """Ops on the line, the longest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOp:
    """Host time of an op."""

    op: str | None
    """Its name; null if it has none."""
    calls: int
    """Number of calls."""
    self_ns: int
    """Host time in the op, without the ops that it calls."""
    total_ns: int
    """Host time in the op, including the ops that it calls."""
    line: str | None
    """Source line that took most of `self_ns`; null if no stack was recorded there."""
    launches: int = not_in_json(default=0)
    """Number of kernels, copies and fills that its calls launched, whichever op they count for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOp:
    """Counters of the kernels of an op."""

    op: str | None
    """Its name; null if unknown."""
    dir: str | None
    """Part of the step; null if unknown."""
    kernel: str | None
    """The kernel, if the op is unknown; else null."""
    kernel_count: int
    """Number of measured kernels."""
    time_ns: int
    """Their summed time."""
    dram_bytes: float | None
    """DRAM traffic; null if not measured."""
    dram_bytes_per_s: float | None
    """DRAM traffic per second of the kernels for which it was measured; null if none."""
    excess: float | None
    """DRAM traffic divided by the least that the op needs; null if either is unknown."""
    l2_hit_share: float | None
    """Hit rate of the L2 cache, a mean over time; null if not measured."""
    tensor_share: float | None
    """Activity of Tensor Cores, a mean over time; null if not measured."""
    theoretical_occupancy_share: float | None
    """Occupancy that the launch allows, a mean over time; null if not measured."""
    occupancy_share: float | None
    """Achieved occupancy, a mean over time; null if not measured."""
    clock_hz: float | None
    """SM clock, a mean over time; null if not measured."""
    energy_j: float | None
    """Energy while the kernels ran; null if not measured."""
    means: Mapping[str, float | None] = not_in_json(default_factory=dict)
    """The means by the column of prof, in its unit: percent, MHz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePower:
    """What a device drew over the time in which it was sampled."""

    rank: int | None
    """Rank in a distributed job; null outside of one."""
    device: int
    """Number of the device."""
    energy_j: float
    """Energy over that time."""
    mean_w: float
    """Mean power."""
    most_w: float
    """Highest power."""
    sampled_s: float = not_in_json(default=0.0)
    """The time in which it was sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Counters of all kernels for which they were recorded."""

    sources_ns: Mapping[str, int]
    """GPU time of the measured kernels, by the tool that measured them."""
    kernel_count: int
    """Number of measured kernels."""
    dram_bytes: float | None
    """DRAM traffic; null if not measured."""
    energy_j: float | None
    """Energy while they ran, of the kernels for which it is known; null if not measured."""
    energy_known_share: float
    """Share of all kernels' GPU time for which the energy is known."""
    energy_step_j: float | None
    """Energy of the mean step; null if not measured, or without steps."""
    energy_token_j: float | None
    """Energy per token; null if not measured, or if the number of tokens is unknown."""
    excess: float | None
    """DRAM traffic divided by the least that the ops need, where both are known; else null."""
    tensor_share: float | None
    """Activity of Tensor Cores, a mean over time; null if not measured."""
    clock_hz: float | None
    """SM clock, a mean over time; null if not measured."""
    throttled: str | None
    """A sentence, if the clock was below that of the peak, with what limited it; else null."""
    contradictions: tuple[str, ...]
    """A sentence for each kernel whose counters contradict its name about Tensor Cores."""
    power: tuple[DevicePower, ...]
    """Power of each device for which it was sampled."""
    ops: tuple[MeasuredOp, ...]
    """The ops that take the most time, as many as --top; kernels without an op, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPeak:
    """Memory at the highest peak of any device; `pyprof memory` shows more."""

    device: str
    """Name of the device in torch, such as `cuda:0`."""
    rank: int | None
    """Rank of the process; null if unknown."""
    peak_bytes: int
    """Most memory allocated at a time."""
    peak_time_ns: int | None
    """Time of the peak since the first event; null if it is before that event, or without times."""
    peak_reserved_bytes: int | None
    """Memory that the allocator had reserved on the device at the peak; null if unknown."""
    categories_bytes: Mapping[str, int]
    """Memory at the peak by category; unknown memory is under the empty name."""
    lines_bytes: Mapping[str, int]
    """Memory at the peak by line, the largest, as many as --top; memory of unknown lines is under
    the empty name."""
    growing_line: str | None
    """The line that grows most from step to step; null if none does, or its line or the steps
    are unknown."""
    growth_bytes_per_step: float | None
    """Growth per step; null if nothing grows, or fewer than four steps are known."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A number about the capture."""

    name: str
    """Name of the module in `pyprof/analysis/summary/facts/` that computes it."""
    label: str
    """Its label in the text output."""
    value: float
    """The number."""
    unit: str
    """ns, bytes, share (of 1) or count."""
    meaning: str
    """A sentence that explains the number."""


def describe_origin(origin: str, covered_share: float, *, guessed: bool) -> str:
    """What marks steps; of a guess, that it is one, and how much of the time it explains."""
    if not guessed:
        return origin
    share = f"; {100 * covered_share:.1f} % of the time" if covered_share < MIN_COVERED else ""
    return f"{origin} (guessed: may be layers of a step{share})"


@answer("summary")
@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
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
    """Names of the devices; null if not recorded, `cpu` without a GPU."""
    peaks: tuple[str, ...]
    """The peaks to which efficiency is relative; empty if no device is known."""
    chosen: ChosenRows | None
    """Rows that --where chose, which all figures but `memory` refer to; null without --where."""
    notes: tuple[str, ...]
    """What distorts times: launches that blocked, GPUs left out, waits that the file lacks, a GPU
    that took longer for the same kernels."""
    known_cost: KnownCost
    """How much of the GPU time is that of rows with a known cost."""
    found_by_ns: Mapping[str, int]
    """GPU time by how the op of a row was found; rows without an op are under the empty name."""
    steps: StepTimes
    """The steps of the loop; those of several captures are side by side."""
    devices: tuple[DeviceUse, ...] | None
    """How each GPU spent its time; null if the records hold no times, or under ncu."""
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
    """Number of further ops."""
    lines: tuple[LineTotal, ...]
    """The most expensive lines, as many as --top."""
    lines_left_out: int
    """Number of further lines."""
    layers: tuple[LayerTime, ...]
    """Every layer, or the first levels, each before those inside it, the most expensive first."""
    host_ops: tuple[HostOp, ...] | None
    """The ops in which the host spends most, as many as --top; null if not recorded."""
    host_ops_left_out: int
    """Number of further ops that the host called."""
    host_ops_why: str | None
    """Why `host_ops` is null."""
    measured: Measured | None
    """What counters measured; null without counters."""
    facts: tuple[Fact, ...]
    """Further numbers, those that are known."""
    memory: MemoryPeak | None
    """The highest peak of memory; null where memory was not recorded."""
    advice: tuple[Suggestion, ...]
    """Potential gains, the largest first; where gains are per step, one-time gains come last."""
    advice_looked_at: tuple[str, ...]
    """What was examined for advice."""
    advice_missing: Mapping[str, tuple[str, ...]]
    """What could not be examined for advice, by the reason."""
    warnings: tuple[str, ...] = not_in_json(default=())
    """What the captures hide or distort, and what is uncertain about the peaks."""
    step_families_ns: Mapping[str, int] = not_in_json(default_factory=dict)
    """`families_ns` of the steps that are averaged over; empty without."""

    @property
    def processor(self) -> str:
        """Return what the times are of: GPU, NPU or the like; CPU in a capture without one."""
        return self.known_cost.processor

    @property
    def is_per_step(self) -> bool:
        """Whether times are per step: not if steps are guessed in only a small part of the time."""
        judged = self.step is None or self.step.step_count is not None
        return bool(self.steps.averaged_count) and judged


def first_rows(answer: Summary, top: int | None, depth: int | None) -> Summary:
    """Return the answer with the first `top` rows of each list and the layers down to `depth`."""
    ops, lines, host, memory = answer.ops, answer.lines, answer.host_ops, answer.memory
    measured = answer.measured
    return replace(
        answer,
        ops=ops[:top],
        ops_left_out=len(ops) - len(ops[:top]),
        lines=lines[:top],
        lines_left_out=len(lines) - len(lines[:top]),
        layers=tuple(each for each in answer.layers if depth is None or len(each.path) <= depth),
        host_ops=host and host[:top],
        host_ops_left_out=len(host or ()) - len((host or ())[:top]),
        measured=measured and replace(measured, ops=measured.ops[:top]),
        memory=memory and replace(memory, lines_bytes=dict([*memory.lines_bytes.items()][:top])),
    )
