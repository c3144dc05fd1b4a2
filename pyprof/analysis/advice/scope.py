"""What advice looked at, and what it could not look at, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.analysis.advice.registry import subjects
from pyprof.records.merging import lists_by_key, merge_unique, merged_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Mask

GPU, KERNELS, CPU, TIMES, CAPTURE, OPS, COSTS, PEAKS, SMS, COUNTERS = (
    *("gpu", "kernels", "cpu", "times", "capture", "ops", "costs", "peaks", "sms", "counters"),
)
"""What a rule may need. Without a GPU, subjects that need GPU are ignored, and those that need
KERNELS are reported as missing."""

_MAX_MISSING = 0.5
"""The share of the time above which missing data is reported."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The subjects of all rules that apply to the processor."""

    looked_at: tuple[str, ...] = merged_by(merge_unique, default=())
    missing: Mapping[str, tuple[str, ...]] = merged_by(lists_by_key, default_factory=dict)
    """By reason, the subjects that were not looked at in some capture."""

    @property
    def unseen(self) -> Mapping[str, tuple[str, ...]]:
        """By reason, the subjects that were looked at in no capture."""
        unseen = {
            reason: tuple(name for name in names if name not in self.looked_at)
            for reason, names in self.missing.items()
        }
        return {reason: names for reason, names in unseen.items() if names}


def find_scope(context: RuleContext) -> Scope:
    """Check which rules had what they need, for most of the time."""
    reasons = {need: check(context) for need, check in _CHECKS.items()}
    looked_at: dict[str, None] = {}
    missing: dict[str, str] = {}
    for about, needs in subjects().values():
        if any(reasons[need] == _SILENT for need in needs):
            continue
        reason = next((text for need in needs if (text := reasons[need])), None)
        if reason is None:
            looked_at[about] = None
        else:
            missing.setdefault(about, reason)
    by_reason: dict[str, tuple[str, ...]] = {}
    for about, reason in missing.items():
        if about not in looked_at:
            by_reason[reason] = (*by_reason.get(reason, ()), about)
    return Scope(tuple(looked_at), by_reason)


_SILENT = "nothing is amiss: this is for others"


def _gpu(context: RuleContext) -> str | None:
    return None if _share(context, ~context.kind(schema.CPU)) > 0 else _SILENT


def _kernels(context: RuleContext) -> str | None:
    return None if _gpu(context) is None else "judged on a GPU only"


def _cpu(context: RuleContext) -> str | None:
    return None if _share(context, context.kind(schema.CPU)) > 0 else _SILENT


def _times(context: RuleContext) -> str | None:
    if "start" not in context.table.records.columns:
        return "the file has no times"
    if context.timeline is None:
        return _SILENT  # between rows that --where chose there is no idle time
    if context.capture is not None and context.capture.tool == "ncu":
        return "ncu runs each kernel alone"
    return "launches blocked (CUDA_LAUNCH_BLOCKING=1)" if context.timeline.blocking else None


def _capture(context: RuleContext) -> str | None:
    if context.capture is None:
        return _SILENT  # records of `pyprof parse`
    return None if context.capture.ranges.num_rows else "no ranges were recorded"


def _ops(context: RuleContext) -> str | None:
    return _mostly(context, context.without_op, "the op is unknown for {} of {} time")


def _costs(context: RuleContext) -> str | None:
    costs = context.table.costs
    unknown = (costs.flops < 0) | ((costs.bytes < 0) & ~costs.helper)
    return _mostly(context, unknown, "FLOPs or bytes are unknown for {} of {} time")


def _peaks(context: RuleContext) -> str | None:
    unknown = context.class_matches(
        lambda each: each.flops_peak is None and each.bandwidth_peak is None
    )
    return _mostly(context, unknown, "the GPU's peaks are unknown: name it with --gpu")


def _sms(context: RuleContext) -> str | None:
    gpu = context.table.records.dictionary("gpu")
    unknown = [not context.table.device_of(name).sm_count for name in (*gpu.values, None)]
    return _mostly(
        context, np.array(unknown, bool)[gpu.index], "the GPU's number of SMs is unknown"
    )


def _counters(context: RuleContext) -> str | None:
    return None if context.table.measured.any else _SILENT


def _mostly(context: RuleContext, unknown: Mask, reason: str) -> str | None:
    """Return the reason if it applies to most of the time, else None."""
    # copies and fills need no op
    work = context.kind(schema.KERNEL) | context.kind(schema.GRAPH) | context.kind(schema.CPU)
    share = _share(context, unknown & work) / (_share(context, work) or 1)
    if share <= _MAX_MISSING:
        return None
    return reason.format(f"{100 * share:.0f} %", "CPU" if _gpu(context) == _SILENT else "kernel")


def _share(context: RuleContext, rows: Mask) -> float:
    total = context.ns[context.chosen].sum()
    return float(context.ns[context.chosen & rows].sum() / total) if total else 0.0


_CHECKS: Mapping[str, Callable[[RuleContext], str | None]] = {
    GPU: _gpu,
    KERNELS: _kernels,
    CPU: _cpu,
    TIMES: _times,
    CAPTURE: _capture,
    OPS: _ops,
    COSTS: _costs,
    PEAKS: _peaks,
    SMS: _sms,
    COUNTERS: _counters,
}
