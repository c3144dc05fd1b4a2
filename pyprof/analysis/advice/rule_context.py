"""What advice rules query: columns of the rows, idle time, and evidence with its gain."""

from __future__ import annotations

import copy
import re
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.analysis.advice.finding import Advice, group_findings
from pyprof.analysis.back_test import tried
from pyprof.analysis.library import library_of
from pyprof.analysis.time.cpu_idle import (
    COMPILING,
    NO_CALLS,
    loading_ranges,
    outermost_calls,
    ranges_named,
)
from pyprof.analysis.time.host_api import LAUNCH
from pyprof.analysis.time.idle import HOST
from pyprof.analysis.time.intervals import EMPTY, union, union_of
from pyprof.answers.parts import PredictedGain
from pyprof.answers.summary_answer import PYTORCH
from pyprof.gpu.kernel_dtypes import tensor_core_takes
from pyprof.gpu.kernel_names import split
from pyprof.gpu.kernel_roles import role
from pyprof.gpu.peaks import peaks
from pyprof.gpu.peaks.formula import is_cuda, torch_device
from pyprof.gpu.roofline import NS_PER_S, SHORTEST_NS
from pyprof.parse.ranges.nesting import by_value
from pyprof.prof.calls.attributed_call import family
from pyprof.prof.columns.standard import COLUMNS
from pyprof.records.records import DictionaryColumn, combinations, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.analysis.time.cpu_idle import OpCalls
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.timeline import DeviceTime, Timeline
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.gpu.role_rules import Role
    from pyprof.marker import Call
    from pyprof.prof.table import KernelClass, Table
    from pyprof.schema import Capture


_PERSISTENT = re.compile(
    r"nvjet|persist|stream_?k|device_kernel|fmha\w*Sm(?:90|100)|deep_gemm"
    r"|^Cijk_\w*_SK[1-9]"  # Tensile's stream-K
    r"|(?:ln|rmsnorm)_(?:fwd|bwd)_(?:tuned_|general_)?kernel",  # Apex, Transformer Engine
    re.IGNORECASE,
)
"""Kernels whose blocks go from tile to tile; their number is that of the SMs they are meant for."""
_SIZES_OF_ONE_GRID = 3
"""A kernel that has the same grid for at least this many input sizes counts as persistent, too.
(Two may be products that only differ in K, which needs no more blocks.)
"""
MIN_KNOWN = 0.8
"""The share of time whose costs must be known, to predict more than an upper bound."""
_ABOVE_PEAK = re.compile(r"^above peak: [^;]*(; )?")


class RuleContext:
    """What the rules query about a capture. Masks are over all rows of the table."""

    def __init__(
        self,
        table: Table,
        timeline: Timeline | None = None,
        capture: Capture | None = None,
        rows: Mask | None = None,
    ) -> None:
        self.table, self.timeline, self.capture = table, timeline, capture
        self.chosen = np.ones(table.records.rows, bool) if rows is None else rows
        self.within: Intervals | None = None
        self.once = False

    def narrowed(self, rows: Mask, within: Intervals, *, once: bool) -> RuleContext:
        """Return a context of some rows and a part of the time; it shares values computed so far.

        `once`: the rows are those of start-up, warm-up or what follows the loop.
        """
        part = copy.copy(self)
        part.chosen, part.within, part.once = self.chosen & rows, within, once
        return part

    def inside(self, time: Intervals) -> Intervals:
        """Clip intervals to the part of the time that the context covers."""
        return time if self.within is None else time & self.within

    @cached_property
    def ns(self) -> NDArray[np.float64]:
        """The duration of each row."""
        return self.table.duration_ns.astype(float)

    @cached_property
    def of_pytorch(self) -> bool:
        """Whether the program is known to use PyTorch."""
        return library_of(self.table, self.capture) == PYTORCH

    @cached_property
    def torch_device(self) -> str:
        """What torch calls the devices here: `cuda`, unless one is known to be of another kind."""
        kinds = map(torch_device, self.table.records.dictionary("gpu").values)
        return next((kind for kind in kinds if kind != "cuda"), "cuda")

    @cached_property
    def trains(self) -> bool:
        """Whether a backward pass or an optimizer is known; a program without may be a server."""
        return bool(self.table.records.dictionary("dir").is_in("bprop", "optim").any())

    @cached_property
    def devices(self) -> tuple[DeviceTime, ...]:
        """The GPUs' timelines; empty if no times, or no work of a GPU, were recorded."""
        devices = self.timeline.devices if self.timeline is not None else ()
        return tuple(device for device in devices if not device.on_cpu)

    @cached_property
    def cpus(self) -> tuple[DeviceTime, ...]:
        """The timelines of processes whose ops were timed on the CPU."""
        devices = self.timeline.devices if self.timeline is not None else ()
        return tuple(device for device in devices if device.on_cpu)

    @property
    def span_ns(self) -> int:
        """The longest span of a GPU, or of a process on the CPU; without times, the summed time."""
        spans = [
            device.span_ns if self.within is None else (self.within & device.span).total
            for device in (*self.devices, *self.cpus)
        ]
        return max(spans) if spans else int(self.ns[self.chosen].sum())

    @cached_property
    def op(self) -> DictionaryColumn:
        """The op of each row, as the table shows it."""
        return encode(self.table.dictionary_array("op"))

    @cached_property
    def line(self) -> DictionaryColumn:
        """The user's source line of each row."""
        return encode(self.table.dictionary_array("line"))

    @cached_property
    def lane(self) -> Int64Array:
        """The number of each row's lane, which is a GPU as used by one process."""
        records = self.table.records
        device = records.numpy("device") + 1  # 0: not known
        keys = records.numpy("pid") * (int(device.max(initial=0)) + 1) + device
        return np.asarray(np.unique(keys, return_inverse=True)[1])

    @cached_property
    def starts(self) -> Int64Array:
        """When each row began, ns; without times, in the order of the file."""
        records = self.table.records
        has_times = "start" in records.columns
        return records.numpy("start") if has_times else np.arange(records.rows)

    # --- masks -----------------------------------------------------------------------------------

    def role(self, *roles: Role) -> Mask:
        """Find kernels of these roles."""
        name = self.table.records.dictionary("kLongName")
        return self.chosen & name.matches(lambda text: role(text) in roles)

    def named(self, pattern: re.Pattern[str]) -> Mask:
        """Find kernels whose path (the name without its arguments) matches a pattern."""
        name = self.table.records.dictionary("kLongName")
        return self.chosen & name.matches(lambda text: bool(pattern.search(split(text).path)))

    def copies(self, pattern: re.Pattern[str]) -> Mask:
        """Find copies whose name matches a pattern, as `HtoD`."""
        name = self.table.records.dictionary("kLongName")
        return self.kind(schema.MEMCPY) & name.matches(lambda text: bool(pattern.search(text)))

    def family(self, *families: str) -> Mask:
        """Find rows whose op call is of one of these families."""
        return self.chosen & self.table.costs.work.matches(lambda work: family(work) in families)

    def call_matches(self, test: Callable[[Call], bool]) -> Mask:
        """Mask of all rows, chosen or not, whose op call is known and passes a test."""
        work = self.table.costs.work
        return work.matches(lambda work: work.call is not None and test(work.call))

    def measure_calls(self, measure: Callable[[Call], int]) -> Int64Array:
        """Return the result of `measure` for the op call of each row; 0 if the call is unknown."""
        work = self.table.costs.work
        most = np.iinfo(np.int64).max  # a damaged capture may state any size
        return work.numpy(lambda work: 0 if work.call is None else min(measure(work.call), most), 0)

    def class_matches(self, test: Callable[[KernelClass], bool]) -> Mask:
        """Find rows whose kernel's class passes a test."""
        return self.chosen & self.table.classified.matches(test)

    @property
    def without_op(self) -> Mask:
        """Rows whose op is unknown."""
        return np.asarray(self.chosen & (self.op.index < 0))

    def is_op(self, names: Collection[str]) -> Mask:
        """Find rows whose op, as the table shows it, has one of these names."""
        return self.chosen & self.op.is_in(*names)

    def kind(self, kind: int) -> Mask:
        """Find rows of a kind of `schema.KINDS`."""
        return self.chosen & self.table.records.of_kind(kind)

    def is_one(self, column: str, *values: str) -> Mask:
        """Find rows with one of these values in a column of texts."""
        return self.chosen & self.table.records.dictionary(column).is_in(*values)

    @cached_property
    def why(self) -> DictionaryColumn:
        """The column `why`, without its note on rows above their peak."""
        texts = encode(COLUMNS["why"].dictionary_array(self.table))
        return texts.map(lambda text: _ABOVE_PEAK.sub("", text))

    def reason_startswith(self, start: str) -> Mask:
        """Find rows whose `why` begins with this text."""
        return self.chosen & self.why.matches(lambda text: text.startswith(start))

    @cached_property
    def loading_ranges(self) -> Mapping[str, tuple[Int64Array, Int64Array]]:
        """Starts and ends of the ranges of data loading, by their names."""
        return {} if self.capture is None else loading_ranges(self.capture)

    @cached_property
    def loading(self) -> Intervals:
        """When the program was in any range of data loading."""
        return union(union_of(start, end) for start, end in self.loading_ranges.values())

    @cached_property
    def compiling(self) -> Intervals:
        """When torch.compile was at work."""
        return EMPTY if self.capture is None else union_of(*ranges_named(self.capture, COMPILING))

    @cached_property
    def persistent(self) -> Mask:
        """Kernels whose number of blocks does not follow the size of what they work on."""
        records = self.table.records
        name, grid, sizes = (records.dictionary(each) for each in ("kLongName", "grid", "sizes"))
        rows = np.flatnonzero((grid.index >= 0) & (name.index >= 0))
        sized = rows[(sizes.index[rows] >= 0) & (self.elements[rows] > 0)]
        count = len(name.values)
        grids = _count_distinct(name.index[rows], grid.index[rows], count)
        elements = _count_distinct(name.index[sized], self.elements[sized], count)
        by_name = [bool(_PERSISTENT.search(split(text).path)) for text in name.values]
        is_persistent = np.array(by_name, bool) | ((grids == 1) & (elements >= _SIZES_OF_ONE_GRID))
        return np.asarray(np.append(is_persistent, np.False_)[name.index])

    @cached_property
    def calls(self) -> OpCalls:
        """The outermost calls of ops; none without a capture."""
        return NO_CALLS if self.capture is None else outermost_calls(self.capture)

    def idle(self, device: DeviceTime, cause: str) -> Intervals:
        """Return when a device idled for a cause.

        Compilation is left out, and on GPUs data loading: both have rules of their own.
        """
        waited = self.inside(device.idle[cause])
        if device.on_cpu:
            return waited - self.compiling
        return waited - self.compiling - self.loading if cause in (HOST, LAUNCH) else waited

    def device_has(self, dtype: str) -> Mask:
        """Find rows on a GPU that is known to have Tensor Cores for a type.

        A peak set by the user applies to every type, so it is not evidence for one.
        """
        gpu = self.table.records.dictionary("gpu")
        has_dtype = [self._device_takes(name, dtype) for name in (*gpu.values, None)]
        return np.asarray(np.array(has_dtype, bool).take(gpu.index))

    def _device_takes(self, name: str | None, dtype: str) -> bool:
        device = self.table.device_of(name)
        if device.cuda_cc is not None:
            return tensor_core_takes(device.cuda_cc, dtype)
        device_peaks = peaks(device)
        return device_peaks is not None and device_peaks.flops(dtype, tensor_core=True) is not None

    # --- orders ----------------------------------------------------------------------------------

    @cached_property
    def by_stream(self) -> tuple[Int64Array, Mask]:
        """Rows ordered by stream and start; and which of them are on one stream with the next."""
        records = self.table.records
        keys = [records.numpy(name) for name in ("start", "stream", "device", "pid")]
        order = np.lexsort(keys)
        same = np.ones(max(len(order) - 1, 0), bool)
        for key in keys[1:]:
            same &= np.diff(key[order]) == 0
        return order, same

    @cached_property
    def elements(self) -> Int64Array:
        """The elements of each row's largest input; if unknown, the threads of its grid."""
        sizes = self.table.records.dictionary("sizes")
        known = sizes.numpy(
            lambda value: max((int(np.prod(each)) for each in value or ()), default=0), 0
        )
        return np.where(known > 0, known, self._product("grid") * self._product("block"))

    @cached_property
    def sm_count(self) -> Int64Array:
        """The number of SMs of each row's GPU; 0 if unknown."""
        gpu = self.table.records.dictionary("gpu")
        counts = [self.table.device_of(name).sm_count or 0 for name in (*gpu.values, None)]
        return np.array(counts)[gpu.index]

    @property
    def blocks_per_sm(self) -> NDArray[np.float64]:
        """The thread blocks of each row per SM of its GPU; 0 if unknown."""
        per_sm = self._product("grid") / np.maximum(self.sm_count, 1)
        return np.where(self.sm_count > 0, per_sm, 0.0)

    def _product(self, column: str) -> Int64Array:
        """Multiply the sizes that a column lists in each row; 0 without them."""
        sizes = self.table.records.dictionary(column)
        return sizes.numpy(lambda value: int(np.prod(value)) if value else 0, 0)

    # --- gains -----------------------------------------------------------------------------------

    def most(self, rows: Int64Array, ns: NDArray[np.float64]) -> int | None:
        """Sum up the savings of rows, NaN if unknown, on the GPU that could save most.

        GPUs work side by side, so that their savings shorten a step only once; so do streams, so
        that rows save no more of their own time than the time in which any of them ran. None if
        nothing is known.
        """
        known = np.isfinite(ns)
        if not known.any():
            return None
        wins = known & (ns > 0)
        rows, ns = rows[wins], ns[wins]
        if not len(rows):
            return 0
        lane = self.lane[rows]
        own = np.bincount(lane, weights=np.minimum(ns, self.ns[rows]))
        won = np.bincount(lane, weights=ns)
        return int((won - np.maximum(own - self._busy_ns(rows), 0)).max())

    def _busy_ns(self, rows: Int64Array) -> NDArray[np.float64]:
        """Return how long any of some rows ran, by lane, in ns."""
        lane = self.lane[rows]
        ran = np.bincount(lane, weights=self.ns[rows]).astype(float)
        if "start" in self.table.records.columns:
            start = self.starts[rows]
            end = start + self.table.duration_ns[rows]
            for number, ours in by_value(lane):
                ran[number] = self.inside(union_of(start[ours], end[ours])).total
        return ran

    def predicted(
        self, rows: Int64Array, ns: NDArray[np.float64], change: str, code: str, *, sized: bool
    ) -> PredictedGain | int | None:
        """Return the result of `most` as an interval, from the errors of a change that was tried.

        It was tried on NVIDIA GPUs of known bandwidth, and on kernels whose bytes are known: if any
        row ran elsewhere, or if they are not `sized`, only the upper end is returned.
        """
        if not (most := self.most(rows, ns)):
            return most
        known = np.isfinite(ns)
        rows, ns = rows[known], ns[known]
        lane, ran = self.lane[rows], self._busy_ns(rows)
        summed = np.bincount(lane, weights=self.ns[rows])
        overlapped = np.divide(ran, summed, out=np.ones(len(ran)), where=summed > 0)
        won = np.bincount(lane, weights=np.maximum(ns, 0)) * overlapped
        expected, now = int(won.max()), float(ran[won.argmax()])
        outcomes = tried(change)
        high_ns = round(now - (now - expected) * outcomes.low)
        peaks = self.table.devices
        used = [peaks.values[index] for index in np.unique(peaks.index[rows])]
        if not sized or any(
            each is None or each.bandwidth is None or not is_cuda(each.name) for each in used
        ):
            return high_ns
        return PredictedGain(
            low_ns=max(0, round(now - (now - expected) * outcomes.high)),
            expected_ns=expected,
            high_ns=high_ns,
            validation=outcomes.text,
            code=code,
        )

    def sized(self, rows: Int64Array) -> bool:
        """Whether the bytes that rows move are known for most of their time."""
        ns, known = self.ns[rows], self.table.costs.bytes[rows] >= 0
        return bool(ns[known].sum() >= MIN_KNOWN * ns.sum())

    def peak_flops(self, dtype: str, *, tensor_core: bool = True) -> NDArray[np.float64]:
        """Return the peak of each row's device in a type, FLOP/s; NaN if unknown."""
        peaks = self.table.devices
        rates = [peak.flops(dtype, tensor_core) if peak else None for peak in peaks.values]
        return np.array([rate.value if rate else np.nan for rate in rates])[peaks.index]

    @property
    def bandwidth(self) -> NDArray[np.float64]:
        """The peak of each row's device, bytes/s; NaN if unknown."""
        peaks = self.table.devices
        rates = [p.bandwidth.value if p and p.bandwidth else np.nan for p in peaks.values]
        return np.array(rates)[peaks.index]

    def faster(
        self, rows: Int64Array, dtype: str, *, tensor_core: bool = True, narrower: int = 1
    ) -> NDArray[np.float64]:
        """Return the time that rows would save in `dtype`, ns, by default on Tensor Cores.

        They are assumed to reach the same share of the roofline as now, and to take no less than
        the shortest kernel; NaN if unknown. `narrower`: the factor by which bytes shrink.
        """
        costs = self.table.costs
        flops, moved = (
            np.where(cost[rows] >= 0, cost[rows], np.nan) for cost in (costs.flops, costs.bytes)
        )
        computing = flops / self.peak_flops(dtype, tensor_core=tensor_core)[rows]
        least = np.maximum(computing, moved / narrower / self.bandwidth[rows]) * NS_PER_S
        share = np.minimum(self.table.roofline.share[rows], 1)
        return np.asarray(self.ns[rows] - np.maximum(least / share, SHORTEST_NS))

    def at_higher_peak(
        self, rows: Int64Array, dtype: str, *, tensor_core: bool = True
    ) -> NDArray[np.float64]:
        """Return the most that rows could save, ns, at the same share of the peak of `dtype`.

        For kernels of unknown cost: memory-bound ones save less. NaN without peaks.
        """
        now = self.table.classified.numpy(
            lambda each: each.flops_peak.value if each.flops_peak else np.nan, np.nan
        )[rows]
        top = self.peak_flops(dtype, tensor_core=tensor_core)[rows]
        return np.asarray(self.ns[rows] - np.maximum(self.ns[rows] * now / top, SHORTEST_NS))

    # --- evidence --------------------------------------------------------------------------------

    def advice(
        self,
        title: str,
        action: str,
        rows: Int64Array,
        gain: int | PredictedGain | None = None,
        weight: NDArray[np.float64] | None = None,
        detail: Sequence[str] | None = None,
        elsewhere: str | None = None,
        *,
        wasted_ns: NDArray[np.float64] | None = None,
        min_share: float = 0.0,
    ) -> Advice | None:
        """Build advice from rows as its evidence; None if there are no rows.

        `weight` is the time that each row stands for, if not its own; `wasted_ns` is the same if
        it is also what each could save. `elsewhere`: what to do instead in a program that is not
        known as PyTorch's. None also if the gain is unknown, or below `min_share` of the time, if
        that is given.
        """
        if wasted_ns is not None:
            gain, weight = self.most(rows, wasted_ns), wasted_ns
        gain_ns = gain.high_ns if isinstance(gain, PredictedGain) else gain
        if not len(rows):
            return None
        if min_share and (gain_ns is None or gain_ns < min_share * self.span_ns):
            return None
        if elsewhere is not None and not self.of_pytorch:
            action = elsewhere
        op, line, kernel = (
            self.table.dictionary_array(column).take(pa.array(rows)).cast(pa.string())
            for column in ("op", "line", "kernel")
        )
        weights = self.ns[rows] if weight is None else weight
        return Advice(
            title=title,
            action=action,
            gain_ns=gain_ns,
            predicted=gain if isinstance(gain, PredictedGain) else None,
            evidence=group_findings(pc.coalesce(op, kernel), line, detail, weights, rows),
            rows=rows,
        )


def idle_for(
    context: RuleContext,
    cause: str,
    devices: Sequence[DeviceTime] | None = None,
    *,
    before: bool = False,
    without: Intervals = EMPTY,
) -> tuple[Int64Array, NDArray[np.float64]]:
    """Return the row after each gap of a cause, or that before it, and its time for that cause.

    On all GPUs unless `devices` are given; the time `without` does not count.
    """
    rows, time = [np.zeros(0, np.int64)], [np.zeros(0)]
    for device in context.devices if devices is None else devices:
        gaps = device.gaps
        ns = (context.idle(device, cause) - without).length_within(gaps.start, gaps.end)
        some = ns > 0
        last = _find_last_ended(context, device, gaps.start[some]) if before else gaps.row[some]
        rows.append(last)
        time.append(ns[some].astype(float))
    return np.concatenate(rows), np.concatenate(time)


def is_most(ns: NDArray[np.float64], some: Mask) -> bool:
    """Whether some rows take more than half of the time of all."""
    return bool(ns[some].sum() > ns.sum() / 2)


def _find_last_ended(context: RuleContext, device: DeviceTime, instant: Int64Array) -> Int64Array:
    """Find the last row of a device that had ended by each instant."""
    records = context.table.records
    of_process = records.numpy("pid") == device.pid
    rows = np.flatnonzero(of_process & (records.numpy("device") == device.device))
    rows = rows[np.argsort(records.numpy("end")[rows], kind="stable")]
    index = np.searchsorted(records.numpy("end")[rows], instant, side="right") - 1
    return rows[np.maximum(index, 0)]


def _count_distinct(group: IntArray, value: IntArray, count: int) -> Int64Array:
    pairs = combinations(group, value)[0]
    return np.bincount(group[pairs], minlength=count)
